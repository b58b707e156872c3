package client

import (
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// hashSlots is how many hash slots a cluster has (Redis Cluster specification).
const hashSlots = 16384

// A Partition is a share of the hosts: all its keys have one hash tag, so that
// they are in one slot, and a script may use all of them.
type Partition struct {
	keyPrefix string // of its keys
	slot      int64

	mu                     sync.Mutex // guards the fields below
	summary                Summary
	summaryReplySeq        uint64 // when summary was received, as Client.replySeq counts
	unreachable            bool   // its server did not answer last time
	leftToOthersUntil      int64  // until then hosts that come due are left to others
	lastLeaseReplicationID int64  // under which the last leases were given; 0: none were, as far as is known
}

// Key returns the key of the partition that has a name.
func (p *Partition) Key(name string) string { return p.keyPrefix + name }

// Partitions is all partitions of a store, by their index.
type Partitions []*Partition

// makePartitions returns n partitions whose slots are spread evenly over all: the
// tag of each is the first number whose slot is in its share of them.
func makePartitions(prefix string, n int) Partitions {
	partitions := make(Partitions, n)
	for found, tag := 0, 0; found < n; tag++ {
		name := strconv.Itoa(tag)
		slot := int64(slotOf(name))
		p := int(slot) * n / hashSlots
		if partitions[p] == nil {
			partitions[p] = &Partition{keyPrefix: prefix + ":{" + name + "}:", slot: slot, summary: unknownSummary}
			found++
		}
	}
	return partitions
}

// slotOf returns the slot of a key that is all hash tag: CRC16, as XMODEM has it,
// modulo the number of slots.
func slotOf(tag string) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % hashSlots
}

// ofHost returns the partition of a host.
func (all Partitions) ofHost(host string) *Partition {
	h := fnv.New64a()
	h.Write([]byte(host))
	return all[h.Sum64()%uint64(len(all))]
}

// Total adds up what is known of all partitions. It returns false if the server of one
// did not answer last time.
func (all Partitions) Total() (sum Summary, complete bool) {
	sum = Summary{NextLeaseExpiry: Never, NextHoldEnd: Never, NextRevisit: Never}
	complete = true
	for _, p := range all {
		one, answers := p.LastSummary()
		sum, complete = sum.add(one), complete && answers
	}
	return sum, complete
}

// Reachable returns how many partitions have servers that answered last time.
func (all Partitions) Reachable() (n int) {
	for _, p := range all {
		if _, up := p.LastSummary(); up {
			n++
		}
	}
	return n
}

// cacheSummaryIfNewer keeps the summary that a call returned, unless a newer one is known:
// calls overtake each other. startSeq is Client.replySeq before the call. It reports whether
// the partition is served under another replication id than before.
func (p *Partition) cacheSummaryIfNewer(replySeq *atomic.Uint64, startSeq uint64, new Summary) (failedOver bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if new.Version >= p.summary.Version || p.summaryReplySeq <= startSeq || p.unreachable {
		p.summary = new.withUpcomingDueTimesRaised(p.leftToOthersUntil)
		p.summaryReplySeq, p.unreachable = replySeq.Add(1), false
	}
	failedOver = p.lastLeaseReplicationID != 0 && new.lastLeaseReplicationID != p.lastLeaseReplicationID
	p.lastLeaseReplicationID = new.lastLeaseReplicationID
	return failedOver
}

// LeaveUpcomingHostsToOthers leaves hosts that come due before a time to other processes,
// but not those that are due already: nobody else may have a worker for them.
func (p *Partition) LeaveUpcomingHostsToOthers(until int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leftToOthersUntil = until
	p.summary = p.summary.withUpcomingDueTimesRaised(until)
}

// LastSummary returns the last summary of the partition, and false if its server has not
// answered since.
func (p *Partition) LastSummary() (Summary, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summary, !p.unreachable
}

// ErrBadReply is returned for a reply that no script of package lua returns.
var ErrBadReply = errors.New("the server's answer makes no sense")

// A Summary is what each script returns of its partition. Times are microseconds of the
// client's Clock, or Never.
type Summary struct {
	storage.Counts                 // at the time of the call
	Version                int64   // of the partition: it grows with each change
	NextLeaseExpiry        int64   // when the first lease ends
	FirstHostDueTimes      []int64 // when the first hosts are due, of at most MaxDueTimes
	NextHoldEnd            int64   // when the first hold of suspended URLs ends
	NextRevisit            int64   // when the first page that awaits its revisit is due
	hasMoreExpired         bool    // more has run out than a call deals with
	lastLeaseReplicationID int64   // under which leases were given last: a part of master_replid; 0: none were
}

// Never is the time of what does not happen.
const Never = -1

// MaxDueTimes is how many due times of hosts a Summary holds.
const MaxDueTimes = 4

// NextHostDue returns when the first host is due, or Never.
func (s *Summary) NextHostDue() int64 {
	if len(s.FirstHostDueTimes) == 0 {
		return Never
	}
	return s.FirstHostDueTimes[0]
}

// unknownSummary is the summary of a partition that has not been asked, and must be.
var unknownSummary = Summary{
	Version: -1, hasMoreExpired: true, NextLeaseExpiry: Never, NextHoldEnd: Never, NextRevisit: Never,
}

// parseSummary reads what summary in schedule.lua returns, and the time of the server.
func parseSummary(c *Clock, m Reply) (s Summary, serverNow int64, err error) {
	n, err := m.AsIntSlice()
	if err != nil || len(n) < 15 || len(n) > 15+MaxDueTimes {
		return Summary{}, 0, ErrBadReply
	}
	at := func(i int) int64 { return c.ToLocalMicros(n[i], n[1]) }
	s = Summary{
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

// withUpcomingDueTimesRaised returns the summary as if hosts that come due between now and
// until came due at until.
func (s Summary) withUpcomingDueTimesRaised(until int64) Summary {
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

// HasUnhandledExpiry reports whether a lease or a hold has ended by now: a call must deal
// with it before the summary is right.
func (s *Summary) HasUnhandledExpiry(now int64) bool {
	return s.hasMoreExpired || HasPassed(s.NextLeaseExpiry, now) || HasPassed(s.NextHoldEnd, now)
}

// HasPassed reports whether a time, which may be Never, is now or earlier.
func HasPassed(at, now int64) bool { return at != Never && at <= now }

// earlierMicros returns the earlier of two times of which either may be Never.
func earlierMicros(a, b int64) int64 {
	if a == Never || b != Never && b < a {
		return b
	}
	return a
}

// add adds up the summaries of two partitions.
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
	s.QueuedHosts += t.QueuedHosts
	s.ParkedURLs += t.ParkedURLs
	s.SeenURLs += t.SeenURLs
	s.DueHosts += t.DueHosts
	return s
}
