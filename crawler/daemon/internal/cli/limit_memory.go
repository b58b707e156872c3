package cli

import (
	"os"
	"runtime/debug"

	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// LimitMemory sets the memory limit of the Go runtime to nine tenths of the limit of the process's
// control group, so that garbage alone never makes the kernel kill the process. It does nothing without
// such a limit or if GOMEMLIMIT is set. Main calls it.
//
// GOGC stays at Go's default. With less garbage, the collector takes a tenth of a large crawl's processor
// time and more; with more, each crawl needs more memory.
func LimitMemory() {
	if l := memlimit.Get(); l.Source == memlimit.Cgroup && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(l.Bytes / 10 * 9)
	}
}
