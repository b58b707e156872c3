package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A storeFile is the open file of a store.
type storeFile struct {
	path   string
	db     *bbolt.DB
	osFile *os.File // of db
	status *writeHealth

	// The lock of the store guards these.
	update  func(func(*bbolt.Tx) error) error // db.Update, which fails when the disk is full
	faulted bool                              // bbolt faulted during a read: it is called no more
}

// open opens the file and calls load, which reads it. After an error the file is closed.
func (f *storeFile) open(noSync bool, load func() error) error {
	err := catchFault(func() (err error) {
		// The list of free pages is in the file (NoFreelistSync is false): else
		// bbolt would read the whole file to find them on being opened and
		// after a write that failed, in a goroutine whose panics nobody catches.
		f.db, err = bbolt.Open(f.path, 0o600, &bbolt.Options{
			Timeout:         time.Second,
			NoSync:          noSync,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: 1 << 28,
			OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
				opened, err := os.OpenFile(name, flag, perm)
				if f.osFile == nil { // not set again when bbolt opens a copy
					f.osFile = opened
				}
				return opened, err
			},
		})
		if err != nil {
			return err
		}
		f.update = f.db.Update
		return load()
	})
	switch {
	case err == nil:
		return nil
	case f.db != nil:
		f.db.Close()
	case f.osFile != nil:
		unlockFile(f.osFile) // bbolt did, and closed it, unless it panicked
		f.osFile.Close()
	}
	return explainOpenError(f.path, err)
}

// prepare checks that the file is whole, makes its buckets if it is new, and migrates it to
// the current format if it is old.
func (f *storeFile) prepare() error {
	if err := f.checkNotReplaced(); err != nil {
		return err
	}
	if err := f.db.View(checkNotTruncated); err != nil {
		return err
	}
	if err := f.db.Update(createBuckets); err != nil {
		return err
	}
	return migrate(f.db, checksumBatchBytes)
}

// view reads the file. It requires the lock of the store. After a fault it reads no more: bbolt may
// hold its own locks for good, and a call that needs them would never return.
func (f *storeFile) view(read func(*bbolt.Tx) error) error {
	if f.faulted {
		return f.status.err
	}
	err := catchFault(func() error { return f.db.View(read) })
	if errors.Is(err, errFault) {
		f.faulted = true
		f.status.failOnFault(err)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	return nil
}

// close marks the file as closed in order, unless the last write failed, and closes it. No
// call may use it meanwhile.
func (f *storeFile) close() error {
	err := f.status.err
	if err == nil {
		err = catchFault(func() error { return f.update(markClean) })
	}
	if err != nil {
		err = fmt.Errorf("close: what was not flushed is lost: %w", err)
	}
	if errors.Is(err, errFault) { // bbolt would wait for its own lock
		return errors.Join(err, f.closeWithoutBbolt())
	}
	failed := f.status.hasFailed()
	err = errors.Join(err, f.db.Close())
	if failed {
		dropPageCache(f.path)
	}
	return err
}

// closeWithoutBbolt closes a file in which bbolt faulted, without a call to bbolt.
func (f *storeFile) closeWithoutBbolt() error {
	unlockFile(f.osFile)
	return f.osFile.Close()
}

// FileStats is how large a store's file is.
type FileStats struct {
	Size                int64 // bytes
	FreeBytes           int64 // of them, which Compact would give back, about
	UnappliedLogChanges int   // changes in the log, which are not in their place yet
}

// stats returns how large the file is. It requires the lock of the store.
func (f *storeFile) stats() (stats FileStats, err error) {
	info, err := f.osFile.Stat()
	if err != nil {
		return stats, fmt.Errorf("size of %s: %w", f.path, err)
	}
	stats.Size = info.Size()
	pages := f.db.Stats()
	err = f.view(func(tx *bbolt.Tx) error {
		stats.FreeBytes = int64(pages.FreePageN+pages.PendingPageN)*int64(f.db.Info().PageSize) + max(0, stats.Size-tx.Size())
		return nil
	})
	return stats, err
}

// errFault says that bbolt has lost its way in the file.
var errFault = errors.New("the file makes no sense, or is cut short")

// catchFault returns an error where bbolt panics or faults on pages that make no
// sense, or are cut off.
func catchFault(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errFault, r)
		}
	}()
	return f()
}

// unknownProcess is who has the file, if that is all that is known.
const unknownProcess = "another process"

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
func (f *storeFile) checkNotReplaced() error {
	opened, err := f.osFile.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(f.path)
	if err == nil && !os.SameFile(opened, current) {
		err = errors.New("the file was replaced at this moment: try again")
	}
	return err
}

// rewriteMetaPages writes the two meta pages again as they are. After an fsync that
// failed, the system may take pages for written that are not; another fsync
// would not say so. bbolt writes all other pages of a transaction anew.
func (f *storeFile) rewriteMetaPages() error {
	if err := disk.RewriteSameBytes(f.osFile, 0, 2*int64(f.db.Info().PageSize)); err != nil {
		return err
	}
	return f.osFile.Sync()
}

// maxReports is how many damaged places are remembered, so that each is reported once.
const maxReports = 1000

// A damageReporter says what is damaged in a file: in errors, and to Options.OnDamaged. It
// requires the lock of its store.
type damageReporter struct {
	path      string
	onDamaged func(error)
	reported  map[string]bool // places in the file that onDamaged was told of
}

// errorf returns an error that says what is wrong in the file.
func (d *damageReporter) errorf(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s: restore it from a backup, or move it away to begin anew",
		d.path, fmt.Sprintf(format, args...))
}

// reportOnce reports damage in a place of the file the first time.
func (d *damageReporter) reportOnce(place, format string, args ...any) {
	if d.reported[place] {
		return
	}
	if d.reported == nil || len(d.reported) >= maxReports {
		d.reported = make(map[string]bool)
	}
	d.reported[place] = true
	d.onDamaged(fmt.Errorf("%s is damaged: %s", d.path, fmt.Sprintf(format, args...)))
}

// reportQuarantinedURL reports that a record of a URL was set aside.
func (d *damageReporter) reportQuarantinedURL(cause error) {
	d.onDamaged(fmt.Errorf("%s: one URL is set aside: %w", d.path, cause))
}
