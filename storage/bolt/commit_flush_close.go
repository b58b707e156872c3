package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// run is the committer. It writes every FlushEvery, when it is asked, and on
// and on while so much is held that calls may have to wait.
func (s *Store) run() {
	defer close(s.ended)
	pause := s.opts.FlushEvery
	tick := time.NewTimer(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.kick:
		case <-s.quit:
			return
		}
		switch well, more := s.commit(); {
		case !well:
			pause = max(pause, min(2*pause, maxPause))
		case more:
			pause = 0
		default:
			pause = s.opts.FlushEvery
		}
		tick.Reset(pause)
	}
}

// wake asks the committer to write now.
func (s *Store) wake() {
	select {
	case s.kick <- struct{}{}:
	default: // it was asked already
	}
}

// commit writes what there is, or what could not be written the last time. It
// reports whether that went well, and whether it should go on at once. A store that
// has failed for good writes nothing more.
func (s *Store) commit() (well, more bool) {
	s.mu.Lock()
	if s.hasFailed() {
		defer s.mu.Unlock()
		s.endAttempt()
		return false, false
	}
	if s.writing == nil {
		s.writing = s.seal()
	}
	w, update, mend := s.writing, s.update, s.failed != nil
	s.mu.Unlock()
	var files []File
	var err error
	if w != nil {
		files, err = s.write(w, update, mend)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faulted { // the store faulted meanwhile, and all calls that waited for this write have its error
		return false, false
	}
	if isFinal(err) || (err == nil) != (s.failed == nil) {
		s.failed = s.failure(err)
		if s.hasFailed() {
			close(s.broke)
		}
		s.opts.Stalled(s.failed)
	}
	if w != nil && err == nil {
		s.settle(w)
		s.settleFiles(files)
	}
	s.endAttempt()
	return err == nil, s.presses()
}

// write syncs the output first, and then writes w and the lengths of the output's files
// into the file. With mend it makes up for a failed write.
func (s *Store) write(w *write, update func(func(*bbolt.Tx) error) error, mend bool) (files []File, err error) {
	began := time.Now()
	err = guard(func() error {
		if mend {
			if err := s.rewriteMeta(); err != nil {
				return err
			}
		}
		if err := s.opts.Before(); err != nil {
			return &beforeError{err}
		}
		files = s.changedFiles()
		return update(func(tx *bbolt.Tx) error { return errors.Join(w.apply(tx), putFiles(tx, files)) })
	})
	if err == nil {
		s.opts.Committed(time.Since(began))
	}
	return files, err
}

// endAttempt wakes the calls that wait for the end of a write. It requires the lock.
func (s *Store) endAttempt() {
	close(s.attempt)
	s.attempt = make(chan struct{})
}

// Failed implements storage.Failer.
func (s *Store) Failed() <-chan struct{} { return s.broke }

// Flush implements storage.Store. If the last write has failed, it tries again.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.hasFailed() {
		return s.failed
	}
	want := s.writes
	if s.unsaved() > 0 {
		want++
	}
	for s.written < want {
		attempt := s.attempt
		s.mu.Unlock()
		s.wake()
		var err error
		select {
		case <-attempt:
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		if err == nil {
			err = s.failed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Close implements storage.Store. Hosts of which a URL was out rest their Gap
// from now on, and RestartDelay at least, for those that have none yet: the end
// of its visit is not known. What is in the log stays there: the next one to
// open the file goes on from it. A store that has failed for good writes nothing at
// its end: the next Open finds what was durable before, as after a crash.
func (s *Store) Close() error {
	if err := s.lock(context.Background()); err != nil {
		return err
	}
	s.closed = true
	if s.faulted {
		return s.abandon()
	}
	for _, l := range s.leases {
		h := l.Origin.Queue.host
		h.Rest(s.opts.Now().Add(max(h.Gap, s.opts.RestartDelay)))
		s.touchHost(l.Origin.Queue)
	}
	s.mu.Unlock()
	defer s.leave()
	close(s.quit)
	<-s.ended
	for well := true; well && (s.writing != nil || s.unsaved() > 0); {
		well, _ = s.commit()
	}
	close(s.attempt) // there will be none: calls that wait for it are refused
	err := s.failed
	if err == nil {
		err = guard(func() error { return s.update(markClean) })
	}
	if err != nil {
		err = fmt.Errorf("close: what was not flushed is lost: %w", err)
	}
	if errors.Is(err, errFault) { // bbolt would wait for its own lock
		unlock(s.file)
		return errors.Join(err, s.file.Close())
	}
	failed := s.hasFailed()
	err = errors.Join(err, s.db.Close())
	if failed {
		dropCache(s.path)
	}
	return err
}

// abandon closes the file of a store that has faulted, without a call to bbolt. It
// requires the lock, and releases it.
func (s *Store) abandon() error {
	err := fmt.Errorf("close: what was not flushed is lost: %w", s.failed)
	close(s.quit)
	s.endAttempt()
	s.mu.Unlock()
	defer s.leave()
	unlock(s.file)
	return errors.Join(err, s.file.Close())
}

// errFault says that bbolt has lost its way in the file.
var errFault = errors.New("the file makes no sense, or is cut short")

// guard returns an error where bbolt panics or faults on pages that make no
// sense, or are cut off.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errFault, r)
		}
	}()
	return f()
}
