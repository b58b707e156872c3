package client

import (
	"errors"
	"slices"
	"time"
)

// ErrBadReply says that a server answered what no script of ours does.
var ErrBadReply = errors.New("the server's answer makes no sense")

// A Summary is what a call says of its partition. Times are microseconds of the
// Store's clock; never is none.
type Summary struct {
	Version                int64 // of the partition: it grows with each change
	LeasedURLs             int64 // leases
	NextLeaseExpiry        int64
	FirstHostDueTimes      []int64 // when the first hosts are due, at most ahead of them
	QueuedURLs             int64
	SuspendedURLs          int64
	NextHoldEnd            int64 // when the first dormant hold ends
	AwaitingRevisit        int64
	NextRevisit            int64
	HostCount              int64
	ParkedURLs             int64
	SeenURLs               int64
	DueHosts               int64 // hosts, at the time of the call
	hasMoreExpired         bool  // more has run out than a call deals with
	lastLeaseReplicationID int64 // under which leases were given last: a part of master_replid; 0: none were
}

const Never = -1

// MaxDueTimes is of how many hosts of a partition it is known when they are due.
const MaxDueTimes = 4

// NextHostDue returns when the first host is due.
func (s *Summary) NextHostDue() int64 {
	if len(s.FirstHostDueTimes) == 0 {
		return Never
	}
	return s.FirstHostDueTimes[0]
}

// unknownSummary is what is known of a partition before it is asked: that it must be.
var unknownSummary = Summary{Version: -1, hasMoreExpired: true, NextLeaseExpiry: Never, NextHoldEnd: Never, NextRevisit: Never}

// parsePartitionSummary reads what summary in schedule.lua returns, and the time of the server.
func (c *Clock) parsePartitionSummary(m Reply) (s Summary, serverNow int64, err error) {
	n, err := m.AsIntSlice()
	if err != nil || len(n) < 15 || len(n) > 15+MaxDueTimes {
		return Summary{}, 0, ErrBadReply
	}
	at := func(i int) int64 { return c.ToLocalMicros(n[i], n[1]) }
	s = Summary{
		Version: n[0], LeasedURLs: n[2], NextLeaseExpiry: at(3), QueuedURLs: n[4], SuspendedURLs: n[5], NextHoldEnd: at(6),
		AwaitingRevisit: n[7], NextRevisit: at(8), HostCount: n[9], ParkedURLs: n[10], SeenURLs: n[11], DueHosts: n[12], hasMoreExpired: n[13] == 1, lastLeaseReplicationID: n[14],
	}
	for i := 15; i < len(n); i++ {
		s.FirstHostDueTimes = append(s.FirstHostDueTimes, at(i))
	}
	return s, n[1], nil
}

// withUpcomingHostsDeferred returns the sum as if hosts that come due from now on until then did so then.
func (s Summary) withUpcomingHostsDeferred(until int64) Summary {
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

// HasUnhandledExpiry reports whether something has ended by now that a call must deal
// with before the sum is right.
func (s *Summary) HasUnhandledExpiry(now int64) bool {
	return s.hasMoreExpired || HasPassed(s.NextLeaseExpiry, now) || HasPassed(s.NextHoldEnd, now)
}

func HasPassed(at, now int64) bool { return at != Never && at <= now }

// earlierMicros returns the earlier of two times of which either may be never.
func earlierMicros(a, b int64) int64 {
	if a == Never || b != Never && b < a {
		return b
	}
	return a
}

// add adds up the sums of two partitions.
func (s Summary) add(t Summary) Summary {
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
	s.HostCount += t.HostCount
	s.ParkedURLs += t.ParkedURLs
	s.SeenURLs += t.SeenURLs
	s.DueHosts += t.DueHosts
	return s
}
