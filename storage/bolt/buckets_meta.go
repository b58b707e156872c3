package bolt

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// The buckets of the file.
const (
	bucketMeta    = "meta"
	bucketNames   = "names"
	bucketHosts   = "hosts"
	bucketOrigins = "origins"
	bucketURLs    = "urls"
	bucketPrints  = "prints"
	bucketResting = "resting"
	bucketNotes   = "notes"
	bucketLog     = "log"
	bucketCounted = "counted" // created by loadCounted: older files lack it
	bucketFiles   = "files"   // since format 4
)

func buckets() []string {
	return append([]string{bucketMeta, bucketFiles}, buckets3()...)
}

// The bucket meta.
const (
	format = 4 // of the file

	keyFormat  = "format"
	keyClean   = "clean"   // 1 if the last one to open the file closed it in order
	keyOpened  = "opened"  // how often the file was opened: the upper bits of tokens
	keyFloor   = "floor"   // no host is due before
	keyCrashed = "crashed" // when the file was last opened and not clean
	keySealing = "sealing" // during the migration from format 3 to 4: the last key that has its checksum

	keyUnchecked = "unchecked" // 1 from an unclean stop on until lengths of files are written
)

// someone is who has the file, if that is all that is known.
const someone = "another process"

// create makes a new file, and returns an error if it is one of something else.
func create(tx *bbolt.Tx) error {
	if tx.Bucket([]byte(bucketMeta)) != nil {
		return nil
	}
	if first, _ := tx.Cursor().First(); first != nil {
		return fmt.Errorf("a bbolt file of something else (bucket %q): give another path", first)
	}
	for _, name := range buckets() {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return writeMeta(tx, map[string][]byte{keyFormat: number(format), keyOpened: number(0), keyClean: {1}})
}

// takeOver reads the bucket meta, and says there that the file is open.
func (s *Store) takeOver(tx *bbolt.Tx) error {
	meta := tx.Bucket([]byte(bucketMeta))
	opened, err := metaNumber(meta, keyOpened)
	if err != nil {
		return err
	}
	s.token = (opened + 1) << 40
	if s.floor, err = metaTime(meta, keyFloor); err != nil {
		return err
	}
	if s.crashed, err = metaTime(meta, keyCrashed); err != nil {
		return err
	}
	if err := s.loadCounted(tx); err != nil {
		return err
	}
	values := map[string][]byte{keyClean: nil, keyOpened: number(opened + 1)}
	clean, err := bucket{Bucket: meta}.get([]byte(keyClean))
	s.unclean = meta.Get([]byte(keyUnchecked)) != nil
	if err != nil || clean == nil {
		s.unclean, values[keyUnchecked] = true, []byte{1}
		s.crashed = s.opts.Now()
		values[keyCrashed] = record.AppendTime(nil, s.crashed)
		if floor := s.crashed.Add(s.opts.RestartDelay); floor.After(s.floor) {
			s.floor = floor
			values[keyFloor] = record.AppendTime(nil, s.floor)
		}
	}
	return writeMeta(tx, values)
}

// markClean says that the file was closed in order.
func markClean(tx *bbolt.Tx) error {
	return writeMeta(tx, map[string][]byte{keyClean: {1}})
}

// writeMeta sets keys of the bucket meta; nil deletes.
func writeMeta(tx *bbolt.Tx, values map[string][]byte) error {
	for key, value := range values {
		if err := bucketOf(tx, bucketMeta).set([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func number(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func metaNumber(meta *bbolt.Bucket, key string) (uint64, error) {
	value, err := bucket{Bucket: meta}.get([]byte(key))
	n, size := binary.Uvarint(value)
	if err != nil || size <= 0 {
		return 0, fmt.Errorf("%s: %w", key, record.ErrDamaged)
	}
	return n, nil
}

// formatOf reads the format of the file. Before format 4 it has no checksum.
func formatOf(meta *bbolt.Bucket) (uint64, error) {
	value := meta.Get([]byte(keyFormat))
	n, size := binary.Uvarint(value)
	if size > 0 && (n > format || n < 4 && size == len(value)) {
		return n, nil
	}
	return metaNumber(meta, keyFormat)
}

// metaTime reads a time; the zero Time if there is none.
func metaTime(meta *bbolt.Bucket, key string) (time.Time, error) {
	b, err := bucket{Bucket: meta}.get([]byte(key))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", key, err)
	}
	if b == nil {
		return time.Time{}, nil
	}
	r := record.Reader{B: b}
	t := r.Time()
	return t, r.End()
}
