package redis

import (
	"strconv"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// laneOfEntry returns the lane of a new entry.
func laneOfEntry(e *storage.Entry) schedule.LaneID {
	return schedule.LaneForClass(uint8(e.PriorityClass), e.RobotsFor == e.URL.Origin())
}

// rankArg returns the rank of an entry within its lane. Hops know none.
func rankArg(e *storage.Entry) string {
	if laneOfEntry(e).IsRobotsHop() {
		return "0"
	}
	return strconv.Itoa(int(e.PriorityRank))
}

// fingerprintArg returns a fingerprint as a signed integer: a set of such takes eight bytes
// for each.
func fingerprintArg(fingerprint uint64) string { return strconv.FormatInt(int64(fingerprint), 10) }

// encodeEntry returns the record of an entry.
func encodeEntry(e *storage.Entry) string { return string(record.AppendEntry(nil, e)) }

// boolArg returns b as an argument of a script.
func boolArg(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// chunkSize is how many URLs, or origins, one call goes through.
const chunkSize = 256
