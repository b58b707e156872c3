package bolt

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

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
func beginMigrateFormat3(tx *bbolt.Tx) (done bool, err error) {
	for _, name := range format3Buckets() {
		if tx.Bucket([]byte(name)) == nil {
			return false, fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
		}
	}
	if _, err := tx.CreateBucketIfNotExists([]byte(bucketFiles)); err != nil {
		return false, err
	}
	meta := openBucket(tx, bucketMeta)
	for _, key := range []string{keyClean, keyOpenCount, keyMinDue, keyCrashedAt} {
		if err := meta.set([]byte(key), bytes.Clone(meta.Get([]byte(key)))); err != nil {
			return false, err
		}
	}
	return true, meta.set([]byte(keyMigrationProgress), []byte{0})
}

// migrateChecksumBatch adds checksums to the next values.
func migrateChecksumBatch(tx *bbolt.Tx, batchBytes int) error {
	meta := openBucket(tx, bucketMeta)
	at, err := meta.get([]byte(keyMigrationProgress))
	names := append(format3Buckets(), bucketHostCounts)
	if err != nil || len(at) == 0 || int(at[0]) > len(names) {
		return fmt.Errorf("%s: %w", keyMigrationProgress, record.ErrDamaged)
	}
	index, last := at[0], bytes.Clone(at[1:]) // the last key of the portion before
	for ; int(index) < len(names); index, last = index+1, nil {
		b := openBucket(tx, names[index])
		if b.Bucket == nil {
			continue
		}
		next, err := migrateBucketChecksums(b, last, batchBytes)
		if err != nil {
			return err
		}
		if next != nil {
			return meta.set([]byte(keyMigrationProgress), append([]byte{index}, next...))
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
