package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/decorum-crawler/decorum"
)

// Open opens the store at path, and makes it if there is none. Only one
// process can have it open. Close must be called in the end.
func Open(path string, opts Options) (*Store, error) {
	s := &Store{
		opts:           opts.withDefaults(),
		path:           path,
		commitRequests: make(chan struct{}, 1),
		quit:           make(chan struct{}),
		committerDone:  make(chan struct{}),
		memoryState: memoryState{
			hosts:           make(map[string]*loadedHost),
			origins:         make(map[decorum.Origin]*loadedOrigin),
			originsByNumber: make(map[uint32]*loadedOrigin),
			leases:          make(map[uint64]*lease),
		},
		writeBacklog: writeBacklog{redoLogState: redoLogState{nextSegment: 1}},
	}
	s.damage = damageReporter{path: path, onDamaged: s.opts.OnDamaged}
	s.status = newWriteStatus(path, s.opts.OnStallChange)
	if err := s.openAndLoadFile(); err != nil {
		return nil, err
	}
	s.leaveMemoryBudget = s.opts.SharedMemoryBudget.addStore()
	go s.runCommitter()
	return s, nil
}

// openAndLoadFile opens the file and loads what is in it.
func (s *Store) openAndLoadFile() error {
	err := catchFault(func() (err error) {
		// The list of free pages is in the file (NoFreelistSync is false): else
		// bbolt would read the whole file to find them on being opened and
		// after a write that failed, in a goroutine whose panics nobody catches.
		s.db, err = bbolt.Open(s.path, 0o600, &bbolt.Options{
			Timeout:         time.Second,
			NoSync:          s.opts.noSync,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: 1 << 28,
			OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, perm)
				if s.file == nil { // not set again when bbolt opens a copy
					s.file = f
				}
				return f, err
			},
		})
		if err != nil {
			return err
		}
		s.dbUpdate = s.db.Update
		return s.load()
	})
	switch {
	case err == nil:
		return nil
	case s.db != nil:
		s.db.Close()
	case s.file != nil:
		unlockFile(s.file) // bbolt did, and closed it, unless it panicked
		s.file.Close()
	}
	return explainOpenError(s.path, err)
}

// explainOpenError says what to do about an error of opening.
func explainOpenError(path string, err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("in use by %s: %s", lockHolder(path), path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("open %s: %w", path, err)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch),
		errors.Is(err, bbolterrors.ErrChecksum):
		return fmt.Errorf("%s is no store of a crawl, or it is damaged: %w: give another path, or restore it from a backup",
			path, err)
	}
	return fmt.Errorf("open %s: %w; if the file is damaged, restore it from a backup, or move it away to begin anew", path, err)
}

// checkNotTruncated returns an error if the end of the file is missing.
func checkNotTruncated(tx *bbolt.Tx) error {
	info, err := os.Stat(tx.DB().Path())
	if err == nil && info.Size() < tx.Size() {
		err = fmt.Errorf("cut short: %d bytes of %d: restore the file from a backup", info.Size(), tx.Size())
	}
	return err
}

// checkNotReplaced returns an error if another file has taken the place of the one that
// was opened: Compact had it when we came.
func (s *Store) checkNotReplaced() error {
	opened, err := s.file.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(s.path)
	if err == nil && !os.SameFile(opened, current) {
		err = errors.New("the file was replaced at this moment: try again")
	}
	return err
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
