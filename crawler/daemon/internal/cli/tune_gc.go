package cli

import (
	"os"
	"runtime/debug"

	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// TuneGC makes the garbage collector run less often than Go's default. Main calls it.
//
// A crawl keeps little in memory and makes garbage of every page. With Go's own settings the
// collector runs more than ten times in a second of processor time, which costs 6 to 9 % of that
// time. Unless the environment sets GOGC, TuneGC sets it to 200 and allocates a ballast of 8 MiB:
// the heap may grow by two bytes for each live byte, and by 16 MiB in a small crawl, before a
// collection runs. In a large crawl the ballast is negligible.
//
// If GOMEMLIMIT is not set and a control group limits the memory, TuneGC sets the memory limit of
// the runtime to nine tenths of the group's limit, so that garbage alone never makes the kernel
// kill the process.
func TuneGC() {
	if l := memlimit.Get(); l.Source == memlimit.Cgroup && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(l.Bytes / 10 * 9)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
		heapBallast = make([]byte, 8<<20)
	}
}

// heapBallast counts as live heap but takes no physical memory, because no code writes to it.
//
//lint:ignore U1000 its only purpose is to stay allocated
var heapBallast []byte
