package redis

import (
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// errBadReply says that a server answered what no script of ours does.
var errBadReply = errors.New("the server's answer makes no sense")

// A partitionSummary is what a call says of its partition. Times are microseconds of the
// Store's clock; never is none.
type partitionSummary struct {
	version                int64 // of the partition: it grows with each change
	leasedURLs             int64 // leases
	nextLeaseExpiry        int64
	firstHostDueTimes      []int64 // when the first hosts are due, at most ahead of them
	queuedURLs             int64
	suspendedURLs          int64
	nextHoldEnd            int64 // when the first dormant hold ends
	awaitingRevisit        int64
	nextRevisit            int64
	hostCount              int64
	parkedURLs             int64
	seenURLs               int64
	dueHosts               int64 // hosts, at the time of the call
	hasMoreExpired         bool  // more has run out than a call deals with
	lastLeaseReplicationID int64 // under which leases were given last: a part of master_replid; 0: none were
}

const never = -1

// maxDueTimes is of how many hosts of a partition it is known when they are due.
const maxDueTimes = 4

// nextHostDue returns when the first host is due.
func (s *partitionSummary) nextHostDue() int64 {
	if len(s.firstHostDueTimes) == 0 {
		return never
	}
	return s.firstHostDueTimes[0]
}

// unknownSummary is what is known of a partition before it is asked: that it must be.
var unknownSummary = partitionSummary{version: -1, hasMoreExpired: true, nextLeaseExpiry: never, nextHoldEnd: never, nextRevisit: never}

// parsePartitionSummary reads what summary in schedule.lua returns, and the time of the server.
func (c *scriptClock) parsePartitionSummary(m rueidis.RedisMessage) (s partitionSummary, serverNow int64, err error) {
	n, err := m.AsIntSlice()
	if err != nil || len(n) < 15 || len(n) > 15+maxDueTimes {
		return partitionSummary{}, 0, errBadReply
	}
	at := func(i int) int64 { return c.toLocalMicros(n[i], n[1]) }
	s = partitionSummary{
		version: n[0], leasedURLs: n[2], nextLeaseExpiry: at(3), queuedURLs: n[4], suspendedURLs: n[5], nextHoldEnd: at(6),
		awaitingRevisit: n[7], nextRevisit: at(8), hostCount: n[9], parkedURLs: n[10], seenURLs: n[11], dueHosts: n[12], hasMoreExpired: n[13] == 1, lastLeaseReplicationID: n[14],
	}
	for i := 15; i < len(n); i++ {
		s.firstHostDueTimes = append(s.firstHostDueTimes, at(i))
	}
	return s, n[1], nil
}

// withUpcomingHostsDeferred returns the sum as if hosts that come due from now on until then did so then.
func (s partitionSummary) withUpcomingHostsDeferred(until int64) partitionSummary {
	now := time.Now().UnixMicro()
	if until <= now {
		return s
	}
	s.firstHostDueTimes = slices.Clone(s.firstHostDueTimes)
	for i, at := range s.firstHostDueTimes {
		if at > now {
			s.firstHostDueTimes[i] = max(at, until)
		}
	}
	return s
}

// hasUnhandledExpiry reports whether something has ended by now that a call must deal
// with before the sum is right.
func (s *partitionSummary) hasUnhandledExpiry(now int64) bool {
	return s.hasMoreExpired || hasPassed(s.nextLeaseExpiry, now) || hasPassed(s.nextHoldEnd, now)
}

func hasPassed(at, now int64) bool { return at != never && at <= now }

// earlierMicros returns the earlier of two times of which either may be never.
func earlierMicros(a, b int64) int64 {
	if a == never || b != never && b < a {
		return b
	}
	return a
}

// add adds up the sums of two partitions.
func (s partitionSummary) add(t partitionSummary) partitionSummary {
	s.leasedURLs += t.leasedURLs
	s.nextLeaseExpiry = earlierMicros(s.nextLeaseExpiry, t.nextLeaseExpiry)
	if turn := earlierMicros(s.nextHostDue(), t.nextHostDue()); turn != never {
		s.firstHostDueTimes = []int64{turn}
	}
	s.queuedURLs += t.queuedURLs
	s.suspendedURLs += t.suspendedURLs
	s.nextHoldEnd = earlierMicros(s.nextHoldEnd, t.nextHoldEnd)
	s.awaitingRevisit += t.awaitingRevisit
	s.nextRevisit = earlierMicros(s.nextRevisit, t.nextRevisit)
	s.hostCount += t.hostCount
	s.parkedURLs += t.parkedURLs
	s.seenURLs += t.seenURLs
	s.dueHosts += t.dueHosts
	return s
}
