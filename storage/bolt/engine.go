package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// An engine is what a Store and NoteStore are built on: one file, its lock, the changes that are on
// their way to the file, and the origins in it.
type engine struct {
	opts              Options
	committer         *committer
	leaveMemoryBudget func() // the SharedMemoryBudget

	mu            sync.Mutex // guards all below; the committer writes to file without it
	closed        bool
	file          storeFile
	status        *writeHealth
	damage        damageReporter
	journal       *journal
	admittedHosts admittedHostCounter
	outputFiles   outputFiles
	index         *originCache
	heads         headCache
}

// openEngine opens the file at path, and makes it if there is none. It returns what the file
// says of its past and of its origins. start must be called, or the file closed.
func openEngine(path string, opts Options) (e *engine, meta openedMeta, totals storeTotals, err error) {
	e = &engine{opts: opts.withDefaults()}
	e.damage = damageReporter{path: path, onDamaged: e.opts.OnDamaged}
	e.status = newWriteStatus(path, e.opts.OnStallChange)
	e.file = storeFile{path: path, status: e.status}
	e.admittedHosts.damage = &e.damage
	e.journal = &journal{opts: &e.opts, damage: &e.damage, newHosts: &e.admittedHosts, nextSegment: 1}
	e.heads.opts = &e.opts
	e.index = &originCache{
		opts: &e.opts, damageReporter: &e.damage, journal: e.journal, heads: &e.heads, hosts: make(map[string]*residentHost),
		origins: make(map[decorum.Origin]*residentOrigin), originsByNumber: make(map[uint32]*residentOrigin),
	}
	e.committer = &committer{
		storeMu: &e.mu, opts: &e.opts, file: &e.file, journal: e.journal, outputFiles: &e.outputFiles,
		checkpointed: e.index.keepRecent,
		requests:     make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	err = e.file.open(e.opts.noSync, func() (err error) {
		meta, totals, err = e.load()
		return err
	})
	return e, meta, totals, err
}

// load takes the file over: first it brings it to this format and marks it as
// opened, then it reads it. Of the origins it takes those into memory that have
// something to hand out, or changes in the log; URLs stay where they are.
func (e *engine) load() (meta openedMeta, totals storeTotals, err error) {
	if err := e.file.prepare(); err != nil {
		return meta, totals, err
	}
	err = e.file.db.Update(func(tx *bbolt.Tx) error {
		if meta, err = readMetaAndMarkOpen(tx, &e.opts); err != nil {
			return err
		}
		return e.admittedHosts.load(tx)
	})
	if err != nil {
		return meta, totals, err
	}
	e.index.minDue, e.index.openedAfterCrashAt, e.outputFiles.mayBeTorn = meta.earliestAllowedDue, meta.crashedAt, meta.outputMayBeTorn
	err = e.file.db.View(func(tx *bbolt.Tx) error {
		for _, name := range allBuckets() {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
			}
		}
		if err := e.outputFiles.load(tx); err != nil {
			return e.damage.errorf("lengths of files: %v", err)
		}
		log, err := e.journal.replay(tx)
		if err != nil {
			return err
		}
		totals, err = e.index.load(tx, log)
		return err
	})
	return meta, totals, err
}

// start starts the committer, which close ends.
func (e *engine) start() {
	e.leaveMemoryBudget = e.opts.SharedMemoryBudget.addStore()
	go e.committer.run()
}

// lockIfOpen locks e for a call that changes nothing on disk.
func (e *engine) lockIfOpen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return storage.ErrClosed
	}
	return nil
}

