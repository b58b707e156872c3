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
const sealBytes = 4 << 20 // keys and values of a portion, about

// buckets3 are the buckets of format 3, in the order in which their values get
// checksums.
func buckets3() []string {
	return []string{
		bucketNames, bucketHosts, bucketOrigins, bucketURLs, bucketPrints, bucketResting, bucketNotes, bucketLog,
	}
}

// migrate3 begins the migration: from now on, programs of format 3 refuse the file.
func migrate3(tx *bbolt.Tx) (done bool, err error) {
	for _, name := range buckets3() {
		if tx.Bucket([]byte(name)) == nil {
			return false, fmt.Errorf("bucket %q is missing: restore the file from a backup", name)
		}
	}
	if _, err := tx.CreateBucketIfNotExists([]byte(bucketFiles)); err != nil {
		return false, err
	}
	meta := bucketOf(tx, bucketMeta)
	for _, key := range []string{keyClean, keyOpened, keyFloor, keyCrashed} {
		if err := meta.set([]byte(key), bytes.Clone(meta.Get([]byte(key)))); err != nil {
			return false, err
		}
	}
	return true, meta.set([]byte(keySealing), []byte{0})
}

// sealPortion adds checksums to the next values.
func sealPortion(tx *bbolt.Tx, portion int) error {
	meta := bucketOf(tx, bucketMeta)
	at, err := meta.get([]byte(keySealing))
	names := append(buckets3(), bucketCounted)
	if err != nil || len(at) == 0 || int(at[0]) > len(names) {
		return fmt.Errorf("%s: %w", keySealing, record.ErrDamaged)
	}
	index, last := at[0], bytes.Clone(at[1:]) // the last key of the portion before
	for ; int(index) < len(names); index, last = index+1, nil {
		b := bucketOf(tx, names[index])
		if b.Bucket == nil {
			continue
		}
		next, err := sealSome(b, last, portion)
		if err != nil {
			return err
		}
		if next != nil {
			return meta.set([]byte(keySealing), append([]byte{index}, next...))
		}
	}
	return meta.Delete([]byte(keySealing))
}

// sealSome adds checksums to values of a bucket, from the first key after last on, and
// returns the last key that it changed; nil at the end of the bucket.
func sealSome(b bucket, last []byte, portion int) (next []byte, err error) {
	var keys, values [][]byte
	c := b.Cursor()
	key, value := c.First()
	if last != nil {
		if key, value = c.Seek(last); bytes.Equal(key, last) {
			key, value = c.Next()
		}
	}
	for size := 0; key != nil && size < portion; key, value = c.Next() {
		keys, values = append(keys, bytes.Clone(key)), append(values, withSum(key, value))
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
