package bolt

import (
	"encoding/binary"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

// Every value in the file ends with a checksum of its key and itself: CRC-32C,
// big-endian.
const sumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
}

// appendSum appends the checksum of a value to it.
func appendSum(value, key []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// withSum returns a copy of a value with its checksum.
func withSum(key, value []byte) []byte {
	return appendSum(append(make([]byte, 0, len(value)+sumLen), value...), key)
}

// checkSum returns a value of the file without its checksum, or record.ErrDamaged if
// the checksum does not match key and value.
func checkSum(key, sealed []byte) ([]byte, error) {
	n := len(sealed) - sumLen
	if n < 0 || binary.BigEndian.Uint32(sealed[n:]) != checksum(key, sealed[:n]) {
		return nil, record.ErrDamaged
	}
	return sealed[:n:n], nil
}

// A bucket reads and writes values with their checksums.
type bucket struct {
	*bbolt.Bucket
	plain bool // values have no checksum, as in formats before 4
}

func bucketOf(tx *bbolt.Tx, name string) bucket {
	return bucket{Bucket: tx.Bucket([]byte(name))}
}

// get returns the value of a key; nil if the bucket lacks it. The value is valid during
// the transaction.
func (b bucket) get(key []byte) ([]byte, error) {
	value := b.Get(key)
	if value == nil {
		return nil, nil
	}
	return b.check(key, value)
}

// check returns a value that was found under the key.
func (b bucket) check(key, value []byte) ([]byte, error) {
	if b.plain {
		return value, nil
	}
	return checkSum(key, value)
}

// set puts a value; a nil value deletes the key.
func (b bucket) set(key, value []byte) error {
	switch {
	case value == nil:
		return b.Delete(key)
	case b.plain:
		return b.Put(key, value)
	}
	return b.Put(key, withSum(key, value))
}

// setDamaged puts a value with a wrong checksum, so that it counts as damaged.
func (b bucket) setDamaged(key, value []byte) error {
	sealed := withSum(key, value)
	sealed[len(value)] ^= 0xff
	return b.Put(key, sealed)
}
