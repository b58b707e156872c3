package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache has the system forget what it keeps of a file in memory: after an fsync
// that failed it may show pages there that are not on the disk. It does what it can:
// who opens the file next is to see what a loss of power would leave.
func dropCache(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
