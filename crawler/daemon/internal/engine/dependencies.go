package engine

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A Dependencies is what crawls have of the process that runs them.
type Dependencies struct {
	Log            *slog.Logger
	StandardOutput io.Writer           // for output.jsonl: "-"
	Handlers       PageHandlerRegistry // of the program
	BodyMemory     *bodymem.Budget     // for the bodies of all crawls; nil: each has one of its own
	OnDiskFull     func(error)         // called when outputs wait for room on the disk, see sinks.Config; may be nil
}

// BoltOptions returns how the state of a project is opened. Each time before it
// is written, before is called (see bolt.Options.BeforeWrite).
func (e *Dependencies) BoltOptions(p project.Project, before func() error) bolt.Options {
	return bolt.Options{PostInterruptionDelay: time.Duration(p.Politeness.Delay), BeforeWrite: before, OnStallChange: e.LogStoreWriteState, OnDamaged: e.LogStoreDamage}
}

// LogStoreWriteState logs that a store cannot write for now, or has failed for good, or, if err is
// nil, that it can write again.
func (e *Dependencies) LogStoreWriteState(err error) {
	switch {
	case err == nil:
		e.Log.Info("the crawl goes on: its state can be written again")
	case errors.Is(err, storage.ErrFailed):
		e.Log.Error("the crawl ends: what it wrote last may not be on the disk", "error", err)
	default:
		e.Log.Error("the crawl pauses", "error", err)
	}
}

// LogStoreDamage tells of something in the state that makes no sense.
func (e *Dependencies) LogStoreDamage(err error) {
	e.Log.Error("the state of the crawl is damaged; the crawl goes on without what cannot be read", "error", err)
}

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
