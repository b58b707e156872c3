package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// TestFailedForGood: an error other than a lack of space makes the store fail for good, whether it is of
// the file or of BeforeWrite, and although the next write would succeed. The store writes nothing after
// it. A store that is opened again has the state that was durable before.
func TestFailedForGood(t *testing.T) {
	for name, cause := range map[string]error{
		"EIO": syscall.EIO, "EROFS": syscall.EROFS, "ENXIO": syscall.ENXIO,
		"ENODEV": syscall.ENODEV, "EBADF": syscall.EBADF,
		"ESTALE": syscall.ESTALE, "closed": fs.ErrClosed,
		"text alone":    errors.New("pages.jsonl may not be on the disk"),
		"another store": fmt.Errorf("robots.db: %w", storage.ErrFailed),
	} {
		t.Run(name, func(t *testing.T) { testFailedForGood(t, cause, true) })
		t.Run(name+" of BeforeWrite", func(t *testing.T) { testFailedForGood(t, cause, false) })
	}
}

func testFailedForGood(t *testing.T, cause error, ofFile bool) {
	dir := t.TempDir()
	var beforeErr error // of BeforeWrite
	var reported []error
	s := openWithoutCommitter(t, dir, Options{noSync: true, BeforeWrite: func() error { return beforeErr },
		OnStallChange: func(err error) { reported = append(reported, err) }})
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	s.engine.committer.commit()
	addEntries(t, s, newEntry(t, "https://a.example/2"))
	writes := 0
	s.setUpdate(func(write func(*bbolt.Tx) error) error {
		if writes++; ofFile && writes == 1 {
			return &fs.PathError{Op: "sync", Path: s.engine.file.path, Err: cause}
		}
		return s.engine.file.db.Update(write)
	})
	if !ofFile {
		beforeErr = cause
	}
	s.engine.committer.commit()
	beforeErr = nil // the next fsync would succeed
	written := writes
	s.engine.committer.commit()
	if writes != written {
		t.Errorf("%d writes after the failure, want none", writes-written)
	}
	ctx, o := t.Context(), newEntry(t, "https://a.example/").URL.Origin()
	_, _, lease := s.Lease(ctx, time.Now(), time.Minute, 1)
	_, adding := s.Add(ctx, []storage.Entry{newEntry(t, "https://a.example/3")}, 0)
	for call, err := range map[string]error{
		"Lease": lease, "Add": adding, "Ack": s.Ack(ctx, nil),
		"SetNote": s.SetNote(ctx, o, "key", nil), "Flush": s.Flush(ctx),
		"Hold": s.Hold(ctx, o, time.Now(), false),
	} {
		if !errors.Is(err, storage.ErrFailed) || !errors.Is(err, cause) || errors.Is(err, storage.ErrWriteStalled) {
			t.Errorf("%s: %v, want %v because of %v", call, err, storage.ErrFailed, cause)
		}
	}
	select {
	case <-s.FailureChannel():
	default:
		t.Error("FailureChannel is not closed")
	}
	if len(reported) != 1 || !errors.Is(reported[0], storage.ErrFailed) {
		t.Errorf("reported %v, want the failure once", reported)
	}
	if c := must1(s.Counts(ctx)); c.QueuedURLs != 2 {
		t.Errorf("counts %+v, want both URLs", c)
	}
	s.engine.committer.quit = make(chan struct{}) // Close closes it again
	if err := s.Close(); !errors.Is(err, storage.ErrFailed) || writes != written {
		t.Errorf("Close: %v, after %d more writes", err, writes-written)
	}
	s = openStore(t, dir, Options{noSync: true, PostInterruptionDelay: time.Hour})
	defer s.Close()
	if c := must1(s.Counts(ctx)); c.QueuedURLs != 1 {
		t.Errorf("counts %+v, want what was durable", c)
	}
	if leases := mustLease(t, s, time.Now(), 1); len(leases) > 0 {
		t.Error("the host is due at once, want the delay after a crash")
	}
}

