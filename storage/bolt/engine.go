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

// An engine is the common base of a Store and a NoteStore: one file, its lock, the changes that are
// on their way to the file, and the origins in it.
type engine struct {
	opts              Options
	committer         *committer
	leaveMemoryBudget func() // gives the store's share of Options.SharedMemoryBudget back

	// mu guards closed, file, status, damage, journal, admittedHosts, outputFiles, index and heads,
	// and the parts of the Store. The committer writes to file without it.
	mu            sync.Mutex
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

// openEngine opens the file at path and creates it if it does not exist. It returns what the file
// records of earlier opens, and the totals of its origins. The caller must call start, or close the
// file.
func openEngine(path string, opts Options) (e *engine, meta openedMeta, totals storeTotals, err error) {
	e = &engine{opts: opts.withDefaults()}
	e.damage = damageReporter{path: path, onDamaged: e.opts.OnDamaged}
	e.status = newWriteStatus(path, e.opts.OnStallChange)
	e.file = storeFile{path: path, status: e.status}
	e.admittedHosts.damage = &e.damage
	e.journal = &journal{opts: &e.opts, damage: &e.damage, newHosts: &e.admittedHosts, nextSegment: 1}
	e.heads.opts = &e.opts
	e.index = &originCache{
		opts: &e.opts, damageReporter: &e.damage, journal: e.journal, heads: &e.heads,
		hosts:   make(map[string]*residentHost),
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

// load migrates the file to the current format, marks it as open, and reads it. It loads the origins
// that have URLs to lease or changes in the log; URLs stay on disk.
func (e *engine) load() (meta openedMeta, totals storeTotals, err error) {
	// Bring the file to the current format, and mark it as open.
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
	e.index.minDue, e.index.openedAfterCrashAt, e.outputFiles.mayBeTorn = meta.earliestAllowedDue,
		meta.crashedAt, meta.outputMayBeTorn
	// Read the log before the origins: where both have an origin, the log is newer.
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

// start starts the goroutine of the committer, which close ends.
func (e *engine) start() {
	e.leaveMemoryBudget = e.opts.SharedMemoryBudget.addStore()
	go e.committer.run()
}

// lockIfOpen locks e.mu for a call that changes nothing on disk. It returns an error, without the
// lock, if ctx is done or e is closed.
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

// lockForChange locks e.mu for a call that changes the store. It waits while the journal is full. It
// returns an error, without the lock, if ctx is done, e is closed or the store has failed for good.
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
		// The journal is full: wait until the next write has ended, and look again. A stalled
		// committer tries again at its own pace.
		attemptDone, stalled := e.status.attemptDone, e.status.err != nil
		e.mu.Unlock()
		if !stalled {
			e.committer.wake()
		}
		select {
		case <-attemptDone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trimAndCommitIfDueThenUnlock ends a call: it drops cached heads beyond the limit, unlocks e.mu, and
// wakes the committer if many changes are unwritten.
func (e *engine) trimAndCommitIfDueThenUnlock() {
	commitNow := e.status.err == nil && e.journal.shouldWriteNow()
	e.heads.trim()
	e.mu.Unlock()
	if commitNow {
		e.committer.wake()
	}
}

// view calls do in a read transaction, with e.mu held, for a call that changes nothing on disk.
func (e *engine) view(ctx context.Context, do func(*bbolt.Tx) error) error {
	if err := e.lockIfOpen(ctx); err != nil {
		return err
	}
	defer e.trimAndCommitIfDueThenUnlock()
	return e.file.view(do)
}

// change calls do in a read transaction, with e.mu held, for a call that changes the store in memory.
// It waits while the journal is full.
func (e *engine) change(ctx context.Context, do func(*bbolt.Tx) error) error {
	if err := e.lockForChange(ctx); err != nil {
		return err
	}
	defer e.trimAndCommitIfDueThenUnlock()
	return e.file.view(do)
}

// viewOrigin is view for an origin. It does not call do if the store has no such origin.
func (e *engine) viewOrigin(ctx context.Context, name decorum.Origin, do func(*bbolt.Tx, *residentOrigin)) error {
	return e.view(ctx, func(tx *bbolt.Tx) error {
		o, err := e.index.find(tx, name)
		if o != nil && err == nil {
			do(tx, o)
		}
		return err
	})
}

// changeOrigin is change for an origin, which it creates if the store has no such origin.
func (e *engine) changeOrigin(ctx context.Context, name decorum.Origin, change func(*residentOrigin)) error {
	return e.change(ctx, func(tx *bbolt.Tx) error {
		o, err := e.index.getOrCreate(tx, name)
		if err == nil {
			change(o)
		}
		return err
	})
}

// forEachValueOfOrigin calls yield with each value of an origin in a bucket of the file, without
// e.mu. It locks e.mu for one value at a time, since values may be large. A damaged value is yielded
// unchanged, with an error.
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

// forEachOrigin calls yield with the result of read for each origin, until yield returns false. read
// returns false for an origin to skip. It holds e.mu while it reads a batch of batchSize origins, and
// calls yield without it.
func forEachOrigin[T any](
	ctx context.Context, e *engine, yield func(T) bool, read func(tx *bbolt.Tx, number uint32) (T, bool, error),
) error {
	found := make([]T, 0, batchSize)
	for number, more := uint32(1), true; more; number += batchSize {
		found = found[:0]
		if err := e.lockIfOpen(ctx); err != nil {
			return err
		}
		// Origins are numbered from 1 without gaps; the last number may grow between batches.
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

// lockAndReportDamage is damageReporter.reportOnce for callers that do not hold e.mu.
func (e *engine) lockAndReportDamage(place, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.damage.reportOnce(place, format, args...)
}

// FileStats returns the size of the file, how much of it is free, and the length of the log.
func (e *engine) FileStats() (FileStats, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, err := e.file.stats()
	f.UnappliedLogChanges = e.journal.loggedChangeCount
	return f, err
}

// Flush makes all earlier calls durable. If the last write has failed, Flush tries once more and
// returns the error.
func (e *engine) Flush(ctx context.Context) error {
	if err := e.lockIfOpen(ctx); err != nil {
		return err
	}
	defer e.mu.Unlock()
	return e.committer.flush(ctx)
}

// close calls lastChanges with e.mu held, writes what is left, and closes the file. The log stays in
// the file: the next engine that opens the file continues from it. An engine that has failed for good
// writes nothing here: the next one finds what was durable before, as after a crash.
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

// closeFaulted closes the file of a store in which bbolt has faulted, without a call to bbolt. The
// caller holds e.mu, which closeFaulted releases.
func (e *engine) closeFaulted() error {
	err := fmt.Errorf("close: what was not flushed is lost: %w", e.status.err)
	close(e.committer.quit) // but do not wait: the goroutine may wait for a lock of bbolt forever
	e.status.signalAttemptDone()
	e.mu.Unlock()
	defer e.leaveMemoryBudget()
	return errors.Join(err, e.file.closeWithoutBbolt())
}
