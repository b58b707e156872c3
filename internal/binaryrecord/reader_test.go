package binaryrecord

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"
)

// fieldsRecord returns a record with every kind of field.
func fieldsRecord() []byte {
	b := AppendString([]byte{7}, "a text")
	b = binary.AppendVarint(b, -5)
	b = binary.AppendUvarint(b, 1<<48-1)
	b = binary.AppendUvarint(b, math.MaxInt64)
	b = binary.BigEndian.AppendUint64(b, math.MaxUint64)
	b = AppendTime(b, time.Time{})
	return AppendTime(b, time.Unix(1<<33, 999_999_999))
}

func TestReader(t *testing.T) {
	r := Reader{RemainingData: fieldsRecord()}
	if got := r.Byte(); got != 7 {
		t.Errorf("byte %d", got)
	}
	if got := r.String(); got != "a text" {
		t.Errorf("text %q", got)
	}
	if got := r.Varint(); got != -5 {
		t.Errorf("number %d", got)
	}
	if got := r.Int(); got != 1<<48-1 {
		t.Errorf("count %d", got)
	}
	if got := r.Int64(); got != math.MaxInt64 {
		t.Errorf("number of 63 bits %d", got)
	}
	if got := r.Uint64(); got != math.MaxUint64 {
		t.Errorf("number of eight bytes %d", got)
	}
	if got := r.Time(); !got.IsZero() {
		t.Errorf("time %v", got)
	}
	if got := r.Time(); !got.Equal(time.Unix(1<<33, 999_999_999)) || got.Location() != time.UTC {
		t.Errorf("time %v", got)
	}
	if err := r.CheckFullyRead(); err != nil {
		t.Error(err)
	}
	if got := r.Int64(); got != 0 || !errors.Is(r.Err, ErrDamaged) {
		t.Errorf("beyond the end is %d, %v", got, r.Err)
	}
}

// TestDamaged: a truncated record and a number that is too large are errors.
func TestDamaged(t *testing.T) {
	whole := fieldsRecord()
	for n := range whole {
		r := Reader{RemainingData: whole[:n]}
		_, _, _, _, _, _, _, _ = r.Byte(), r.Bytes(), r.Varint(), r.Int(), r.Int64(), r.Uint64(), r.Time(), r.Time()
		if !errors.Is(r.Err, ErrDamaged) {
			t.Errorf("%d of %d bytes are accepted as a record", n, len(whole))
		}
	}
	for _, tt := range []struct {
		record []byte
		read   func(*Reader)
	}{
		{binary.AppendUvarint(nil, 1<<48), func(r *Reader) { r.Int() }},
		{binary.AppendUvarint(nil, 1<<63), func(r *Reader) { r.Int64() }},
		{[]byte{2, 'x'}, func(r *Reader) { _ = r.String() }},
	} {
		r := Reader{RemainingData: tt.record}
		if tt.read(&r); r.Err == nil {
			t.Errorf("% x is accepted", tt.record)
		}
	}
	r := Reader{RemainingData: []byte{1, 2}}
	if r.Byte(); r.CheckFullyRead() == nil {
		t.Error("a record with remaining bytes is accepted")
	}
}
