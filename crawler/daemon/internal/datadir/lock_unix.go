//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// hasFileLocks reports whether tryLockFile can detect the lock of another process.
const hasFileLocks = true

// tryLockFile locks f. It returns false if f is locked through another open file, of this process or
// another one.
func tryLockFile(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlockFile releases the lock on f.
func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
