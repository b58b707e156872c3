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
		debug.SetGCPercent(gcPercent(0))
		keepAdaptingGCPercent(gcPercent(0))
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

// keepAdaptingGCPercent sets GOGC to what gcPercent returns after each collection. percent is the present
// GOGC.
func keepAdaptingGCPercent(percent int) {
	// A cleanup runs after the collection that finds its object unreachable, in a goroutine of the runtime.
	// Objects of less than 16 bytes share a block, which lives as long as one of them.
	runtime.AddCleanup(new([16]byte), func(percent int) { keepAdaptingGCPercent(adaptGCPercent(percent)) }, percent)
}

// adaptGCPercent sets GOGC for the live bytes of the last collection, and returns it. percent is the present
// GOGC.
func adaptGCPercent(percent int) int {
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(goal)
	live := goal[0].Value.Uint64() * 100 / uint64(100+percent) // the goal is live and its garbage
	// A change stops the program for a moment: leave out those that hardly matter.
	if p := gcPercent(live); p < percent-5 || p > percent+5 {
		debug.SetGCPercent(p)
		return p
	}
	return percent
}

// heapBallast counts as live heap but takes no physical memory, because no code writes to it.
//
//lint:ignore U1000 its only purpose is to stay allocated
var heapBallast []byte
