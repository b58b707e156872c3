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

// maxPause is how long the committer waits at most before it tries again to
// write what could not be written.
const maxPause = 5 * time.Second

// isFinal reports whether err, of a write, ends the store. Only lack of room passes.
// After any other failure, of an fsync above all, the system may have dropped the
// written data, and a later successful fsync would not show the loss.
func isFinal(err error) bool {
	switch {
	case err == nil, errors.Is(err, storage.ErrStalled): // the error of another store, which Before flushes
		return false
	case errors.Is(err, errFault), errors.Is(err, storage.ErrFailed):
		return true
	}
	return !isDiskFull(err)
}

// hasFailed reports whether the store has failed for good. It requires the lock.
func (s *Store) hasFailed() bool { return errors.Is(s.failed, storage.ErrFailed) }

// fault ends the store for good because bbolt faulted during a read. From then on the
// committer may wait forever for a lock of bbolt, so no call may wait for the
// committer. It requires the lock.
func (s *Store) fault(err error) {
	s.faulted = true
	if !s.hasFailed() {
		s.failed = s.failure(err)
		close(s.broke)
		s.opts.Stalled(s.failed)
	}
	s.endAttempt()
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
	kind := storage.ErrStalled
	if isFinal(err) {
		kind = storage.ErrFailed
	}
	var before *beforeError
	switch {
	case errors.Is(err, kind): // another store, which Before flushes, gives the reason and remedy
		return err
	case errors.As(err, &before) && !isDiskFull(err): // the error names the remedy
		return fmt.Errorf("%w: %w", kind, err)
	}
	if before != nil {
		return fmt.Errorf("%w: %w: %s", kind, err, remedy(err))
	}
	return fmt.Errorf("%w: %s: %w: %s", kind, s.path, err, remedy(err))
}

// isCause reports whether err has that cause. bbolt keeps only the text of some errors.
func isCause(err, cause error) bool {
	return errors.Is(err, cause) || strings.HasSuffix(err.Error(), cause.Error())
}

// isDiskFull reports whether a write failed for lack of room.
func isDiskFull(err error) bool {
	return isCause(err, syscall.ENOSPC) || isCause(err, syscall.EDQUOT) || isCause(err, syscall.EFBIG)
}

// A beforeError is an error of Options.Before: the store's file is not at fault.
type beforeError struct{ error }

// Unwrap returns the error as Before returned it.
func (e *beforeError) Unwrap() error { return e.error }

// remedy returns the remedy for a failed write.
func remedy(err error) string {
	switch {
	case errors.Is(err, errFault):
		return "stop the crawl, and restore the file from a backup"
	case isCause(err, syscall.ENOSPC):
		return "make room on the disk, and the crawl goes on"
	case isDiskFull(err):
		return "raise the quota or the limit on file sizes, and the crawl goes on"
	}
	return "look after the disk, then start the crawl again: it goes on from what is on the disk"
}

// rewriteMeta writes the two meta pages again as they are. After an fsync that
// failed, the system may take pages for written that are not; another fsync
// would not say so. bbolt writes all other pages of a transaction anew.
func (s *Store) rewriteMeta() error {
	pages := make([]byte, 2*s.db.Info().PageSize)
	if _, err := s.file.ReadAt(pages, 0); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(pages, 0); err != nil {
		return err
	}
	return s.file.Sync()
}

// maxReports is how many damaged places are remembered, so that each is reported once.
const maxReports = 1000

// reportOnce reports damage in a place of the file the first time. It requires the
// lock.
func (s *Store) reportOnce(place, format string, args ...any) {
	if s.reported[place] {
		return
	}
	if s.reported == nil || len(s.reported) >= maxReports {
		s.reported = make(map[string]bool)
	}
	s.reported[place] = true
	s.opts.Damaged(fmt.Errorf("%s is damaged: %s", s.path, fmt.Sprintf(format, args...)))
}

// reportDamaged is reportOnce for callers that do not hold the lock.
func (s *Store) reportDamaged(place, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportOnce(place, format, args...)
}

// damaged returns an error that says what is wrong in the file.
func (s *Store) damaged(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s: restore it from a backup, or move it away to begin anew",
		s.path, fmt.Sprintf(format, args...))
}
