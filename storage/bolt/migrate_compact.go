package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/internal/disk"
)

// oldestFormat is the oldest format that is migrated. Formats 1 and 2 are from before the
// first release.
const oldestFormat = 3

// migrate brings the file to the current format, one portion in each transaction, so that
// it may end between any two of them. A portion is about batchBytes bytes of values that
// get checksums.
func migrate(db *bbolt.DB, batchBytes int) error {
	for done := false; !done; {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			done, err = migrateBatch(tx, batchBytes)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrateBatch migrates the next portion, and reports whether the file has the current
// format.
func migrateBatch(tx *bbolt.Tx, batchBytes int) (done bool, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	from, err := readFormatVersion(meta)
	switch {
	case err != nil:
		return false, err
	case from > formatVersion:
		return false, fmt.Errorf("format %d is newer than this program's, %d: update the program", from, formatVersion)
	case from == 0:
		return false, fmt.Errorf("format 0: %w", binaryrecord.ErrDamaged)
	case from < oldestFormat:
		return false, fmt.Errorf("format %d is from before the first release, and decorum %s reads formats %d to %d: "+
			"use the program that wrote the file to run \"decorum frontier export\", and this one to run \"decorum frontier import\"",
			from, decorum.Version(), oldestFormat, formatVersion)
	case from == formatVersion && meta.Get([]byte(keyMigrationProgress)) != nil:
		return false, migrateChecksumBatch(tx, batchBytes)
	case from == formatVersion:
		return true, nil
	}
	if err := beginMigrateFormat3(tx); err != nil {
		return false, err
	}
	return false, writeMeta(tx, map[string][]byte{keyFormat: encodeUvarint(formatVersion)})
}

// In format 3, values have no checksums and the lengths of files are unknown. Format 4
// adds a checksum to every value in place, one portion in each transaction. The bucket
// meta records the progress, so that no value gets two checksums.
const checksumBatchBytes = 4 << 20 // keys and values of a portion, about

// format3Buckets are the buckets of format 3, in the order in which their values get
// checksums.
func format3Buckets() []string {
	return []string{
		bucketNames, bucketHosts, bucketOrigins, bucketURLs, bucketFingerprints, bucketRevisits, bucketNotes, bucketLog,
	}
}

// beginMigrateFormat3 begins the migration: from now on, programs of format 3 refuse the file.
func beginMigrateFormat3(tx *bbolt.Tx) error {
	for _, name := range format3Buckets() {
		if tx.Bucket([]byte(name)) == nil {
			return fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
		}
	}
	if _, err := tx.CreateBucketIfNotExists([]byte(bucketFiles)); err != nil {
		return err
	}
	meta := newChecksummedBucket(tx, bucketMeta)
	for _, key := range []string{keyClean, keyOpenCount, keyMinDue, keyCrashedAt} {
		if err := meta.setOrDelete([]byte(key), bytes.Clone(meta.Get([]byte(key)))); err != nil {
			return err
		}
	}
	return meta.setOrDelete([]byte(keyMigrationProgress), []byte{0})
}

// migrateChecksumBatch adds checksums to the next values.
func migrateChecksumBatch(tx *bbolt.Tx, batchBytes int) error {
	meta := newChecksummedBucket(tx, bucketMeta)
	at, err := meta.get([]byte(keyMigrationProgress))
	names := append(format3Buckets(), bucketHostCounts)
	if err != nil || len(at) == 0 || int(at[0]) > len(names) {
		return fmt.Errorf("%s: %w", keyMigrationProgress, binaryrecord.ErrDamaged)
	}
	index, last := at[0], bytes.Clone(at[1:]) // the last key of the portion before
	for ; int(index) < len(names); index, last = index+1, nil {
		b := newChecksummedBucket(tx, names[index])
		if b.Bucket == nil {
			continue
		}
		next, err := migrateBucketChecksums(b, last, batchBytes)
		if err != nil {
			return err
		}
		if next != nil {
			return meta.setOrDelete([]byte(keyMigrationProgress), append([]byte{index}, next...))
		}
	}
	return meta.Delete([]byte(keyMigrationProgress))
}

// migrateBucketChecksums adds checksums to values of a bucket, from the first key after last on, and
// returns the last key that it changed; nil at the end of the bucket.
func migrateBucketChecksums(b checksummedBucket, last []byte, batchBytes int) (next []byte, err error) {
	var keys, values [][]byte
	c := b.Cursor()
	key, value := c.First()
	if last != nil {
		if key, value = c.Seek(last); bytes.Equal(key, last) {
			key, value = c.Next()
		}
	}
	for size := 0; key != nil && size < batchBytes; key, value = c.Next() {
		keys, values = append(keys, bytes.Clone(key)), append(values, withChecksum(key, value))
		size += len(key) + len(value)
	}
	if len(keys) > 0 && key != nil {
		next = slices.Clone(keys[len(keys)-1])
	}
	b.FillPercent = fillPercent
	for i, key := range keys {
		if err := b.Put(key, values[i]); err != nil {
			return nil, err
		}
	}
	return next, nil
}

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
