package daemon

import "github.com/decorum-crawler/decorum/internal/memlimit"

// newProcessMemoryPressure returns the Pressure that refuses new hosts while the memory of the process
// is nearly used up.
func (a *program) newProcessMemoryPressure() *memlimit.PressureMonitor {
	return a.newMemoryPressure(memlimit.Get())
}

// newMemoryPressure returns the Pressure against a limit. It logs low memory once for the
// process; decorum report gives the number of refused links.
func (a *program) newMemoryPressure(limit memlimit.Limit) *memlimit.PressureMonitor {
	warned := false
	return memlimit.NewPressureMonitor(limit, nil, func(low bool, liveBytes, limit int64) {
		if low && !warned {
			warned = true
			a.log.Warn("memory is nearly used up; links to new hosts are refused until there is more, and counted in "+
				"decorum report (memory)", "kept", formatBytes(liveBytes), "limit", formatBytes(limit))
		}
	})
}
