//go:build unix

package datadir

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A directory that was given back is free at once, though a process that was started
// meanwhile still has the file of its lock.
func TestDirectoryIsFreeAtOnce(t *testing.T) {
	dir := StateDir(t.TempDir())
	first, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "sleep", "60")
	child.ExtraFiles = []*os.File{first.lockFile}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Wait() }) // it is killed at the end of the test
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if dir.IsInUse() {
		t.Error("the directory is said to be in use")
	}
	second, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// TestDirectoryIsHeldWithoutItsLockFile: a directory stays locked when its lock file is
// removed or replaced. The same holds for an archive's directory, which may be the
// crawl's own.
func TestDirectoryIsHeldWithoutItsLockFile(t *testing.T) {
	dir := StateDir(t.TempDir())
	first, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{LockFile, "warc.lock"} {
		if err := os.RemoveAll(dir.Path(name)); err != nil {
			t.Fatal(err)
		}
		if second, err := lockWithFile(t, string(dir), name, ""); err == nil || !strings.Contains(err.Error(), "in use by another process") {
			t.Errorf("with %s removed: %v", name, err)
			second.Close()
		}
		if !dir.IsInUse() {
			t.Errorf("with %s removed, the directory is said to be free", name)
		}
	}
	archive, err := lockWithFile(t, string(dir), "warc.lock", string(dir))
	if err != nil {
		t.Fatalf("the archive in the directory of the crawl: %v", err)
	}
	if err := errors.Join(archive.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	if dir.IsInUse() {
		t.Error("the directory is said to be in use")
	}
}

// lockWithFile holds a directory by a lock file.
func lockWithFile(t *testing.T, dir, name, lockedDir string) (*DirectoryLock, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return LockDirectory(root, name, "the directory", "--data", lockedDir)
}
