package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// TuneGC makes the garbage collector run less often than Go's default in a small crawl, and as often in
// a large one. Main calls it.
//
// Unless the environment sets GOGC, TuneGC allows one and a quarter bytes of garbage for each live byte before a
// collection runs. Less would cost a small crawl processor time: it keeps little in memory. In a large
// crawl, so much garbage would be most of the process's memory: of what is live beyond fullGarbageBytes,
// TuneGC allows two fifths as much.
//
// If GOMEMLIMIT is not set and a control group limits the memory, TuneGC sets the memory limit of
// the runtime to nine tenths of the group's limit, so that garbage alone never makes the kernel
// kill the process.
func TuneGC() {
	if l := memlimit.Get(); l.Source == memlimit.Cgroup && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(l.Bytes / 10 * 9)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent(0))
		keepAdaptingGCPercent(gcPercent(0))
	}
}

const (
	// fullGCPercent is how much garbage there may be for 100 bytes of live memory in a small crawl.
	fullGCPercent = 125
	// fullGarbageBytes is how much live memory may have so much garbage.
	fullGarbageBytes = 24 << 20
)

// gcPercent returns the GOGC for a number of live bytes, stacks and globals included.
func gcPercent(live uint64) int {
	if live <= fullGarbageBytes {
		return fullGCPercent
	}
	return int((fullGarbageBytes + (live-fullGarbageBytes)*2/5) * fullGCPercent / live)
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
