package bolt

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Lanes of the file that are not in package schedule: their URLs are never leased.
const (
	parkedLane  = schedule.LaneID(255) // parked URLs
	damagedLane = schedule.LaneID(254) // records of URLs that are damaged
)

// A urlQueuePosition is the place of a URL in a lane. Lower positions are leased first.
type urlQueuePosition struct {
	sortKey int64 // in timed lanes the earliest time of the lease, in nanoseconds; in others the rank
	seq     int64 // number of the URL within the origin; negated in LIFO lanes
}

var (
	// firstPosition is lower than all positions.
	firstPosition = urlQueuePosition{math.MinInt64, math.MinInt64}
	// noLanePosition is the position of a page that awaits no revisit any more.
	noLanePosition = urlQueuePosition{}
)

func (p urlQueuePosition) compare(q urlQueuePosition) int {
	if c := cmp.Compare(p.sortKey, q.sortKey); c != 0 {
		return c
	}
	return cmp.Compare(p.seq, q.seq)
}

// A laneSlot is a lane of an origin and a position in it. After the number of the origin, it is a key
// of the bucket urls.
type laneSlot struct {
	lane schedule.LaneID
	urlQueuePosition
}

// urlKeyLen is the length of a key of the bucket urls.
const urlKeyLen = 4 + 1 + 8 + 8

func (s laneSlot) compare(t laneSlot) int {
	if c := cmp.Compare(s.lane, t.lane); c != 0 {
		return c
	}
	return s.urlQueuePosition.compare(t.urlQueuePosition)
}

// appendURLKey appends a key of the bucket urls. It flips the sign bits, so that negative numbers sort
// before positive ones.
func appendURLKey(b []byte, origin uint32, s laneSlot) []byte {
	b = binary.BigEndian.AppendUint32(b, origin)
	b = append(b, byte(s.lane))
	b = binary.BigEndian.AppendUint64(b, uint64(s.sortKey)^1<<63)
	return binary.BigEndian.AppendUint64(b, uint64(s.seq)^1<<63)
}

// parseURLKey decodes a key of the bucket urls. It returns false if b has another length.
func parseURLKey(b []byte) (origin uint32, s laneSlot, ok bool) {
	if len(b) != urlKeyLen {
		return 0, laneSlot{}, false
	}
	return binary.BigEndian.Uint32(b), laneSlot{
		lane: schedule.LaneID(b[4]),
		urlQueuePosition: urlQueuePosition{
			sortKey: int64(binary.BigEndian.Uint64(b[5:]) ^ 1<<63),
			seq:     int64(binary.BigEndian.Uint64(b[13:]) ^ 1<<63),
		},
	}, true
}

// A urlFingerprint identifies an entry within its origin: see storage.Entry.RequestFingerprint.
type urlFingerprint uint64

func (p urlFingerprint) compare(q urlFingerprint) int { return cmp.Compare(p, q) }

func fingerprintOfURL(u decorum.URL) urlFingerprint { return urlFingerprint(storage.Fingerprint(u)) }

func requestFingerprintOf(e *storage.Entry) urlFingerprint {
	return urlFingerprint(e.RequestFingerprint())
}

// appendFingerprintKey appends a key of the buckets prints and resting.
func appendFingerprintKey(b []byte, origin uint32, p urlFingerprint) []byte {
	b = binary.BigEndian.AppendUint32(b, origin)
	return binary.BigEndian.AppendUint64(b, uint64(p))
}

// appendNoteKey appends a key of the bucket notes.
func appendNoteKey(b []byte, origin uint32, key string) []byte {
	return append(binary.BigEndian.AppendUint32(b, origin), key...)
}

// numberKey returns a key of the buckets hosts and origins.
func numberKey(number uint32) []byte {
	return binary.BigEndian.AppendUint32(make([]byte, 0, 4), number)
}

// originNameKey returns the key of an origin in the bucket names. The prefix makes a key of the zero
// Origin, too, whose name is empty: bbolt refuses an empty key.
func originNameKey(name string) []byte { return []byte("=" + name) }

// hostNameKey returns the key of a host in the bucket names.
func hostNameKey(name string) []byte { return []byte("@" + name) }
