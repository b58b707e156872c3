package bolt

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// A committer writes the changes of a store to its file: all calls since the last write in one
// transaction. run is its goroutine, and stop ends it.
type committer struct {
	storeMu     *sync.Mutex // engine.mu; guards file, journal and outputFiles
	opts        *Options
	file        *storeFile
	journal     *journal
	outputFiles *outputFiles
	// checkpointed is called, with storeMu held, with each origin whose changes a write has
	// checkpointed.
	checkpointed func(*residentOrigin)

	requests chan struct{} // a value makes the goroutine write now; capacity 1
	quit     chan struct{} // closed by stop to end the goroutine
	done     chan struct{} // closed by the goroutine at its end
}

// run writes every Options.FlushEvery, earlier when wake is called, and continuously while the journal
// is so full that calls may have to wait. It returns when stop is called.
func (c *committer) run() {
	defer close(c.done)
	delay := c.opts.FlushEvery
	tick := time.NewTimer(delay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.requests:
		case <-c.quit:
			return
		}
		switch ok, more := c.commit(); {
		case !ok:
			delay = nextRetryDelay(delay, c.opts.FlushEvery)
		case more:
			delay = 0
		default:
			delay = c.opts.FlushEvery
		}
		tick.Reset(delay)
	}
}

// nextRetryDelay returns the delay before a failed write is repeated: twice the delay before it, at least
// flushEvery and at most maxRetryDelay, unless flushEvery is longer. The delay before a write that followed
// another at once is 0; without the least delay, a full disk would be tried again without a pause.
func nextRetryDelay(last, flushEvery time.Duration) time.Duration {
	return max(flushEvery, min(2*last, maxRetryDelay))
}

// wake makes the goroutine write now. It does not wait.
func (c *committer) wake() {
	select {
	case c.requests <- struct{}{}:
	default: // a request is pending
	}
}

// commit writes the batch that the last write failed to write, or else the next one. ok reports
// whether the write succeeded, and more whether another write should follow at once. If the store has
// failed for good, commit writes nothing and returns false.
func (c *committer) commit() (ok, more bool) {
	// Take the batch with the lock: it holds all calls up to this moment.
	c.storeMu.Lock()
	if c.file.status.hasFailed() {
		defer c.storeMu.Unlock()
		c.file.status.signalAttemptDone()
		return false, false
	}
	w, update, repair := c.journal.nextBatch(), c.file.update, c.file.status.err != nil
	c.storeMu.Unlock()

	// Write it without the lock: calls continue in memory meanwhile.
	var files []OutputFileExtent
	var err error
	if w != nil {
		files, err = c.write(w, update, repair)
	}

	// Record the result with the lock, and wake the calls that wait for it. If bbolt has faulted
	// during a read meanwhile, failOnFault has done so already.
	c.storeMu.Lock()
	defer c.storeMu.Unlock()
	if c.file.faulted {
		return false, false
	}
	c.file.status.recordAttempt(err)
	if w != nil && err == nil {
		c.journal.markBatchWritten(w, c.checkpointed)
		c.outputFiles.markCommitted(files)
	}
	c.file.status.signalAttemptDone()
	return err == nil, c.journal.isCheckpointUrgent()
}

// write syncs the output first, and then writes w and the lengths of the output files in one
// transaction. repair says that the last write has failed: then write first writes the meta pages of
// the file again. The caller does not hold storeMu.
func (c *committer) write(
	w *writeBatch, update func(func(*bbolt.Tx) error) error, repair bool,
) (files []OutputFileExtent, err error) {
	began := time.Now()
	err = catchFault(func() error {
		if repair {
			if err := c.file.rewriteMetaPages(); err != nil {
				return err
			}
		}
		// The output must be on the disk before the changes that depend on it.
		if err := c.opts.BeforeWrite(); err != nil {
			return &beforeWriteHookError{err}
		}
		files = c.changedOutputFiles()
		return update(func(tx *bbolt.Tx) error { return errors.Join(w.apply(tx), writeOutputFileLengths(tx, files)) })
	})
	if err == nil {
		c.opts.OnCommitted(time.Since(began))
	}
	return files, err
}

// changedOutputFiles returns the output files whose lengths differ from those in the store's file.
// Options.BeforeWrite has put these bytes on the disk.
func (c *committer) changedOutputFiles() []OutputFileExtent {
	if c.opts.ListOutputFiles == nil {
		return nil
	}
	files := c.opts.ListOutputFiles()
	c.storeMu.Lock()
	defer c.storeMu.Unlock()
	return c.outputFiles.changed(files)
}

// flush waits until all earlier calls are durable. If the last write has failed, it waits for one more
// attempt. The caller holds storeMu, which flush releases while it waits.
func (c *committer) flush(ctx context.Context) error {
	if c.file.status.hasFailed() {
		return c.file.status.err
	}
	// Earlier calls are in the batches that were begun, and in the next one if changes are pending.
	want := c.journal.lastBatchNumber
	if c.journal.unwrittenChangeCount() > 0 {
		want++
	}
	for c.journal.lastWrittenBatchNumber < want {
		attemptDone := c.file.status.attemptDone
		c.storeMu.Unlock()
		c.wake()
		var err error
		select {
		case <-attemptDone:
		case <-ctx.Done():
			err = ctx.Err()
		}
		c.storeMu.Lock()
		if err == nil {
			err = c.file.status.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stop ends the goroutine and writes what is left, until a write fails. The engine is closed already,
// so that no call adds changes meanwhile. It wakes the calls that wait for a write.
func (c *committer) stop() {
	close(c.quit)
	<-c.done
	for ok := true; ok && (c.journal.batchToWrite != nil || c.journal.unwrittenChangeCount() > 0); {
		ok, _ = c.commit()
	}
	close(c.file.status.attemptDone) // no attempt follows: waiting calls return ErrClosed
}
