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
	is := func(cause error) bool { // of some errors bbolt keeps the text only
		return errors.Is(err, cause) || strings.HasSuffix(err.Error(), cause.Error())
	}
	switch {
	case is(errFault):
		return "stop the crawl, and restore the file from a backup"
	case is(syscall.ENOSPC):
		return "make room on the disk, and the crawl goes on"
	case is(syscall.EDQUOT), is(syscall.EFBIG):
		return "raise the quota or the limit on file sizes, and the crawl goes on"
	}
	return "look after the disk; the crawl goes on when it can be written again"
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

// damaged returns an error that says what is wrong in the file.
func (s *Store) damaged(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s: restore it from a backup, or move it away to begin anew",
		s.path, fmt.Sprintf(format, args...))
}
