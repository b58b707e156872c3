package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
)

// The buckets of the file.
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

func allBuckets() []string {
	return append([]string{bucketMeta, bucketFiles}, format3Buckets()...)
}

// The bucket meta.
const (
	formatVersion = 4 // of the file

	keyFormat            = "format"
	keyClean             = "clean"   // 1 if the last one to open the file closed it in order
	keyOpenCount         = "opened"  // how often the file was opened: the upper bits of tokens
	keyMinDue            = "floor"   // no host is due before
	keyCrashedAt         = "crashed" // when the file was last opened and not clean
	keyMigrationProgress = "sealing" // during the migration from format 3 to 4: the last key that has its checksum

	keyUnchecked = "unchecked" // 1 from an unclean stop on until lengths of files are written
)

// createBuckets makes a new file, and returns an error if it is one of something else.
func createBuckets(tx *bbolt.Tx) error {
	if tx.Bucket([]byte(bucketMeta)) != nil {
		return nil
	}
	if first, _ := tx.Cursor().First(); first != nil {
		return fmt.Errorf("a bbolt file of something else (bucket %q): give another path", first)
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

// An openedMeta is what the bucket meta says when the file is opened.
type openedMeta struct {
	openCount          uint64    // how often it was opened before
	earliestAllowedDue time.Time // no host is due before
	crashedAt          time.Time // when the file was last opened after an unclean stop
	outputMayBeTorn    bool      // see Store.OutputMayBeTorn
}

// readMetaAndMarkOpen reads the bucket meta, and says there that the file is open.
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

// markClean says that the file was closed in order.
func markClean(tx *bbolt.Tx) error {
	return writeMeta(tx, map[string][]byte{keyClean: {1}})
}

// writeMeta sets keys of the bucket meta; nil deletes.
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

// readFormatVersion reads the format of the file. Before format 4 it has no checksum.
func readFormatVersion(meta *bbolt.Bucket) (uint64, error) {
	value := meta.Get([]byte(keyFormat))
	n, size := binary.Uvarint(value)
	if size > 0 && (n > formatVersion || n < 4 && size == len(value)) {
		return n, nil
	}
	return readMetaNumber(meta, keyFormat)
}

// readMetaTime reads a time; the zero Time if there is none.
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

// Every value in the file ends with a checksum of its key and itself: CRC-32C,
// big-endian.
const checksumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
}

// appendChecksum appends the checksum of a value to it.
func appendChecksum(value, key []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// withChecksum returns a copy of a value with its checksum.
func withChecksum(key, value []byte) []byte {
	return appendChecksum(append(make([]byte, 0, len(value)+checksumLen), value...), key)
}

// verifyAndTrimChecksum returns a value of the file without its checksum, or binaryrecord.ErrDamaged if
// the checksum does not match key and value.
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

// get returns the value of a key; nil if the bucket lacks it. The value is valid during
// the transaction.
func (b checksummedBucket) get(key []byte) ([]byte, error) {
	value := b.Get(key)
	if value == nil {
		return nil, nil
	}
	return verifyAndTrimChecksum(key, value)
}

// setOrDelete puts a value; a nil value deletes the key.
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
