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

// oldestFormat is the oldest format that Open migrates. Formats 1 and 2 are older than the first
// release.
const oldestFormat = 3

// migrate migrates the file to the current format. Each transaction migrates about batchBytes bytes of
// values, so that an interrupted migration continues from its last transaction.
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

// migrateBatch does the next step of the migration, and reports whether the file has the current
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
			"use the program that wrote the file to run \"decorum frontier export\", and this one to run \"decorum "+
			"frontier import\"",
			from, decorum.Version(), oldestFormat, formatVersion)
	case from == formatVersion && meta.Get([]byte(keyMigrationProgress)) != nil:
		return false, migrateChecksumBatch(tx, batchBytes)
	case from == formatVersion:
		return true, nil
	}
	// The file has format 3: begin the migration, which later transactions continue.
	if err := beginMigrateFormat3(tx); err != nil {
		return false, err
	}
	return false, writeMeta(tx, map[string][]byte{keyFormat: encodeUvarint(formatVersion)})
}

// checksumBatchBytes is about the number of bytes of keys and values that one transaction of the
// migration from format 3 to 4 changes. In format 3, values have no checksums, and the lengths of
// output files are unknown. The migration adds a checksum to every value in place. The bucket meta
// records the progress, so that no value gets two checksums.
const checksumBatchBytes = 4 << 20

// format3Buckets returns the buckets of format 3, in the order in which their values get checksums.
func format3Buckets() []string {
	return []string{
		bucketNames, bucketHosts, bucketOrigins, bucketURLs, bucketFingerprints, bucketRevisits, bucketNotes, bucketLog,
	}
}

// beginMigrateFormat3 begins the migration from format 3: it adds checksums to the bucket meta and
// records that it has begun. migrateBatch then sets the format, so that programs of format 3 refuse the file.
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

// migrateChecksumBatch adds checksums to the next values, and records the last one or the end.
func migrateChecksumBatch(tx *bbolt.Tx, batchBytes int) error {
	// The progress is the index of a bucket, followed by the last key that has a checksum.
	meta := newChecksummedBucket(tx, bucketMeta)
	at, err := meta.get([]byte(keyMigrationProgress))
	names := append(format3Buckets(), bucketHostCounts)
	if err != nil || len(at) == 0 || int(at[0]) > len(names) {
		return fmt.Errorf("%s: %w", keyMigrationProgress, binaryrecord.ErrDamaged)
	}
	index, last := at[0], bytes.Clone(at[1:])
	for ; int(index) < len(names); index, last = index+1, nil {
		b := newChecksummedBucket(tx, names[index])
		if b.Bucket == nil { // an old file may lack the bucket counted
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

// migrateBucketChecksums adds checksums to about batchBytes bytes of a bucket, from the first key after
// last on. It returns the last key that it changed, nil at the end of the bucket.
func migrateBucketChecksums(b checksummedBucket, last []byte, batchBytes int) (next []byte, err error) {
	// Collect first, and change after: a cursor is invalid after a change.
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

// compactTxBytes is about the number of bytes that one transaction of Compact writes.
const compactTxBytes = 16 << 20

// Compact rewrites the file of a store without its free pages. No process may have the store open. The
// old file is unchanged until the new one replaces it at the end; the disk must have space for both.
func Compact(path string) (err error) {
	path, err = filepath.EvalSymlinks(path) // replace the file, not a link to it
	if err != nil {
		return fmt.Errorf("compact: %w", err) // bbolt would create a missing file
	}
	err = catchFault(func() error {
		old, err := openUnreplaced(path, bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return explainOpenError(path, err)
		}
		defer old.Close() // until then its lock keeps other processes out
		return replaceWithCompacted(old, path)
	})
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}

// replaceWithCompacted copies the used pages of old into a new file, and renames it to path.
func replaceWithCompacted(old *bbolt.DB, path string) (err error) {
	if err := old.View(checkCurrentFormat); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	// Write the copy beside the file, with the same permissions, and sync it.
	next := path + ".compact"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // the file is of an earlier attempt
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
	// Replace the file, and make the rename durable.
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// checkCurrentFormat returns an error if the file is truncated, belongs to another program, or does not
// have the current format.
func checkCurrentFormat(tx *bbolt.Tx) error {
	if err := checkNotTruncated(tx); err != nil {
		return err
	}
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		return errors.New("a bbolt file of another program")
	}
	found, err := readFormatVersion(meta)
	if err == nil && (found != formatVersion || meta.Get([]byte(keyMigrationProgress)) != nil) {
		err = fmt.Errorf("format %d, and this program needs %d: open the store with this program first, which "+
			"migrates it", found, formatVersion)
	}
	return err
}
