//go:build unix

package connlimit

import "syscall"

// MaxDescriptors returns how many descriptors the process may have open, or 0 if that is unknown. The Go
// runtime has raised the soft limit to the hard limit.
func MaxDescriptors() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return uint64(l.Cur)
}
