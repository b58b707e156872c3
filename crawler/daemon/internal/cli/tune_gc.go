package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// TuneGC makes the garbage collector run less often than Go's default. Main calls it.
//
// A crawl keeps little in memory and makes garbage of every page. With Go's own settings the
// collector runs more than ten times in a second of processor time, which costs 6 to 9 % of that
// time. Unless the environment sets GOGC, TuneGC sets it to 200 and allocates a ballast of 8 MiB:
// the heap may grow by two bytes for each live byte, and by 16 MiB in a small crawl, before a
// collection runs. In a large crawl the ballast is negligible, and two bytes for each live byte would
// be most of the process's memory: of what is live beyond fullGarbageBytes, TuneGC allows only half
// as much garbage.
//
// If GOMEMLIMIT is not set and a control group limits the memory, TuneGC sets the memory limit of
// the runtime to nine tenths of the group's limit, so that garbage alone never makes the kernel
// kill the process.
func TuneGC() {
	if l := memlimit.Get(); l.Source == memlimit.Cgroup && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(l.Bytes / 10 * 9)
	}
	if os.Getenv("GOGC") == "" {
		heapBallast = make([]byte, 8<<20)
		adaptGCPercent(gcPercent(0))
	}
}

// fullGarbageBytes is how much live memory may have two bytes of garbage for each byte.
const fullGarbageBytes = 24 << 20

// gcPercent returns the GOGC for a number of live bytes, ballast, stacks and globals included.
func gcPercent(live uint64) int {
	if live <= fullGarbageBytes {
		return 200
	}
	return int((2*fullGarbageBytes + (live-fullGarbageBytes)/2) * 100 / live)
}

// adaptGCPercent sets GOGC to percent now, and to what gcPercent returns after each collection.
func adaptGCPercent(percent int) {
	debug.SetGCPercent(percent)
	// A finalizer runs after the collection that finds its object unreachable, in a goroutine of the
	// runtime. It makes the next such object.
	type sentinel struct{ percent int }
	var adapt func(*sentinel)
	adapt = func(s *sentinel) {
		goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(goal)
		live := goal[0].Value.Uint64() * 100 / uint64(100+s.percent) // the goal is live and its garbage
		// A change stops the program for a moment: leave out those that hardly matter.
		if p := gcPercent(live); p < s.percent-5 || p > s.percent+5 {
			debug.SetGCPercent(p)
			s.percent = p
		}
		runtime.SetFinalizer(&sentinel{s.percent}, adapt)
	}
	runtime.SetFinalizer(&sentinel{percent}, adapt)
}

// heapBallast counts as live heap but takes no physical memory, because no code writes to it.
//
//lint:ignore U1000 its only purpose is to stay allocated
var heapBallast []byte
