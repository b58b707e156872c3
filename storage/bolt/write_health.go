package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// maxRetryDelay is how long the committer waits at most before it tries again to
// write what could not be written.
const maxRetryDelay = 5 * time.Second

// A writeHealth says whether the store can write its file. It requires the lock of the
// store; the channel failedForGood may be waited for without it.
type writeHealth struct {
	path          string
	onStallChange func(error)
	err           error         // of the last write; nil: it succeeded; wraps ErrFailed: no write follows
	failedForGood chan struct{} // closed when the store has failed for good
	attemptDone   chan struct{} // closed, and replaced, when a write has ended
}

func newWriteStatus(path string, onStallChange func(error)) *writeHealth {
	return &writeHealth{
		path: path, onStallChange: onStallChange, failedForGood: make(chan struct{}), attemptDone: make(chan struct{}),
	}
}

// hasFailed reports whether the store has failed for good.
func (w *writeHealth) hasFailed() bool { return errors.Is(w.err, storage.ErrFailed) }

// recordAttempt notes how a write ended, and reports it if that changes whether the store
// can write.
func (w *writeHealth) recordAttempt(err error) {
	if isFatalWriteError(err) || (err == nil) != (w.err == nil) {
		w.set(err)
	}
}

// failOnFault ends the store for good because bbolt faulted during a read. From then on the
// committer may wait forever for a lock of bbolt, so no call may wait for the committer.
func (w *writeHealth) failOnFault(err error) {
	if !w.hasFailed() {
		w.set(err)
	}
	w.signalAttemptDone()
}

// set notes and reports the error of a write.
func (w *writeHealth) set(err error) {
	w.err = w.wrap(err)
	if w.hasFailed() {
		close(w.failedForGood)
	}
	w.onStallChange(w.err)
}

// signalAttemptDone wakes the calls that wait for the end of a write.
func (w *writeHealth) signalAttemptDone() {
	close(w.attemptDone)
	w.attemptDone = make(chan struct{})
}

// wrap says what err, of a write, means for the store; nil if err is.
func (w *writeHealth) wrap(err error) error {
	if err == nil {
		return nil
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == w.path {
		err = path.Err // the path is said once
	}
	kind := storage.ErrWriteStalled
	if isFatalWriteError(err) {
		kind = storage.ErrFailed
	}
	var before *beforeWriteHookError
	switch {
	case errors.Is(err, kind): // another store, which Before flushes, gives the reason and remedy
		return err
	case errors.As(err, &before) && !isDiskFull(err): // the error names the remedy
		return fmt.Errorf("%w: %w", kind, err)
	}
	if before != nil {
		return fmt.Errorf("%w: %w: %s", kind, err, writeFailureRemedy(err))
	}
	return fmt.Errorf("%w: %s: %w: %s", kind, w.path, err, writeFailureRemedy(err))
}

// isFatalWriteError reports whether err, of a write, ends the store. Only lack of room passes.
// After any other failure, of an fsync above all, the system may have dropped the
// written data, and a later successful fsync would not show the loss.
func isFatalWriteError(err error) bool {
	switch {
	case err == nil, errors.Is(err, storage.ErrWriteStalled): // the error of another store, which Before flushes
		return false
	case errors.Is(err, errFault), errors.Is(err, storage.ErrFailed):
		return true
	}
	return !isDiskFull(err)
}

// hasCause reports whether err has that cause. bbolt keeps only the text of some errors.
func hasCause(err, cause error) bool {
	return errors.Is(err, cause) || strings.HasSuffix(err.Error(), cause.Error())
}

// isDiskFull reports whether a write failed for lack of room.
func isDiskFull(err error) bool {
	return hasCause(err, syscall.ENOSPC) || hasCause(err, syscall.EDQUOT) || hasCause(err, syscall.EFBIG)
}

// A beforeWriteHookError is an error of Options.BeforeWrite: the store's file is not at fault.
type beforeWriteHookError struct{ error }

// Unwrap returns the error as Before returned it.
func (e *beforeWriteHookError) Unwrap() error { return e.error }

// writeFailureRemedy returns the remedy for a failed write.
func writeFailureRemedy(err error) string {
	switch {
	case errors.Is(err, errFault):
		return "stop the crawl, and restore the file from a backup"
	case hasCause(err, syscall.ENOSPC):
		return "make room on the disk, and the crawl goes on"
	case isDiskFull(err):
		return "raise the quota or the limit on file sizes, and the crawl goes on"
	}
	return "look after the disk, then start the crawl again: it goes on from what is on the disk"
}
