//go:build unix

package datadir

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A released directory is free at once, even if a process that was started meanwhile still has a copy of
// the lock file's descriptor.
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
	t.Cleanup(func() { _ = child.Wait() }) // the end of the test kills the child
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if dir.IsInUse() {
		t.Error("IsInUse returns true")
	}
	second, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// A directory stays locked when its lock file is removed or replaced. The same holds for the directory of
// an archive, which may be the crawl's own.
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
		if second, err := lockWithFile(t, string(dir), name, ""); err == nil ||
			!strings.Contains(err.Error(), "in use by another process") {
			t.Errorf("with %s removed: %v", name, err)
			second.Close()
		}
		if dir.isLockFileLocked() {
			t.Errorf("with %s removed, its lock is found", name)
		}
		if !dir.IsInUse() {
			t.Errorf("with %s removed, IsInUse returns false", name)
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
		t.Error("IsInUse returns true")
	}
}

// lockWithFile locks a directory with the lock file called name.
func lockWithFile(t *testing.T, dir, name, lockedDir string) (*DirectoryLock, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return LockDirectory(root, name, "the directory", "--data", lockedDir)
}
