package redis

import (
	"strconv"

	"github.com/decorum-crawler/decorum/storage"
)

// readHostState reads the state of a host from a reply that gives the server's time as now.
func readHostState(f *replyListReader, c *scriptClock, now int64) storage.HostState {
	h := storage.HostState{
		Due: c.toLocalTime(f.readInt(), now), LostVisitDelay: microsToDuration(f.readInt()),
		Slots: int(f.readInt()), ConsecutiveFailures: int(f.readInt()),
	}
	if memo := f.readString(); memo != "" {
		h.EncodedStats = []byte(memo)
	}
	return h
}

// hostStateArgs returns the state of a host as scripts take it: see setHostState in schedule.lua.
func hostStateArgs(c *scriptClock, h *storage.HostState) []string {
	return []string{c.timeArg(h.Due), durationArg(h.LostVisitDelay), strconv.Itoa(h.Slots),
		strconv.Itoa(h.ConsecutiveFailures), string(h.EncodedStats)}
}
