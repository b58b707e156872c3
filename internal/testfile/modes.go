package testfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// ModesByPath returns the permissions of dir and of everything in it, by path relative to dir.
func ModesByPath(t testing.TB, dir string) map[string]fs.FileMode {
	t.Helper()
	modes := map[string]fs.FileMode{}
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		modes[rel] = info.Mode().Perm()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return modes
}

// CheckModes fails the test unless all directories in dir, dir included, have the mode dirs, and
// all files the mode files.
func CheckModes(t testing.TB, dir string, dirs, files fs.FileMode) {
	t.Helper()
	for path, mode := range ModesByPath(t, dir) {
		info, err := os.Lstat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]fs.FileMode{true: dirs, false: files}[info.IsDir()]; mode != want {
			t.Errorf("%s: mode %o, want %o", path, mode, want)
		}
	}
}
