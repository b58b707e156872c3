package redis

import (
	"strconv"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

// laneArg returns the lane of a new entry.
func laneArg(e *storage.Entry) string { return strconv.Itoa(int(schedule.LaneOf(e))) }

// rankArg returns the rank of an entry within its lane.
func rankArg(e *storage.Entry) string { return strconv.FormatInt(schedule.RankOf(e), 10) }

// fingerprintArg returns a fingerprint as a signed integer: a set of such takes eight bytes
// for each.
func fingerprintArg(fingerprint uint64) string { return strconv.FormatInt(int64(fingerprint), 10) }

// encodeEntry returns the record of an entry.
func encodeEntry(e *storage.Entry) string { return string(record.AppendEntry(nil, e)) }

// chunkSize is how many URLs, or origins, one call goes through.
const chunkSize = 256

// readHostState reads the state of a host from a reply that gives the server's time as now.
func readHostState(f *client.ReplyReader, c *client.Clock, now int64) storage.HostState {
	h := storage.HostState{
		Due: c.ToLocalTime(f.ReadInt(), now), LostVisitDelay: client.MicrosToDuration(f.ReadInt()),
		Slots: int(f.ReadInt()), ConsecutiveFailures: int(f.ReadInt()),
	}
	if memo := f.ReadString(); memo != "" {
		h.EncodedStats = []byte(memo)
	}
	return h
}

// hostStateArgs returns the state of a host as scripts take it: see setHostState in schedule.lua.
func hostStateArgs(c *client.Clock, h *storage.HostState) []string {
	return []string{c.TimeArg(h.Due), client.DurationArg(h.LostVisitDelay), strconv.Itoa(h.Slots),
		strconv.Itoa(h.ConsecutiveFailures), string(h.EncodedStats)}
}
