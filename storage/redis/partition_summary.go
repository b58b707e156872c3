package redis

import (
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// errAnswer says that a server answered what no script of ours does.
var errAnswer = errors.New("the server's answer makes no sense")

// A sum is what a call says of its partition. Times are microseconds of the
// Store's clock; never is none.
type sum struct {
	version   int64 // of the partition: it grows with each change
	out       int64 // leases
	expires   int64
	turns     []int64 // when the first hosts are due, at most ahead of them
	queued    int64
	dormant   int64
	hold      int64 // when the first dormant hold ends
	resting   int64
	revisit   int64
	hosts     int64
	parked    int64
	seen      int64
	due       int64 // hosts, at the time of the call
	unsettled bool  // more has run out than a call deals with
	reign     int64 // under which leases were given last: a part of master_replid; 0: none were
}

const never = -1

// ahead is of how many hosts of a partition it is known when they are due.
const ahead = 4

// turn returns when the first host is due.
func (s *sum) turn() int64 {
	if len(s.turns) == 0 {
		return never
	}
	return s.turns[0]
}

// unasked is what is known of a partition before it is asked: that it must be.
var unasked = sum{version: -1, unsettled: true, expires: never, hold: never, revisit: never}

// parseSum reads what schedule.lua returns.
func (c *clock) parseSum(m rueidis.RedisMessage) (sum, error) {
	n, err := m.AsIntSlice()
	if err != nil || len(n) < 15 || len(n) > 15+ahead {
		return sum{}, errAnswer
	}
	at := func(i int) int64 { return c.local(n[i], n[1]) }
	s := sum{
		version: n[0], out: n[2], expires: at(3), queued: n[4], dormant: n[5], hold: at(6),
		resting: n[7], revisit: at(8), hosts: n[9], parked: n[10], seen: n[11], due: n[12], unsettled: n[13] == 1, reign: n[14],
	}
	for i := 15; i < len(n); i++ {
		s.turns = append(s.turns, at(i))
	}
	return s, nil
}

// leaving returns the sum as if hosts that come due from now on until then did so then.
func (s sum) leaving(until int64) sum {
	now := time.Now().UnixMicro()
	if until <= now {
		return s
	}
	s.turns = slices.Clone(s.turns)
	for i, at := range s.turns {
		if at > now {
			s.turns[i] = max(at, until)
		}
	}
	return s
}

// isUnsettled reports whether something has ended by now that a call must deal
// with before the sum is right.
func (s *sum) isUnsettled(now int64) bool {
	return s.unsettled || hasCome(s.expires, now) || hasCome(s.hold, now)
}

func hasCome(at, now int64) bool { return at != never && at <= now }

// earliest returns the earlier of two times of which either may be never.
func earliest(a, b int64) int64 {
	if a == never || b != never && b < a {
		return b
	}
	return a
}

// join adds up the sums of two partitions.
func (s sum) join(t sum) sum {
	s.out += t.out
	s.expires = earliest(s.expires, t.expires)
	if turn := earliest(s.turn(), t.turn()); turn != never {
		s.turns = []int64{turn}
	}
	s.queued += t.queued
	s.dormant += t.dormant
	s.hold = earliest(s.hold, t.hold)
	s.resting += t.resting
	s.revisit = earliest(s.revisit, t.revisit)
	s.hosts += t.hosts
	s.parked += t.parked
	s.seen += t.seen
	s.due += t.due
	return s
}

// instant returns a time of the Store's clock.
func instant(us int64) time.Time {
	if us == never {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
