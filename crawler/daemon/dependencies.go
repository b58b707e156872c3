package daemon

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A crawlDependencies is what crawls have of the process that runs them.
type crawlDependencies struct {
	log                    *slog.Logger
	standardOutput         io.Writer       // for output.jsonl: "-"
	callbacksByHandlerName NamedCallbacks  // of the program
	bodyMemory             *bodymem.Budget // for the bodies of all crawls; nil: each has one of its own
	onDiskFull             func(error)     // called when outputs wait for room on the disk, see retryWhileDiskFull; may be nil
}

// boltOptions returns how the state of a project is opened. Each time before it
// is written, before is called (see bolt.Options.BeforeWrite).
func (e *crawlDependencies) boltOptions(p project.Project, before func() error) bolt.Options {
	return bolt.Options{PostInterruptionDelay: time.Duration(p.Politeness.Delay), BeforeWrite: before, OnStallChange: e.logStoreWriteState, OnDamaged: e.logStoreDamage}
}

// logStoreWriteState logs that a store cannot write for now, or has failed for good, or, if err is
// nil, that it can write again.
func (e *crawlDependencies) logStoreWriteState(err error) {
	switch {
	case err == nil:
		e.log.Info("the crawl goes on: its state can be written again")
	case errors.Is(err, storage.ErrFailed):
		e.log.Error("the crawl ends: what it wrote last may not be on the disk", "error", err)
	default:
		e.log.Error("the crawl pauses", "error", err)
	}
}

// logStoreDamage tells of something in the state that makes no sense.
func (e *crawlDependencies) logStoreDamage(err error) {
	e.log.Error("the state of the crawl is damaged; the crawl goes on without what cannot be read", "error", err)
}
