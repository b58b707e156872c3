package binaryrecord

import (
	"encoding/binary"
	"errors"
	"math"
	"time"
)

// ErrDamaged means that a record is malformed.
var ErrDamaged = errors.New("damaged record")

// A Reader reads the fields of a record in order. After an error it returns zero values.
type Reader struct {
	RemainingData []byte // bytes that have not been read
	Err           error  // nil or ErrDamaged
}

// MarkDamaged sets Err to ErrDamaged and drops RemainingData. The caller found a field malformed.
func (r *Reader) MarkDamaged() { r.RemainingData, r.Err = nil, ErrDamaged }

// CheckFullyRead returns ErrDamaged if a field was malformed or if bytes remain.
func (r *Reader) CheckFullyRead() error {
	if len(r.RemainingData) > 0 {
		r.MarkDamaged()
	}
	return r.Err
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.RemainingData) == 0 {
		r.MarkDamaged()
		return 0
	}
	c := r.RemainingData[0]
	r.RemainingData = r.RemainingData[1:]
	return c
}

// Varint reads a signed number of variable length.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.RemainingData)
	if n <= 0 {
		r.MarkDamaged()
		return 0
	}
	r.RemainingData = r.RemainingData[n:]
	return v
}

// Int reads a count below 2^48, so that sums of counts do not overflow.
func (r *Reader) Int() int {
	v := r.Int64()
	if v >= 1<<48 {
		r.MarkDamaged()
		return 0
	}
	return int(v)
}

// Int64 reads a number from 0 to the largest int64, of variable length.
func (r *Reader) Int64() int64 {
	v, n := binary.Uvarint(r.RemainingData)
	if n <= 0 || v > math.MaxInt64 {
		r.MarkDamaged()
		return 0
	}
	r.RemainingData = r.RemainingData[n:]
	return int64(v)
}

// Uint64 reads a number of eight bytes, the highest byte first.
func (r *Reader) Uint64() uint64 {
	if len(r.RemainingData) < 8 {
		r.MarkDamaged()
		return 0
	}
	v := binary.BigEndian.Uint64(r.RemainingData)
	r.RemainingData = r.RemainingData[8:]
	return v
}

// String reads what AppendString has written.
func (r *Reader) String() string { return string(r.Bytes()) }

// Bytes reads what AppendString has written, and returns it as a part of the record, without a
// copy. It never returns nil.
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

// Time reads what AppendTime has written, and returns it in UTC.
func (r *Reader) Time() time.Time {
	sec, nsec := r.Varint(), r.Int()
	return time.Unix(sec, int64(nsec)).UTC()
}
