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

// A storeFile is the open file of a store: bbolt, with its faults turned into errors.
type storeFile struct {
	path   string
	db     *bbolt.DB
	osFile *os.File // the file of db
	status *writeHealth

	// engine.mu guards update and faulted.
	update  func(func(*bbolt.Tx) error) error // db.Update; tests replace it to make writes fail
	faulted bool                              // bbolt has faulted during a read and must not be called
}

// open opens the file and calls load, which reads it. After an error the file is closed and unlocked.
func (f *storeFile) open(noSync bool, load func() error) error {
	err := catchFault(func() (err error) {
		// The list of free pages is written to the file (NoFreelistSync is false). Otherwise bbolt
		// would read the whole file to find them when it opens the file and after a failed write, in
		// a goroutine whose panics cannot be caught.
		f.db, err = openUnreplaced(f.path, bbolt.Options{
			Timeout:         time.Second,
			NoSync:          noSync,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: 1 << 28,
			OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
				opened, err := os.OpenFile(name, flag, perm)
				if f.db == nil { // later, bbolt opens copies
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
		unlockFile(f.osFile) // needed if bbolt panicked; otherwise it has unlocked and closed the file
		f.osFile.Close()
	}
	return explainOpenError(f.path, err)
}

// prepare checks that the file is whole, creates the buckets of a new file, and migrates an old one to
// the current format.
func (f *storeFile) prepare() error {
	if err := f.db.View(checkNotTruncated); err != nil {
		return err
	}
	if err := f.db.Update(createBuckets); err != nil {
		return err
	}
	return migrate(f.db, checksumBatchBytes)
}

// view calls read in a read transaction. The caller holds engine.mu. If bbolt faults, the store fails
// for good, and every later call of view returns its error without a call to bbolt: bbolt may hold its
// own locks forever, and a call that needs them would never return.
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

// close marks the file as closed cleanly, unless the last write has failed, and closes it. No other
// call may use the file meanwhile or afterwards.
func (f *storeFile) close() error {
	err := f.status.err
	if err == nil {
		err = catchFault(func() error { return f.update(markClean) })
	}
	if err != nil {
		err = fmt.Errorf("close: what was not flushed is lost: %w", err)
	}
	if errors.Is(err, errFault) { // db.Close would wait for a lock that bbolt still holds
		return errors.Join(err, f.closeWithoutBbolt())
	}
	failed := f.status.hasFailed()
	err = errors.Join(err, f.db.Close())
	if failed {
		dropPageCache(f.path)
	}
	return err
}

// closeWithoutBbolt unlocks and closes a file after a fault, without a call to bbolt.
func (f *storeFile) closeWithoutBbolt() error {
	unlockFile(f.osFile)
	return f.osFile.Close()
}

// FileStats are sizes of a store's file.
type FileStats struct {
	Size                int64 // size of the file in bytes
	FreeBytes           int64 // about the number of bytes that Compact would free
	UnappliedLogChanges int   // changes in the log
}

// stats returns the sizes of the file, without the changes in the log. The caller holds engine.mu.
func (f *storeFile) stats() (stats FileStats, err error) {
	info, err := f.osFile.Stat()
	if err != nil {
		return stats, fmt.Errorf("size of %s: %w", f.path, err)
	}
	stats.Size = info.Size()
	pages := f.db.Stats()
	err = f.view(func(tx *bbolt.Tx) error {
		stats.FreeBytes = int64(pages.FreePageN+pages.PendingPageN)*int64(f.db.Info().PageSize) + max(0,
			stats.Size-tx.Size())
		return nil
	})
	return stats, err
}

// errFault is wrapped by the error of a call in which bbolt panicked or faulted.
var errFault = errors.New("the file is damaged or truncated")

// catchFault calls f, and returns an error that wraps errFault if f panics or touches memory that is
// not mapped: bbolt does so on damaged pages and in a truncated file.
func catchFault(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errFault, r)
		}
	}()
	return f()
}

// unknownProcess is the result of lockHolder if the system does not tell the process.
const unknownProcess = "another process"

// explainOpenError returns err, an error of opening the file at path, with the path and a remedy.
func explainOpenError(path string, err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("in use by %s: %s", lockHolder(path), path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("open %s: %w", path, err)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrVersionMismatch),
		errors.Is(err, bbolterrors.ErrChecksum):
		return fmt.Errorf("%s is not the store of a crawl, or it is damaged: %w: give another path, or "+
			"restore it from a backup", path, err)
	}
	return fmt.Errorf("open %s: %w; if the file is damaged, restore it from a backup, or move it away to start over",
		path, err)
}

