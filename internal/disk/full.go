package disk

import (
	"errors"
	"slices"
	"syscall"
)

// IsFull reports whether a write that failed with err can succeed once there is room on the
// disk: ENOSPC, EDQUOT or EFBIG. After any other error (EIO, EROFS) the contents of the disk
// are unknown.
func IsFull(err error) bool {
	full := []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	return slices.ContainsFunc(full, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
