package bolt

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// A committer is the goroutine that writes the changes of a store to its file: all calls of a
// moment in one transaction. run is the goroutine, and stop ends it.
type committer struct {
	storeMu     *sync.Mutex // the store's lock: it guards file, journal and outputFiles
	opts        *Options
	file        *storeFile
	journal     *journal
	outputFiles *outputFiles
	// checkpointed is called, with the lock, with each origin of which changes were brought to
	// their place.
	checkpointed func(*residentOrigin)

	requests chan struct{} // asks the goroutine to write now
	quit     chan struct{} // closed to end it
	done     chan struct{} // closed by it
}

// run writes every FlushEvery, when it is asked, and on and on while so much is held that calls
// may have to wait, until stop is called.
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
			delay = max(delay, min(2*delay, maxRetryDelay))
		case more:
			delay = 0
		default:
			delay = c.opts.FlushEvery
		}
		tick.Reset(delay)
	}
}

// wake asks for a write now.
func (c *committer) wake() {
	select {
	case c.requests <- struct{}{}:
	default: // it was asked already
	}
}

// commit writes what there is, or what could not be written the last time. It
// reports whether that went well, and whether it should go on at once. A store that
// has failed for good writes nothing more.
func (c *committer) commit() (ok, more bool) {
	c.storeMu.Lock()
	if c.file.status.hasFailed() {
		defer c.storeMu.Unlock()
		c.file.status.signalAttemptDone()
		return false, false
	}
	w, update, repair := c.journal.nextBatch(), c.file.update, c.file.status.err != nil
	c.storeMu.Unlock()
	var files []OutputFileExtent
	var err error
	if w != nil {
		files, err = c.write(w, update, repair)
	}
	c.storeMu.Lock()
	defer c.storeMu.Unlock()
	if c.file.faulted { // the store faulted meanwhile, and all calls that waited for this write have its error
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

// write syncs the output first, and then writes w and the lengths of the output's files
// into the file. With repair it makes up for a failed write.
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

// changedOutputFiles returns the files whose new lengths are not yet in the store's file.
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

// flush makes all earlier calls durable. If the last write has failed, it tries again. It
// requires the lock, which it gives up while it waits.
func (c *committer) flush(ctx context.Context) error {
	if c.file.status.hasFailed() {
		return c.file.status.err
	}
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

// stop ends the goroutine and writes what is left, unless a write fails. No call that changes
// something may be made meanwhile. Calls that wait for a write are woken.
func (c *committer) stop() {
	close(c.quit)
	<-c.done
	for ok := true; ok && (c.journal.batchToWrite != nil || c.journal.unwrittenChangeCount() > 0); {
		ok, _ = c.commit()
	}
	close(c.file.status.attemptDone) // there will be none: calls that wait for it are refused
}
