package frontier

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// notesInterval is how long the notes of other processes may wait until a Frontier reads them. Until then
// this process may queue links that another one refuses, and refuse links to a site that another one has
// added to the scope.
const notesInterval = time.Minute

// crawlNotes are the notes of a crawl, and not of an origin, that decide which URLs belong to it.
type crawlNotes struct {
	closedPatterns ClosedPatterns
	seedRedirects  SeedRedirects
}

// readCrawlNotes reads the notes that all runs and processes of the crawl have left. It returns none if the
// store cannot list notes.
func readCrawlNotes(ctx context.Context, store storage.Notes) (notes crawlNotes, err error) {
	lister, ok := store.(interface {
		OriginNotes(context.Context, decorum.Origin, func(string, []byte) bool) error
	})
	if !ok {
		return notes, nil
	}
	err = lister.OriginNotes(ctx, decorum.Origin{}, func(key string, value []byte) bool {
		if strings.HasPrefix(key, closedPatternNotePrefix) {
			var p ClosedPattern
			if json.Unmarshal(value, &p) == nil && notes.closedPatterns.count < maxClosedPatterns {
				notes.closedPatterns.add(p)
			}
		} else {
			notes.seedRedirects.addNote(key)
		}
		return true
	})
	return notes, err
}

// A crawlNotesReader reads the crawlNotes of a Frontier: before their first use, and again every
// notesInterval if other processes use the store.
type crawlNotesReader struct {
	store      storage.Notes
	duplicates *duplicatePatternCloser
	redirects  *redirectTracker
	now        func() time.Time
	isShared   *atomic.Bool // other processes use the store

	lastRead atomic.Int64 // when the notes were read, in nanoseconds since 1970; 0: not yet
	reading  sync.Mutex   // serialises reads with the change of lastRead that follows
}

// readIfDue reads the notes unless they were read within notesInterval. While another call reads them
// again, it returns at once.
func (r *crawlNotesReader) readIfDue(ctx context.Context) error {
	if !r.isDue() {
		return nil
	}
	if r.lastRead.Load() == 0 {
		r.reading.Lock()
	} else if !r.reading.TryLock() {
		return nil
	}
	defer r.reading.Unlock()
	if !r.isDue() { // another call has read them
		return nil
	}
	readAt := r.now()
	notes, err := readCrawlNotes(ctx, r.store)
	if err != nil {
		return err
	}
	r.duplicates.closeAll(notes.closedPatterns)
	r.redirects.applyAll(notes.seedRedirects)
	r.lastRead.Store(readAt.UnixNano())
	return nil
}

// isDue reports whether the notes must be read now. A Frontier without a Scope needs none.
func (r *crawlNotesReader) isDue() bool {
	if r.redirects.base == nil {
		return false
	}
	last := r.lastRead.Load()
	return last == 0 || r.isShared.Load() && r.now().UnixNano()-last >= int64(notesInterval)
}
