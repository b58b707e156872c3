//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// hasFileLocks says that tryLockFile tells whether another process has the lock.
const hasFileLocks = true

// tryLockFile locks f for this process; false says that another process has it.
func tryLockFile(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlockFile lets others lock f.
func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
