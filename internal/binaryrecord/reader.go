package binaryrecord

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// ErrDamaged says that a record makes no sense.
var ErrDamaged = errors.New("damaged record")

// A Reader takes a record apart. After an error it returns zeros.
type Reader struct {
	RemainingData []byte // what is left
	Err           error  // ErrDamaged, once something made no sense
}

// MarkDamaged says that the record makes no sense.
func (r *Reader) MarkDamaged() { r.RemainingData, r.Err = nil, ErrDamaged }

// CheckFullyRead returns an error unless the record was read whole and no further.
func (r *Reader) CheckFullyRead() error {
	if len(r.RemainingData) > 0 {
		r.MarkDamaged()
	}
	return r.Err
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.RemainingData) == 0 {
		r.MarkDamaged()
		return 0
	}
	c := r.RemainingData[0]
	r.RemainingData = r.RemainingData[1:]
	return c
}

// Varint reads a number that may be negative.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.RemainingData)
	if n <= 0 {
		r.MarkDamaged()
		return 0
	}
	r.RemainingData = r.RemainingData[n:]
	return v
}

// Int reads a count. None fills 48 bits, nor do some of them added up fill 63.
func (r *Reader) Int() int {
	v := r.Int64()
	if v >= 1<<48 {
		r.MarkDamaged()
		return 0
	}
	return int(v)
}

// Int64 reads a number from 0 that fills no more than 63 bits.
func (r *Reader) Int64() int64 {
	v, n := binary.Uvarint(r.RemainingData)
	if n <= 0 || v > math.MaxInt64 {
		r.MarkDamaged()
		return 0
	}
	r.RemainingData = r.RemainingData[n:]
	return int64(v)
}

// Uint64 reads a number of eight bytes.
func (r *Reader) Uint64() uint64 {
	if len(r.RemainingData) < 8 {
		r.MarkDamaged()
		return 0
	}
	v := binary.BigEndian.Uint64(r.RemainingData)
	r.RemainingData = r.RemainingData[8:]
	return v
}

// String reads what AppendString wrote.
func (r *Reader) String() string { return string(r.Bytes()) }

// Bytes returns what AppendString wrote, a part of the record. It is not nil.
func (r *Reader) Bytes() []byte {
	n := r.Int()
	if n > len(r.RemainingData) {
		r.MarkDamaged()
		return []byte{}
	}
	b := r.RemainingData[:n:n]
	r.RemainingData = r.RemainingData[n:]
	return b
}

// Time reads what AppendTime wrote, in UTC.
func (r *Reader) Time() time.Time {
	sec, nsec := r.Varint(), r.Int()
	return time.Unix(sec, int64(nsec)).UTC()
}
