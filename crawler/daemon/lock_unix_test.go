//go:build unix

package daemon

import (
	"os"
	"os/exec"
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
	child.ExtraFiles = []*os.File{first.file}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Wait() }) // it is killed at the end of the test
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if dir.inUse() {
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
