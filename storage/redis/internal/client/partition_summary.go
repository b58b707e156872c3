package client

import (
	"errors"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// ErrBadReply is returned for a reply that no script of package lua returns.
var ErrBadReply = errors.New("the server's reply has an unexpected form")

// A PartitionSummary is what each script that may change something returns of its partition. Times
// are microseconds of the client's ScriptClock, or Never.
type PartitionSummary struct {
	storage.Counts            // at the time of the call
	Version           int64   // grows with each change of the partition
	NextLeaseExpiry   int64   // when the first lease expires
	FirstHostDueTimes []int64 // when the first hosts are due, at most MaxDueTimes of them
	NextHoldEnd       int64   // when the first hold of suspended URLs ends
	NextRevisit       int64   // when the first page that awaits its revisit is due
	hasMoreExpired    bool    // more leases or holds have ended than one call handles
	// The first 48 bits of the master_replid that the last call of lease.lua found; 0 before it.
	lastLeaseReplicationID int64
}

// Never is the time of an event that does not happen.
const Never = -1

// MaxDueTimes is how many due times of hosts a PartitionSummary holds: maxDueTimes in schedule.lua.
const MaxDueTimes = 4

// NextHostDue returns when the first host is due, or Never.
func (s *PartitionSummary) NextHostDue() int64 {
	if len(s.FirstHostDueTimes) == 0 {
		return Never
	}
	return s.FirstHostDueTimes[0]
}

// unknownSummary is the summary of a partition before its first reply. hasMoreExpired makes the first
// Lease refresh it.
var unknownSummary = PartitionSummary{
	Version: -1, hasMoreExpired: true, NextLeaseExpiry: Never, NextHoldEnd: Never, NextRevisit: Never,
}

// parsePartitionSummary decodes what summary in schedule.lua returns. It returns the server's time,
// too, in its microseconds.
func parsePartitionSummary(c *ScriptClock, m Reply) (s PartitionSummary, serverNow int64, err error) {
	n, err := m.AsIntSlice()
	if err != nil || len(n) < 15 || len(n) > 15+MaxDueTimes {
		return PartitionSummary{}, 0, ErrBadReply
	}
	// The indexes below are those of the list in schedule.lua, less 1.
	at := func(i int) int64 { return c.ToLocalMicros(n[i], n[1]) }
	s = PartitionSummary{
		Version: n[0], NextLeaseExpiry: at(3), NextHoldEnd: at(6), NextRevisit: at(8),
		hasMoreExpired: n[13] == 1, lastLeaseReplicationID: n[14],
		Counts: storage.Counts{
			LeasedURLs: int(n[2]), QueuedURLs: int(n[4]), SuspendedURLs: int(n[5]), AwaitingRevisit: int(n[7]),
			QueuedHosts: int(n[9]), ParkedURLs: int(n[10]), SeenURLs: int(n[11]), DueHosts: int(n[12]),
		},
	}
	for i := 15; i < len(n); i++ {
		s.FirstHostDueTimes = append(s.FirstHostDueTimes, at(i))
	}
	return s, n[1], nil
}

// withUpcomingDueTimesRaised returns the summary with due times between now and until, in
// microseconds, replaced by until.
func (s PartitionSummary) withUpcomingDueTimesRaised(until int64) PartitionSummary {
	now := time.Now().UnixMicro()
	if until <= now {
		return s
	}
	s.FirstHostDueTimes = slices.Clone(s.FirstHostDueTimes)
	for i, at := range s.FirstHostDueTimes {
		if at > now {
			s.FirstHostDueTimes[i] = max(at, until)
		}
	}
	return s
}

// HasExpiredLeaseOrHold reports whether a lease or a hold has ended by now, in microseconds. The
// summary then shows less than can be leased, until a call of lease.lua ends these.
func (s *PartitionSummary) HasExpiredLeaseOrHold(now int64) bool {
	return s.hasMoreExpired || HasPassed(s.NextLeaseExpiry, now) || HasPassed(s.NextHoldEnd, now)
}

// HasPassed reports whether at is now or earlier. Never has not passed.
func HasPassed(at, now int64) bool { return at != Never && at <= now }

// earlierMicros returns the earlier of two times. Never is later than any other.
func earlierMicros(a, b int64) int64 {
	if a == Never || b != Never && b < a {
		return b
	}
	return a
}

// add returns the sum of the summaries of two partitions, without Version and replication id.
func (s PartitionSummary) add(t PartitionSummary) PartitionSummary {
	s.LeasedURLs += t.LeasedURLs
	s.NextLeaseExpiry = earlierMicros(s.NextLeaseExpiry, t.NextLeaseExpiry)
	if turn := earlierMicros(s.NextHostDue(), t.NextHostDue()); turn != Never {
		s.FirstHostDueTimes = []int64{turn}
	}
	s.QueuedURLs += t.QueuedURLs
	s.SuspendedURLs += t.SuspendedURLs
	s.NextHoldEnd = earlierMicros(s.NextHoldEnd, t.NextHoldEnd)
	s.AwaitingRevisit += t.AwaitingRevisit
	s.NextRevisit = earlierMicros(s.NextRevisit, t.NextRevisit)
	s.QueuedHosts += t.QueuedHosts
	s.ParkedURLs += t.ParkedURLs
	s.SeenURLs += t.SeenURLs
	s.DueHosts += t.DueHosts
	return s
}
