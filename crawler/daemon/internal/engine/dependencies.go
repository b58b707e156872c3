package engine

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A Dependencies is what crawls have of the process that runs them.
type Dependencies struct {
	Log            *slog.Logger
	StandardOutput io.Writer       // for output.jsonl: "-"
	Handlers       Handlers        // of the program
	BodyMemory     *bodymem.Budget // for the bodies of all crawls; nil: each has one of its own
	OnDiskFull     func(error)     // called when outputs wait for room on the disk, see sinks.Config; may be nil
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

// Handlers are those of a program, nil if it has none: see daemon.Handlers, which documents the
// methods.
type Handlers interface {
	Names() []string
	Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64)
}

// handlerNames returns the names of h, which may be nil.
func handlerNames(h Handlers) []string {
	if h == nil {
		return nil
	}
	return h.Names()
}

// CheckHandler returns a problem if h, which may be nil, has no handler of that name; the empty
// name asks for none.
func CheckHandler(h Handlers, name string) *project.FieldProblem {
	names := handlerNames(h)
	switch {
	case name == "" || slices.Contains(names, name):
		return nil
	case len(names) == 0:
		return project.NewFieldProblem("handler", "%q names Go callbacks, and this program has none: they come from a program of your own that calls daemon.Main", name)
	}
	return project.NewFieldProblem("handler", "%q is not one of this program's handlers: %s", name, strings.Join(names, ", "))
}

// attachHandler has the pages of c handled as p says: without a handler, the crawler follows
// what is to be discovered.
func attachHandler(h Handlers, c *crawler.Crawler, p project.Project, fetcher *httpfetch.Fetcher) {
	if slices.Contains(handlerNames(h), p.Handler) {
		h.Attach(p.Handler, c, fetcher, int64(p.Fetch.MaxRequestBody))
	}
}