// TestDiskFullIsTemporary: errors for lack of space stall the store, also if bbolt keeps only their text.
// Other errors do not.
func TestDiskFullIsTemporary(t *testing.T) {
	for _, err := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, fmt.Errorf("file resize error: %s", syscall.ENOSPC),
		fmt.Errorf("robots.db: %w", storage.ErrWriteStalled),
	} {
		w := &writeHealth{path: "frontier.db"}
		if got := w.wrap(err); isFatalWriteError(err) || !errors.Is(got, storage.ErrWriteStalled) ||
			errors.Is(got, storage.ErrFailed) {
			t.Errorf("%v makes the store fail: %v", err, got)
		}
	}
	w := &writeHealth{path: "frontier.db"}
	if got := w.wrap(fmt.Errorf("sync: %w", syscall.EIO)).Error(); !strings.Contains(got, "start the crawl again") {
		t.Errorf("%q does not say what to do", got)
	}
}

// TestFailureEndsWaiting: a call that waits because the journal is full, and a Flush, return when the
// store fails.
func TestFailureEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWithoutCommitter(t, t.TempDir(), Options{MaxBufferedChanges: 10, noSync: true})
		defer s.engine.file.db.Close()
		for i := range 10 {
			addEntries(t, s, newEntry(t, "https://a.example/%d", i))
			if s.engine.journal.bufferedChangeCount >= 10 {
				break
			}
		}
		ends := make(chan error)
		go func() {
			_, err := s.Add(t.Context(), []storage.Entry{newEntry(t, "https://a.example/more")}, 0)
			ends <- err
		}()
		go func() { ends <- s.Flush(t.Context()) }()
		synctest.Wait()
		s.setUpdate(func(func(*bbolt.Tx) error) error { return syscall.EIO })
		s.engine.committer.commit()
		for range 2 {
			if err := <-ends; !errors.Is(err, storage.ErrFailed) {
				t.Errorf("returned %v, want %v", err, storage.ErrFailed)
			}
		}
	})
}

// TestFaultWhileReading: the file is truncated while it is mapped, so that bbolt faults during a read and
// never releases one of its locks. The store has failed for good: no call waits for that lock, and Close
// returns.
func TestFaultWhileReading(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{FlushEvery: time.Hour})
	e := newEntry(t, "https://a.example/1")
	addEntries(t, s, e)
	must(t, s.Flush(t.Context()))
	addEntries(t, s, newEntry(t, "https://a.example/2")) // Close would have to write it
	must(t, os.Truncate(storePath(dir), 0))
	for range 2 {
		if _, err := s.ReadNote(t.Context(), e.URL.Origin(), "key"); !errors.Is(err, errFault) {
			t.Errorf("a note is read with error %v, want a fault", err)
		}
	}
	select {
	case <-s.FailureChannel():
	default:
		t.Error("the store has not failed")
	}
	if err := s.Flush(t.Context()); !errors.Is(err, storage.ErrFailed) {
		t.Errorf("flush: %v", err)
	}
	if err := s.Close(); !errors.Is(err, storage.ErrFailed) {
		t.Errorf("close: %v", err)
	}
}

// TestWriteStatus: OnStallChange is called for each change between writing, stalled and failed, and not
// for a repetition.
func TestWriteStatus(t *testing.T) {
	var reported []error
	w := newWriteStatus("frontier.db", func(err error) { reported = append(reported, err) })
	for i, step := range []struct {
		err         error
		wantReports int
		wantStatus  error
	}{
		{nil, 0, nil}, {syscall.ENOSPC, 1, storage.ErrWriteStalled},
		{syscall.EDQUOT, 1, storage.ErrWriteStalled}, {nil, 2, nil},
		{syscall.EDQUOT, 3, storage.ErrWriteStalled}, {syscall.EIO, 4, storage.ErrFailed},
	} {
		if w.recordAttempt(step.err); len(reported) != step.wantReports || !errors.Is(w.err, step.wantStatus) {
			t.Errorf("step %d: %d reports, the last %v, want %d; status %v, want %v", i, len(reported), reported,
				step.wantReports, w.err, step.wantStatus)
		}
	}
	attempt := w.attemptDone
	w.failOnFault(errFault)
	for name, done := range map[string]chan struct{}{"failedForGood": w.failedForGood, "attemptDone": attempt} {
		select {
		case <-done:
		default:
			t.Errorf("%s is open", name)
		}
	}
	if len(reported) != 4 || !errors.Is(w.err, syscall.EIO) {
		t.Errorf("a fault after the failure is reported: %v, %v", reported, w.err)
	}
}