// checkNotTruncated returns an error if the file is shorter than bbolt has made it.
func checkNotTruncated(tx *bbolt.Tx) error {
	info, err := os.Stat(tx.DB().Path())
	if err == nil && info.Size() < tx.Size() {
		err = fmt.Errorf("truncated: %d bytes of %d: restore the file from a backup", info.Size(), tx.Size())
	}
	return err
}

// maxOpenTries is how often openUnreplaced opens a file.
const maxOpenTries = 10

// errReplaced is wrapped by the error of openUnreplaced for a file that is replaced at each try.
var errReplaced = errors.New("the file was replaced while it was opened: try again")

// openUnreplaced calls bbolt.Open. If Compact replaces the file while bbolt waits for its lock,
// openUnreplaced opens the new file: what a program writes to the old one is lost.
func openUnreplaced(path string, opts bbolt.Options) (*bbolt.DB, error) {
	openFile := opts.OpenFile
	if openFile == nil {
		openFile = os.OpenFile
	}
	var opened *os.File
	opts.OpenFile = func(name string, flag int, perm os.FileMode) (*os.File, error) {
		file, err := openFile(name, flag, perm)
		if opened == nil { // later, bbolt opens copies
			opened = file
		}
		return file, err
	}
	for try := 1; ; try++ {
		opened = nil
		db, err := bbolt.Open(path, 0o600, &opts)
		if err != nil {
			return nil, err
		}
		err = checkNotReplaced(opened, path)
		if err == nil {
			return db, nil
		}
		if err := errors.Join(err, db.Close()); try == maxOpenTries || !errors.Is(err, errReplaced) {
			return nil, err
		}
	}
}

// checkNotReplaced returns an error if path now names another file than opened.
func checkNotReplaced(opened *os.File, path string) error {
	old, err := opened.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(path)
	if err == nil && !os.SameFile(old, current) {
		err = errReplaced
	}
	return err
}

// rewriteMetaPages writes the two meta pages again, unchanged. After a failed fsync the system may
// treat pages as written that are not, and another fsync would not report it. All other pages of a
// transaction bbolt itself writes again.
func (f *storeFile) rewriteMetaPages() error {
	if err := disk.RewriteSameBytes(f.osFile, 0, 2*int64(f.db.Info().PageSize)); err != nil {
		return err
	}
	return f.osFile.Sync()
}

// maxReports is how many damaged places a damageReporter remembers.
const maxReports = 1000

// A damageReporter makes errors about damage in a file, and calls Options.OnDamaged. reportOnce
// requires engine.mu.
type damageReporter struct {
	path      string
	onDamaged func(error)
	reported  map[string]bool // places in the file that reportOnce has reported
}

// errorf returns an error that says what is damaged in the file, and names the remedy.
func (d *damageReporter) errorf(format string, args ...any) error {
	return fmt.Errorf("%s is damaged: %s: restore it from a backup, or move it away to start over",
		d.path, fmt.Sprintf(format, args...))
}

// reportOnce calls OnDamaged for damage in a place of the file, unless it did before. After maxReports
// places it forgets them and may report one again.
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

// reportQuarantinedURL calls OnDamaged for a record that was quarantined.
func (d *damageReporter) reportQuarantinedURL(cause error) {
	d.onDamaged(fmt.Errorf("%s: a damaged URL record is skipped: %w", d.path, cause))
}
