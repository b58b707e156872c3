package disk

import (
	"errors"
	"syscall"
)

// IsFull reports whether a write that failed with err can succeed once there is room on the
// disk: ENOSPC, EDQUOT or EFBIG. After any other error (EIO, EROFS) the contents of the disk
// are unknown.
func IsFull(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
