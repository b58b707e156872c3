package bolt

import (
	"encoding/binary"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/record"
)

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

// verifyAndTrimChecksum returns a value of the file without its checksum, or record.ErrDamaged if
// the checksum does not match key and value.
func verifyAndTrimChecksum(key, checksummed []byte) ([]byte, error) {
	n := len(checksummed) - checksumLen
	if n < 0 || binary.BigEndian.Uint32(checksummed[n:]) != checksum(key, checksummed[:n]) {
		return nil, record.ErrDamaged
	}
	return checksummed[:n:n], nil
}

// A checksummedBucket reads and writes values with their checksums.
type checksummedBucket struct {
	*bbolt.Bucket
}

func openChecksummedBucket(tx *bbolt.Tx, name string) checksummedBucket {
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
