package bolt

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Lanes of the file that are no lines of a queue.
const (
	parkedLane  = schedule.LaneID(255) // URLs kept aside
	damagedLane = schedule.LaneID(254) // records that make no sense, set aside
)

// A urlQueuePosition is where a URL is in a lane.
type urlQueuePosition struct {
	sortKey int64 // not before, in nanoseconds, in lanes that are timed; rank in others
	seq     int64 // counts up; down, and below zero, in stacked lanes
}

var (
	// firstPosition comes before all places.
	firstPosition = urlQueuePosition{math.MinInt64, math.MinInt64}
	// noLanePosition is the place of a page that does not rest any more.
	noLanePosition = urlQueuePosition{}
)

func (p urlQueuePosition) compare(q urlQueuePosition) int {
	if c := cmp.Compare(p.sortKey, q.sortKey); c != 0 {
		return c
	}
	return cmp.Compare(p.seq, q.seq)
}

// A laneSlot is a lane of an origin and a place in it: behind the number of the
// origin it is a key of the bucket urls.
type laneSlot struct {
	lane schedule.LaneID
	urlQueuePosition
}

const urlKeyLen = 4 + 1 + 8 + 8

func (s laneSlot) compare(t laneSlot) int {
	if c := cmp.Compare(s.lane, t.lane); c != 0 {
		return c
	}
	return s.urlQueuePosition.compare(t.urlQueuePosition)
}

// appendURLKey appends the key as it is in the file. Flipping the sign bit puts
// negative numbers before the others.
func appendURLKey(b []byte, origin uint32, s laneSlot) []byte {
	b = binary.BigEndian.AppendUint32(b, origin)
	b = append(b, byte(s.lane))
	b = binary.BigEndian.AppendUint64(b, uint64(s.sortKey)^1<<63)
	return binary.BigEndian.AppendUint64(b, uint64(s.seq)^1<<63)
}

// parseURLKey reads what appendURLKey wrote; false if b is something else.
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

// A urlFingerprint is the fingerprint of an entry, within its origin: of the path and
// query of its URL and, if it is not asked for by GET, of its request.
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

// Keys of the bucket names. bbolt refuses an empty one, and the zero Origin has
// no name.
func originNameKey(name string) []byte { return []byte("=" + name) }
func hostNameKey(name string) []byte   { return []byte("@" + name) }
