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

// hasFailed reports whether the store has failed for good. It requires the lock.
func (s *Store) hasFailed() bool { return errors.Is(s.writeErr, storage.ErrFailed) }

// failOnBboltFault ends the store for good because bbolt faulted during a read. From then on the
// committer may wait forever for a lock of bbolt, so no call may wait for the
// committer. It requires the lock.
func (s *Store) failOnBboltFault(err error) {
	s.bboltFaulted = true
	if !s.hasFailed() {
		s.writeErr = s.wrapWriteError(err)
		close(s.failedForGoodSignal)
		s.opts.OnStallChange(s.writeErr)
	}
	s.signalWriteAttemptDone()
}

// wrapWriteError says what err means for the store; nil if err is.
func (s *Store) wrapWriteError(err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) && path.Path == s.path {
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
	return fmt.Errorf("%w: %s: %w: %s", kind, s.path, err, writeFailureRemedy(err))
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

// rewriteMetaPages writes the two meta pages again as they are. After an fsync that
// failed, the system may take pages for written that are not; another fsync
// would not say so. bbolt writes all other pages of a transaction anew.
func (s *Store) rewriteMetaPages() error {
	pages := make([]byte, 2*s.db.Info().PageSize)
	if _, err := s.file.ReadAt(pages, 0); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(pages, 0); err != nil {
		return err
	}
	return s.file.Sync()
}

// lockAndReportDamage is damageReporter.reportOnce for callers that do not hold the lock.
func (s *Store) lockAndReportDamage(place, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damage.reportOnce(place, format, args...)
}
