package bolt

import (
	"cmp"
	"encoding/binary"
	"math"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// parked is the lane of URLs kept aside.
const parked = schedule.Lane(255)

// A place is where a URL is in a lane.
type place struct {
	at  int64 // not before, in nanoseconds; 0 in lanes that are not timed
	seq int64 // counts up; down, and below zero, in stacked lanes
}

func (p place) compare(q place) int {
	if c := cmp.Compare(p.at, q.at); c != 0 {
		return c
	}
	return cmp.Compare(p.seq, q.seq)
}

// A urlKey is a key of the bucket urls.
type urlKey struct {
	origin uint32
	lane   schedule.Lane
	place
}

const urlKeyLen = 4 + 1 + 8 + 8

func (k urlKey) compare(l urlKey) int {
	if c := cmp.Compare(k.origin, l.origin); c != 0 {
		return c
	}
	if c := cmp.Compare(k.lane, l.lane); c != 0 {
		return c
	}
	return k.place.compare(l.place)
}

// appendTo appends the key as it is in the file. Flipping the sign bit puts
// negative numbers before the others.
func (k urlKey) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, k.origin)
	b = append(b, byte(k.lane))
	b = binary.BigEndian.AppendUint64(b, uint64(k.at)^1<<63)
	return binary.BigEndian.AppendUint64(b, uint64(k.seq)^1<<63)
}

// parseURLKey reads what appendTo wrote; false if b is something else.
func parseURLKey(b []byte) (urlKey, bool) {
	if len(b) != urlKeyLen {
		return urlKey{}, false
	}
	return urlKey{
		origin: binary.BigEndian.Uint32(b),
		lane:   schedule.Lane(b[4]),
		place: place{
			at:  int64(binary.BigEndian.Uint64(b[5:]) ^ 1<<63),
			seq: int64(binary.BigEndian.Uint64(b[13:]) ^ 1<<63),
		},
	}, true
}

// A seenKey is a key of the bucket seen.
type seenKey struct {
	origin      uint32
	fingerprint uint64
}

const seenKeyLen = 4 + 8

func (k seenKey) compare(l seenKey) int {
	if c := cmp.Compare(k.origin, l.origin); c != 0 {
		return c
	}
	return cmp.Compare(k.fingerprint, l.fingerprint)
}

func (k seenKey) appendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, k.origin)
	return binary.BigEndian.AppendUint64(b, k.fingerprint)
}

// fingerprint is FNV-1a. It is in the file, and must stay as it is.
func fingerprint(path string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(path) {
		h = (h ^ uint64(path[i])) * 1099511628211
	}
	return h
}

// A noteKey is a key of the bucket notes.
type noteKey struct {
	origin uint32
	key    string
}

func (k noteKey) compare(l noteKey) int {
	if c := cmp.Compare(k.origin, l.origin); c != 0 {
		return c
	}
	return cmp.Compare(k.key, l.key)
}

func (k noteKey) appendTo(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, k.origin), k.key...)
}

// nanos returns t in nanoseconds since 1970. What an int64 cannot hold, years
// before 1678 and after 2261, becomes the nearest it can.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}
