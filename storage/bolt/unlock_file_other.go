//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "os"

// unlock does nothing: the lock is held until the process ends.
func unlock(*os.File) {}
