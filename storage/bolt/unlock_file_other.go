//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "os"

// unlockFile does nothing: the lock is held until the process ends.
func unlockFile(*os.File) {}
