package bolt

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropPageCache asks the system to drop the pages of a file from its cache. After a failed fsync they
// may differ from the disk, and the next process that opens the file should see what it would see
// after a loss of power. dropPageCache ignores errors.
func dropPageCache(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// lockHolder returns which process has locked the file, from /proc/locks, or unknownProcess.
func lockHolder(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return unknownProcess
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || !ok {
		return unknownProcess
	}
	inode := fmt.Sprintf(":%d", stat.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1835022 0 EOF
		f := strings.Fields(line)
		if len(f) > 5 && f[1] == "FLOCK" && f[3] == "WRITE" && strings.HasSuffix(f[5], inode) {
			return "process " + f[4]
		}
	}
	return unknownProcess
}
