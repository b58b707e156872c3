package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes text to a file of that name in a temporary directory of the test, and returns its
// path.
func Write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
