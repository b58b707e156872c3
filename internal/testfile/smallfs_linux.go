package testfile

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// MountSmallFileSystem returns a directory that is a separate file system of 48 MiB. It skips the
// test if none can be mounted, and unmounts it after the test.
func MountSmallFileSystem(t *testing.T) string {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// FillDisk writes to the file name until the disk is full.
func FillDisk(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if err := err.(*os.PathError); err.Err != syscall.ENOSPC {
			t.Fatal(err)
		}
	}
}
