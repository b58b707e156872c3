package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
)

// The buckets of the file: doc.go says what their keys and values are.
const (
	bucketMeta         = "meta"
	bucketNames        = "names"
	bucketHosts        = "hosts"
	bucketOrigins      = "origins"
	bucketURLs         = "urls"
	bucketFingerprints = "prints"
	bucketRevisits     = "resting"
	bucketNotes        = "notes"
	bucketLog          = "log"
	bucketHostCounts   = "counted" // created by admittedHostCounter.load: older files lack it
	bucketFiles        = "files"   // since format 4
)

// allBuckets returns the buckets that every file of the current format has.
func allBuckets() []string {
	return append([]string{bucketMeta, bucketFiles}, format3Buckets()...)
}

// Keys of the bucket meta.
const (
	formatVersion = 4 // the current format: the value of keyFormat

	keyFormat            = "format"
	keyClean             = "clean"   // 1: the last process that opened the file closed it cleanly
	keyOpenCount         = "opened"  // number of opens: the upper bits of lease tokens
	keyMinDue            = "floor"   // time before which no host is due
	keyCrashedAt         = "crashed" // time of the last open after an unclean stop
	keyMigrationProgress = "sealing" // during the migration from format 3 to 4: the last key that has a checksum

	keyUnchecked = "unchecked" // 1: lengths of output files have not been written since an unclean stop
)

// createBuckets creates the buckets of a new file. It returns an error if the file belongs to another
// program.
func createBuckets(tx *bbolt.Tx) error {
	if tx.Bucket([]byte(bucketMeta)) != nil {
		return nil
	}
	if first, _ := tx.Cursor().First(); first != nil {
		return fmt.Errorf("a bbolt file of another program (bucket %q): give another path", first)
	}
	for _, name := range allBuckets() {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return writeMeta(tx, map[string][]byte{
		keyFormat: encodeUvarint(formatVersion), keyOpenCount: encodeUvarint(0), keyClean: {1},
	})
}

// An openedMeta is the content of the bucket meta when the file is opened.
type openedMeta struct {
	openCount          uint64    // number of earlier opens
	earliestAllowedDue time.Time // time before which no host is due
	crashedAt          time.Time // time of the last open after an unclean stop, which may be this one
	outputMayBeTorn    bool      // see Store.OutputMayBeTorn
}

// readMetaAndMarkOpen reads the bucket meta and marks the file as open: it counts the open and deletes
// keyClean.
func readMetaAndMarkOpen(tx *bbolt.Tx, opts *Options) (m openedMeta, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	if m.openCount, err = readMetaNumber(meta, keyOpenCount); err != nil {
		return m, err
	}
	if m.earliestAllowedDue, err = readMetaTime(meta, keyMinDue); err != nil {
		return m, err
	}
	if m.crashedAt, err = readMetaTime(meta, keyCrashedAt); err != nil {
		return m, err
	}
	values := map[string][]byte{keyClean: nil, keyOpenCount: encodeUvarint(m.openCount + 1)}
	clean, err := checksummedBucket{Bucket: meta}.get([]byte(keyClean))
	m.outputMayBeTorn = meta.Get([]byte(keyUnchecked)) != nil
	// After an unclean stop (a damaged mark counts as one), record the time and postpone all hosts.
	if err != nil || clean == nil {
		m.outputMayBeTorn, values[keyUnchecked] = true, []byte{1}
		m.crashedAt = opts.Now()
		values[keyCrashedAt] = binaryrecord.AppendTime(nil, m.crashedAt)
		if earliest := m.crashedAt.Add(opts.PostInterruptionDelay); earliest.After(m.earliestAllowedDue) {
			m.earliestAllowedDue = earliest
			values[keyMinDue] = binaryrecord.AppendTime(nil, m.earliestAllowedDue)
		}
	}
	return m, writeMeta(tx, values)
}

// markClean marks the file as closed cleanly.
func markClean(tx *bbolt.Tx) error {
	return writeMeta(tx, map[string][]byte{keyClean: {1}})
}

// writeMeta sets keys of the bucket meta. A nil value deletes the key.
func writeMeta(tx *bbolt.Tx, values map[string][]byte) error {
	for key, value := range values {
		if err := newChecksummedBucket(tx, bucketMeta).setOrDelete([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func encodeUvarint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func readMetaNumber(meta *bbolt.Bucket, key string) (uint64, error) {
	value, err := checksummedBucket{Bucket: meta}.get([]byte(key))
	n, size := binary.Uvarint(value)
	if err != nil || size <= 0 {
		return 0, fmt.Errorf("%s: %w", key, binaryrecord.ErrDamaged)
	}
	return n, nil
}

// readFormatVersion returns the format of the file. Before format 4 the value has no checksum.
func readFormatVersion(meta *bbolt.Bucket) (uint64, error) {
	value := meta.Get([]byte(keyFormat))
	n, size := binary.Uvarint(value)
	if size > 0 && (n > formatVersion || n < 4 && size == len(value)) {
		return n, nil
	}
	return readMetaNumber(meta, keyFormat)
}

// readMetaTime returns a time, or the zero Time if the bucket does not have the key.
func readMetaTime(meta *bbolt.Bucket, key string) (time.Time, error) {
	b, err := checksummedBucket{Bucket: meta}.get([]byte(key))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", key, err)
	}
	if b == nil {
		return time.Time{}, nil
	}
	r := binaryrecord.Reader{RemainingData: b}
	t := r.Time()
	return t, r.CheckFullyRead()
}

// checksumLen is the length of a checksum: CRC-32C, big-endian, of a key and its value. Every value in
// the file ends with one.
const checksumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
}

// appendChecksum appends the checksum of key and value to value.
func appendChecksum(value, key []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// withChecksum returns a copy of value with its checksum.
func withChecksum(key, value []byte) []byte {
	return appendChecksum(append(make([]byte, 0, len(value)+checksumLen), value...), key)
}

// verifyAndTrimChecksum returns a value of the file without its checksum, or binaryrecord.ErrDamaged
// if the checksum does not match key and value.
func verifyAndTrimChecksum(key, checksummed []byte) ([]byte, error) {
	n := len(checksummed) - checksumLen
	if n < 0 || binary.BigEndian.Uint32(checksummed[n:]) != checksum(key, checksummed[:n]) {
		return nil, binaryrecord.ErrDamaged
	}
	return checksummed[:n:n], nil
}

// A checksummedBucket reads and writes values with their checksums.
type checksummedBucket struct {
	*bbolt.Bucket
}

func newChecksummedBucket(tx *bbolt.Tx, name string) checksummedBucket {
	return checksummedBucket{Bucket: tx.Bucket([]byte(name))}
}

// get returns the value of a key without its checksum, nil if the bucket does not have the key. The
// value is valid during the transaction.
func (b checksummedBucket) get(key []byte) ([]byte, error) {
	value := b.Get(key)
	if value == nil {
		return nil, nil
	}
	return verifyAndTrimChecksum(key, value)
}

// setOrDelete puts a value with its checksum. A nil value deletes the key.
func (b checksummedBucket) setOrDelete(key, value []byte) error {
	if value == nil {
		return b.Delete(key)
	}
	return b.Put(key, withChecksum(key, value))
}

// setWithWrongChecksum puts a value with a wrong checksum, so that it counts as damaged.
func (b checksummedBucket) setWithWrongChecksum(key, value []byte) error {
	checksummed := withChecksum(key, value)
	checksummed[len(value)] ^= 0xff
	return b.Put(key, checksummed)
}