// lockForChange locks e for a call that changes something. It waits while too much is
// held. A store that has failed for good changes no more.
func (e *engine) lockForChange(ctx context.Context) error {
	for {
		if err := e.lockIfOpen(ctx); err != nil {
			return err
		}
		if e.status.hasFailed() {
			defer e.mu.Unlock()
			return e.status.err
		}
		if !e.journal.isFull() {
			return nil
		}
		attemptDone, stalled := e.status.attemptDone, e.status.err != nil
		e.mu.Unlock()
		if !stalled { // else the committer tries again in its own time
			e.committer.wake()
		}
		select {
		case <-attemptDone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trimAndCommitIfDueThenUnlock unlocks e after a call. It asks for a write if there is much to write.
func (e *engine) trimAndCommitIfDueThenUnlock() {
	commitNow := e.status.err == nil && e.journal.shouldWriteNow()
	e.heads.trim()
	e.mu.Unlock()
	if commitNow {
		e.committer.wake()
	}
}

// view makes a call that reads the file, and changes nothing on disk.
func (e *engine) view(ctx context.Context, do func(*bbolt.Tx) error) error {
	if err := e.lockIfOpen(ctx); err != nil {
		return err
	}
	defer e.trimAndCommitIfDueThenUnlock()
	return e.file.view(do)
}

// change makes a call that changes something, and reads the file.
func (e *engine) change(ctx context.Context, do func(*bbolt.Tx) error) error {
	if err := e.lockForChange(ctx); err != nil {
		return err
	}
	defer e.trimAndCommitIfDueThenUnlock()
	return e.file.view(do)
}

// viewOrigin calls do with an origin, if it was ever met.
func (e *engine) viewOrigin(ctx context.Context, name decorum.Origin, do func(*bbolt.Tx, *residentOrigin)) error {
	return e.view(ctx, func(tx *bbolt.Tx) error {
		o, err := e.index.find(tx, name)
		if o != nil && err == nil {
			do(tx, o)
		}
		return err
	})
}

// changeOrigin makes a change to an origin, new if need be.
func (e *engine) changeOrigin(ctx context.Context, name decorum.Origin, change func(*residentOrigin)) error {
	return e.change(ctx, func(tx *bbolt.Tx) error {
		o, err := e.index.getOrCreate(tx, name)
		if err == nil {
			change(o)
		}
		return err
	})
}

// forEachValueOfOrigin calls yield with the values that a bucket of the file holds of an origin,
// one at a time, since they may be large. It yields a damaged value as it is, with an
// error.
func (e *engine) forEachValueOfOrigin(
	ctx context.Context, name decorum.Origin, bucket string, yield func(key, value []byte, err error) bool,
) error {
	for from := []byte(nil); ; {
		var key, value []byte
		err := e.viewOrigin(ctx, name, func(tx *bbolt.Tx, o *residentOrigin) {
			prefix := numberKey(o.number)
			k, v := tx.Bucket([]byte(bucket)).Cursor().Seek(append(prefix, from...))
			if bytes.HasPrefix(k, prefix[:4]) {
				key, value = bytes.Clone(k), bytes.Clone(v)
			}
		})
		if err != nil || key == nil {
			return err
		}
		checked, damage := verifyAndTrimChecksum(key, value)
		if damage == nil {
			value = checked
		}
		if !yield(key, value, damage) {
			return nil
		}
		from = append(key[4:], 0) // the smallest key after this one
	}
}

// forEachOrigin calls yield with what read returns for each origin, until yield returns
// false. read reports false for the origin without a name, which holds the crawl's own
// notes. The store is locked while a portion is read, and free while yield runs.
func forEachOrigin[T any](
	ctx context.Context, e *engine, yield func(T) bool, read func(tx *bbolt.Tx, number uint32) (T, bool, error),
) error {
	found := make([]T, 0, batchSize)
	for number, more := uint32(1), true; more; number += batchSize {
		found = found[:0]
		if err := e.lockIfOpen(ctx); err != nil {
			return err
		}
		err := e.file.view(func(tx *bbolt.Tx) error {
			end := min(e.index.lastOriginNumber, number+batchSize-1)
			more = end < e.index.lastOriginNumber
			for n := number; n <= end; n++ {
				one, ok, err := read(tx, n)
				if err != nil {
					return err
				}
				if ok {
					found = append(found, one)
				}
			}
			return nil
		})
		e.mu.Unlock()
		if err != nil {
			return err
		}
		for _, one := range found {
			if !yield(one) {
				return nil
			}
		}
	}
	return nil
}

// lockAndReportDamage is damageReporter.reportOnce for callers that do not hold the lock.
func (e *engine) lockAndReportDamage(place, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.damage.reportOnce(place, format, args...)
}

// FileStats returns how large the file is.
func (e *engine) FileStats() (FileStats, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, err := e.file.stats()
	f.UnappliedLogChanges = e.journal.loggedChangeCount
	return f, err
}

// Flush makes all earlier calls durable. If the last write has failed, it tries again.
func (e *engine) Flush(ctx context.Context) error {
	if err := e.lockIfOpen(ctx); err != nil {
		return err
	}
	defer e.mu.Unlock()
	return e.committer.flush(ctx)
}

// close calls lastChanges with the lock, writes what is left and closes the file. What is in the
// log stays there: the next one to open the file goes on from it. An engine that has failed for
// good writes nothing at its end: the next one finds what was durable before, as after a crash.
func (e *engine) close(lastChanges func()) error {
	if err := e.lockIfOpen(context.Background()); err != nil {
		return err
	}
	e.closed = true
	if e.file.faulted {
		return e.closeFaulted()
	}
	lastChanges()
	e.mu.Unlock()
	defer e.leaveMemoryBudget()
	e.committer.stop()
	return e.file.close()
}

// closeFaulted closes the file of a store that has faulted, without a call to bbolt. It
// requires the lock, and releases it.
func (e *engine) closeFaulted() error {
	err := fmt.Errorf("close: what was not flushed is lost: %w", e.status.err)
	close(e.committer.quit) // it may wait for bbolt for good
	e.status.signalAttemptDone()
	e.mu.Unlock()
	defer e.leaveMemoryBudget()
	return errors.Join(err, e.file.closeWithoutBbolt())
}
