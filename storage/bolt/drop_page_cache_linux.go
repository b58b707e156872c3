package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropPageCache makes the system forget the pages of a file that it keeps in memory: after
// a failed fsync these may differ from the disk. The next opener of the file should see
// what a loss of power would leave. It ignores errors.
func dropPageCache(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
