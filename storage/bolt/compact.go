package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// compactTxBytes is how much one transaction of Compact writes, about.
const compactTxBytes = 16 << 20

// Compact writes the file of a store that nobody has open anew, without what is
// free in it. Until the last moment, when the new file takes the place of the
// old one, the old one stays as it is; the disk must have room for both.
func Compact(path string) (err error) {
	path, err = filepath.EvalSymlinks(path) // a link stays one
	if err != nil {
		return fmt.Errorf("compact: %w", err) // bbolt would make the file
	}
	err = catchFault(func() error {
		old, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return explainOpenError(path, err)
		}
		defer old.Close() // keeps others out until the new file is there
		return replaceWithCompacted(old, path)
	})
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}

func replaceWithCompacted(old *bbolt.DB, path string) (err error) {
	if err := old.View(checkCurrentFormat); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	next := path + ".compact"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // of an attempt before
	}
	defer os.Remove(next)
	db, err := bbolt.Open(next, 0o600, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = bbolt.Compact(db, old, compactTxBytes)
	if err == nil {
		err = db.Sync()
	}
	if err == nil {
		err = os.Chmod(next, info.Mode().Perm())
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// checkCurrentFormat returns an error if the file is not one of this format.
func checkCurrentFormat(tx *bbolt.Tx) error {
	if err := checkNotTruncated(tx); err != nil {
		return err
	}
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		return errors.New("a bbolt file of something else")
	}
	found, err := readFormatVersion(meta)
	if err == nil && (found != formatVersion || meta.Get([]byte(keyMigrationProgress)) != nil) {
		err = fmt.Errorf("format %d, this program's is %d: open the store with it first, which brings it to that", found, formatVersion)
	}
	return err
}
