package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// maxPause is how long the committer waits at most before it tries again to
// write what could not be written.
const maxPause = 5 * time.Second

// run is the committer.
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
		if s.commit() {
			pause = s.opts.FlushEvery
		} else {
			pause = max(pause, min(2*pause, maxPause))
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

// commit writes what is pending, or what could not be written the last time.
// It reports whether that went well.
func (s *Store) commit() bool {
	s.mu.Lock()
	if s.flushing == nil {
		s.flushing = s.take()
	}
	b, update := s.flushing, s.update
	s.mu.Unlock()
	var err error
	if b != nil {
		err = guard(func() error { return update(b.write) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err == nil) != (s.failed == nil) {
		s.failed = s.failure(err)
		s.opts.Stalled(s.failed)
	}
	if b != nil && err == nil {
		s.settle(b)
	}
	close(s.attempt)
	s.attempt = make(chan struct{})
	return err == nil
}

// take seals the pending batch and begins the next; nil if it is empty.
func (s *Store) take() *batch {
	b := s.pending
	if b.size == 0 {
		return nil
	}
	b.seal()
	s.pending = newBatch(b.number + 1)
	return b
}

// settle takes note that the batch is in the file.
func (s *Store) settle(b *batch) {
	for o := range b.origins {
		for i := range o.lanes {
			o.lanes[i].written(b.number)
		}
		o.parked.written(b.number)
	}
	s.flushing, s.written = nil, b.number
}

// failure says what err means for the store; nil if err is.
func (s *Store) failure(err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) && path.Path == s.path {
		err = path.Err // the path is said once
	}
	return fmt.Errorf("%w: %s: %w: %s", storage.ErrStalled, s.path, err, remedy(err))
}

// remedy says what to do so that the store can write again.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "make room on the disk, and the crawl goes on"
	case errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return "raise the quota or the limit on file sizes, and the crawl goes on"
	}
	return "look after the disk; the crawl goes on when it can be written again"
}

// Flush implements storage.Store. If the last write has failed, it tries again.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	want := s.pending.number
	if s.pending.size == 0 {
		want--
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
// from now on: the end of its visit is not known.
func (s *Store) Close() error {
	if err := s.lock(context.Background()); err != nil {
		return err
	}
	s.closed = true
	for _, l := range s.leases {
		h := l.Origin.Queue.host
		h.Rest(s.opts.Now().Add(h.Gap))
		s.pending.changedHost(h)
	}
	s.mu.Unlock()
	close(s.quit)
	<-s.ended
	for s.commit(); s.failed == nil && s.pending.size > 0; {
		s.commit()
	}
	err := s.failed
	if err == nil {
		err = guard(func() error { return s.update(markClean) })
	}
	if err != nil {
		err = fmt.Errorf("close: what was not flushed is lost: %w", err)
	}
	return errors.Join(err, s.db.Close())
}

// view reads the file.
func (s *Store) view(read func(*bbolt.Tx) error) error {
	return guard(func() error { return s.db.View(read) })
}

// damaged returns an error that says what is wrong in the file.
func (s *Store) damaged(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s: restore it from a backup, or move it away to begin anew",
		s.path, fmt.Sprintf(format, args...))
}

// guard returns an error where bbolt panics or faults on pages that make no sense.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file makes no sense: %v", r)
		}
	}()
	return f()
}
