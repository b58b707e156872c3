package redis

import (
	"strconv"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

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
