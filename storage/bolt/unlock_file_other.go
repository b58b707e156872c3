//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "os"

// unlockFile does nothing: here the lock is released when the process ends.
func unlockFile(*os.File) {}
