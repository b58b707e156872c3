package engine

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Dependencies holds what crawls use of the process that runs them.
type Dependencies struct {
	Log            *slog.Logger
	StandardOutput io.Writer            // for output.jsonl: "-"
	Handlers       PageHandlerRegistry  // the callbacks of the program; may be nil
	BodyMemory     *bodymem.Budget      // for the bodies of all crawls; nil: each crawl has its own
	IdleConns      *httpfetch.IdleConns // connections that all crawls keep open; nil: each crawl has its own
	OnDiskFull     func(error)          // called when outputs wait for space on the disk, see sinks.Config; may be nil
}

// BoltOptions returns the options with which the store of project p is opened. The store calls before
// each time before it writes: see bolt.Options.BeforeWrite.
func (e *Dependencies) BoltOptions(p project.Project, before func() error) bolt.Options {
	return bolt.Options{PostInterruptionDelay: time.Duration(p.Politeness.Delay), BeforeWrite: before,
		OnStallChange: e.LogStoreWriteState, OnDamaged: e.LogStoreDamage}
}

// LogStoreWriteState logs a change of a store's health: that it cannot write for now, that it has failed
// for good or, if err is nil, that it can write again.
func (e *Dependencies) LogStoreWriteState(err error) {
	switch {
	case err == nil:
		e.Log.Info("the crawl continues: its state can be written again")
	case errors.Is(err, storage.ErrFailed):
		e.Log.Error("the crawl ends: what it wrote last may not be on the disk", "error", err)
	default:
		e.Log.Error("the crawl pauses", "error", err)
	}
}

// LogStoreDamage logs a record in the store that cannot be read.
func (e *Dependencies) LogStoreDamage(err error) {
	e.Log.Error("the state of the crawl is damaged; the crawl continues without the records that cannot be read",
		"error", err)
}

// NewMemoryPressureMonitor returns the PressureMonitor that refuses new hosts while the memory of the
// process is nearly used up. It logs low memory once for the process; decorum report gives
// the number of refused links.
func NewMemoryPressureMonitor(limit memlimit.Limit, log *slog.Logger) *memlimit.PressureMonitor {
	warned := false
	return memlimit.NewPressureMonitor(limit, nil, func(low bool, liveBytes, limit int64) {
		if low && !warned {
			warned = true
			log.Warn("memory is nearly used up; until that changes, links to new hosts are refused, and counted in "+
				"decorum report (memory)", "kept", plaintext.FormatBytes(liveBytes), "limit",
				plaintext.FormatBytes(limit))
		}
	})
}
