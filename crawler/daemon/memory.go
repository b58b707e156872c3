package daemon

import (
	"fmt"
	"log/slog"

	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// newMemoryPressure returns the PressureMonitor that refuses new hosts while the memory of the
// process is nearly used up. It logs low memory once for the process; decorum report gives
// the number of refused links.
func newMemoryPressure(limit memlimit.Limit, log *slog.Logger) *memlimit.PressureMonitor {
	warned := false
	return memlimit.NewPressureMonitor(limit, nil, func(low bool, liveBytes, limit int64) {
		if low && !warned {
			warned = true
			log.Warn("memory is nearly used up; links to new hosts are refused until there is more, and counted in "+
				"decorum report (memory)", "kept", formatBytes(liveBytes), "limit", formatBytes(limit))
		}
	})
}

// formatBytes writes a number of bytes for people.
func formatBytes(n int64) string {
	x, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, unit)
}
