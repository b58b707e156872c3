//go:build unix

package daemon

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
	dir := stateDir(t.TempDir())
	first, err := dir.lock()
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
	if dir.isInUse() {
		t.Error("the directory is said to be in use")
	}
	second, err := dir.lock()
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
	dir := stateDir(t.TempDir())
	first, err := dir.lock()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{lockFile, "warc.lock"} {
		if err := os.RemoveAll(dir.path(name)); err != nil {
			t.Fatal(err)
		}
		if second, err := lockWithFile(t, string(dir), name, ""); err == nil || !strings.Contains(err.Error(), "in use by another process") {
			t.Errorf("with %s removed: %v", name, err)
			second.Close()
		}
		if !dir.isInUse() {
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
	if dir.isInUse() {
		t.Error("the directory is said to be in use")
	}
}

// lockWithFile holds a directory by a lock file.
func lockWithFile(t *testing.T, dir, name, lockedDir string) (*directoryLock, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return lockDirectory(root, name, "the directory", "--data", lockedDir)
}
