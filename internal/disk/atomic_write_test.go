package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// wantFiles fails the test unless dir contains exactly these names.
func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Fatalf("%s has %v, want %q", dir, entries, want)
	}
	for i, e := range entries {
		if e.Name() != want[i] {
			t.Errorf("%s has %s, want %s", dir, e.Name(), want[i])
		}
	}
}

// TestWriteFileAtomic: several goroutines write the same file at a time, and every reader finds it
// complete.
func TestWriteFileAtomic(t *testing.T) {
	dir, tempDir, content := t.TempDir(), t.TempDir(), bytes.Repeat([]byte("abc"), 1<<20)
	name := filepath.Join(dir, "file")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := WriteFileAtomic(name, tempDir, 0o640, content); err != nil {
				t.Error(err)
			}
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d of %d bytes: %v", len(got), len(content), err)
			}
		})
	}
	all.Wait()
	wantFiles(t, dir, "file")
	wantFiles(t, tempDir)
}

// TestWriteFileAtomicFails: a file that cannot be renamed leaves nothing behind.
func TestWriteFileAtomicFails(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFileAtomic(filepath.Join(dir, "none", "file"), dir, 0o640, []byte("x")); err == nil {
		t.Error("a file was renamed into a directory that does not exist")
	}
	wantFiles(t, dir)
	if err := WriteFileAtomic(filepath.Join(dir, "file"), filepath.Join(dir, "none"), 0o640, []byte("x")); err == nil {
		t.Error("a file was written in a directory that does not exist")
	}
	wantFiles(t, dir)
}
