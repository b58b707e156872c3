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

// maxRetryDelay is the longest delay before the committer repeats a failed write, unless
// Options.FlushEvery is longer.
const maxRetryDelay = 5 * time.Second

// A writeHealth records whether the store can write its file. Its methods require engine.mu. The
// channel failedForGood never changes and may be read without the lock.
type writeHealth struct {
	path          string
	onStallChange func(error)   // Options.OnStallChange
	err           error         // error of the last write; nil: it succeeded; ErrFailed: no write follows
	failedForGood chan struct{} // closed when the store has failed for good
	attemptDone   chan struct{} // closed and replaced whenever a write has ended
}

func newWriteStatus(path string, onStallChange func(error)) *writeHealth {
	return &writeHealth{
		path: path, onStallChange: onStallChange, failedForGood: make(chan struct{}), attemptDone: make(chan struct{}),
	}
}

// hasFailed reports whether the store has failed for good.
func (w *writeHealth) hasFailed() bool { return errors.Is(w.err, storage.ErrFailed) }

// recordAttempt records the result of a write, and reports it if it changes whether the store can
// write.
func (w *writeHealth) recordAttempt(err error) {
	if isFatalWriteError(err) || (err == nil) != (w.err == nil) {
		w.set(err)
	}
}

// failOnFault makes the store fail for good because bbolt has faulted during a read. From then on the
// committer may wait forever for a lock of bbolt, so no call may wait for the committer.
func (w *writeHealth) failOnFault(err error) {
	if !w.hasFailed() {
		w.set(err)
	}
	w.signalAttemptDone()
}

// set records and reports the error of a write; nil: the store can write again.
func (w *writeHealth) set(err error) {
	w.err = w.wrap(err)
	if w.hasFailed() {
		close(w.failedForGood)
	}
	w.onStallChange(w.err)
}

// signalAttemptDone wakes all calls that wait for the end of a write.
func (w *writeHealth) signalAttemptDone() {
	close(w.attemptDone)
	w.attemptDone = make(chan struct{})
}

// wrap returns err, the error of a write, as an error that wraps storage.ErrWriteStalled or
// storage.ErrFailed and names the remedy. It returns nil for a nil err.
func (w *writeHealth) wrap(err error) error {
	if err == nil {
		return nil
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == w.path {
		err = path.Err // the message below names the path
	}
	kind := storage.ErrWriteStalled
	if isFatalWriteError(err) {
		kind = storage.ErrFailed
	}
	var before *beforeWriteHookError
	switch {
	case errors.Is(err, kind): // of another store that BeforeWrite flushes; it names reason and remedy
		return err
	case errors.As(err, &before) && !isDiskFull(err): // BeforeWrite names the remedy
		return fmt.Errorf("%w: %w", kind, err)
	}
	if before != nil {
		return fmt.Errorf("%w: %w: %s", kind, err, writeFailureRemedy(err))
	}
	return fmt.Errorf("%w: %s: %w: %s", kind, w.path, err, writeFailureRemedy(err))
}

// isFatalWriteError reports whether err, the error of a write, makes the store fail for good. Only a
// lack of space does not. After any other failure, of an fsync above all, the system may have dropped
// the written data, and a later fsync that succeeds would not show the loss.
func isFatalWriteError(err error) bool {
	switch {
	case err == nil, errors.Is(err, storage.ErrWriteStalled): // of another store that BeforeWrite flushes
		return false
	case errors.Is(err, errFault), errors.Is(err, storage.ErrFailed):
		return true
	}
	return !isDiskFull(err)
}

// hasCause reports whether err wraps cause or ends with its text: bbolt keeps only the text of some
// errors.
func hasCause(err, cause error) bool {
	return errors.Is(err, cause) || strings.HasSuffix(err.Error(), cause.Error())
}

// isDiskFull reports whether a write failed for lack of space: of the disk (ENOSPC), of the quota
// (EDQUOT) or because of the limit on file sizes (EFBIG).
func isDiskFull(err error) bool {
	return hasCause(err, syscall.ENOSPC) || hasCause(err, syscall.EDQUOT) || hasCause(err, syscall.EFBIG)
}

// A beforeWriteHookError is an error of Options.BeforeWrite, as opposed to one of the store's file.
type beforeWriteHookError struct{ error }

// Unwrap returns the error that BeforeWrite returned.
func (e *beforeWriteHookError) Unwrap() error { return e.error }

// writeFailureRemedy returns the end of a message, which says what the operator can do.
func writeFailureRemedy(err error) string {
	switch {
	case errors.Is(err, errFault):
		return "stop the crawl, and restore the file from a backup"
	case hasCause(err, syscall.ENOSPC):
		return "free some space on the disk, and the crawl continues"
	case isDiskFull(err):
		return "raise the quota or the limit on file sizes, and the crawl continues"
	}
	return "check the disk, then start the crawl again: it continues from what is on the disk"
}
