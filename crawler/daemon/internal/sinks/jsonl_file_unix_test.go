//go:build unix

package sinks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// An existing file keeps its mode, and the files that follow a full one get the same mode.
func TestModeOfLinesIsKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o666); err != nil { // more than the umask allows
		t.Fatal(err)
	}
	f, err := openJSONLFile(nil, name, 1, datadir.PrivateFileMode, datadir.OutputFileCheckpoint{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := f.Write([]byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v (%v), want three files", files, err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o666 {
			t.Errorf("%s: mode %v (%v), want 666", file.Name(), info.Mode(), err)
		}
	}
}
