package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// runCommitter is the committer. It writes every FlushEvery, when it is asked, and on
// and on while so much is held that calls may have to wait.
func (s *Store) runCommitter() {
	defer close(s.committerDone)
	delay := s.opts.FlushEvery
	tick := time.NewTimer(delay)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.commitRequests:
		case <-s.quit:
			return
		}
		switch ok, more := s.commit(); {
		case !ok:
			delay = max(delay, min(2*delay, maxRetryDelay))
		case more:
			delay = 0
		default:
			delay = s.opts.FlushEvery
		}
		tick.Reset(delay)
	}
}

// requestCommit asks the committer to write now.
func (s *Store) requestCommit() {
	select {
	case s.commitRequests <- struct{}{}:
	default: // it was asked already
	}
}

// commit writes what there is, or what could not be written the last time. It
// reports whether that went well, and whether it should go on at once. A store that
// has failed for good writes nothing more.
func (s *Store) commit() (ok, more bool) {
	s.mu.Lock()
	if s.status.hasFailed() {
		defer s.mu.Unlock()
		s.status.signalAttemptDone()
		return false, false
	}
	w, update, repair := s.journal.nextBatch(), s.file.update, s.status.err != nil
	s.mu.Unlock()
	var files []OutputFileExtent
	var err error
	if w != nil {
		files, err = s.writeBatch(w, update, repair)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file.faulted { // the store faulted meanwhile, and all calls that waited for this write have its error
		return false, false
	}
	s.status.recordAttempt(err)
	if w != nil && err == nil {
		s.journal.markBatchWritten(w, s.keepRecentOrigin)
		s.markOutputFilesCommitted(files)
	}
	s.status.signalAttemptDone()
	return err == nil, s.journal.isCheckpointUrgent()
}

// writeBatch syncs the output first, and then writes w and the lengths of the output's files
// into the file. With mend it makes up for a failed write.
func (s *Store) writeBatch(w *writeBatch, update func(func(*bbolt.Tx) error) error, repair bool) (files []OutputFileExtent, err error) {
	began := time.Now()
	err = catchFault(func() error {
		if repair {
			if err := s.file.rewriteMetaPages(); err != nil {
				return err
			}
		}
		if err := s.opts.BeforeWrite(); err != nil {
			return &beforeWriteHookError{err}
		}
		files = s.changedOutputFiles()
		return update(func(tx *bbolt.Tx) error { return errors.Join(w.apply(tx), writeOutputFileLengths(tx, files)) })
	})
	if err == nil {
		s.opts.OnCommitted(time.Since(began))
	}
	return files, err
}

// FailureChannel implements storage.FailureNotifier.
func (s *Store) FailureChannel() <-chan struct{} { return s.status.failedForGood }

// Flush implements storage.Store. If the last write has failed, it tries again.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.lockIfOpen(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.status.hasFailed() {
		return s.status.err
	}
	want := s.journal.lastBatchNumber
	if s.journal.unwrittenChangeCount() > 0 {
		want++
	}
	for s.journal.lastWrittenBatchNumber < want {
		attemptDone := s.status.attemptDone
		s.mu.Unlock()
		s.requestCommit()
		var err error
		select {
		case <-attemptDone:
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		if err == nil {
			err = s.status.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements storage.Store. Hosts of which a URL was out rest their Gap
// from now on, and PostInterruptionDelay at least, for those that have none yet: the end
// of its visit is not known. What is in the log stays there: the next one to
// open the file goes on from it. A store that has failed for good writes nothing at
// its end: the next Open finds what was durable before, as after a crash.
func (s *Store) Close() error {
	if err := s.lockIfOpen(context.Background()); err != nil {
		return err
	}
	s.closed = true
	if s.file.faulted {
		return s.closeFaulted()
	}
	for _, l := range s.leases {
		h := l.Origin.Queue.host
		h.PostponeUntil(s.opts.Now().Add(max(h.LostVisitDelay, s.opts.PostInterruptionDelay)))
		s.journal.markOriginAndHostChanged(l.Origin.Queue)
	}
	s.mu.Unlock()
	defer s.leaveMemoryBudget()
	close(s.quit)
	<-s.committerDone
	for ok := true; ok && (s.journal.batchToWrite != nil || s.journal.unwrittenChangeCount() > 0); {
		ok, _ = s.commit()
	}
	close(s.status.attemptDone) // there will be none: calls that wait for it are refused
	return s.file.close()
}

// closeFaulted closes the file of a store that has faulted, without a call to bbolt. It
// requires the lock, and releases it.
func (s *Store) closeFaulted() error {
	err := fmt.Errorf("close: what was not flushed is lost: %w", s.status.err)
	close(s.quit)
	s.status.signalAttemptDone()
	s.mu.Unlock()
	defer s.leaveMemoryBudget()
	return errors.Join(err, s.file.closeWithoutBbolt())
}
