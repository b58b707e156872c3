package cli

import (
	"os"
	"runtime/debug"

	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// TuneGC has the collector run less often than Go would, unless the environment
// sets GOGC: Main does. A crawl keeps little in memory and makes garbage of every page.
// With Go's own settings the collector runs more than ten times in a second of processor
// time, which costs 6 to 9 % of it. So two bytes may become garbage for each that is
// kept, and as if 8 MiB more were kept than are: that is 16 MiB for a small crawl, and
// nothing to speak of for a large one. Where much is kept, GOMEMLIMIT bounds it: if that
// is not set and a control group limits the memory, it is nine tenths of the group's
// limit, so that garbage alone never has the kernel end the process.
func TuneGC() {
	if l := memlimit.Get(); l.Source == memlimit.Cgroup && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(l.Bytes / 10 * 9)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
		heapBallast = make([]byte, 8<<20)
	}
}

// heapBallast counts as kept, and takes no memory, for nobody ever writes to it.
//
//lint:ignore U1000 to be kept is all it is for
var heapBallast []byte
