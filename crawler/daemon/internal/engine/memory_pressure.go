package engine

import (
	"log/slog"

	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// NewMemoryPressureMonitor returns the PressureMonitor that refuses new hosts while the memory of the
// process is nearly used up. It logs low memory once for the process; decorum report gives
// the number of refused links.
func NewMemoryPressureMonitor(limit memlimit.Limit, log *slog.Logger) *memlimit.PressureMonitor {
	warned := false
	return memlimit.NewPressureMonitor(limit, nil, func(low bool, liveBytes, limit int64) {
		if low && !warned {
			warned = true
			log.Warn("memory is nearly used up; links to new hosts are refused until there is more, and counted in "+
				"decorum report (memory)", "kept", plaintext.FormatBytes(liveBytes), "limit", plaintext.FormatBytes(limit))
		}
	})
}
