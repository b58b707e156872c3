// Package schedule knows whose turn it is: the clocks of hosts, the holds of
// origins, the slots and the leases that are out, for the engines that keep
// their state in one process. It holds no URLs (an OriginURLQueue does), reads no clock,
// and locks nothing: its caller does.
//
// Each verb costs at most the logarithm of the number of hosts.
package schedule

import (
	"math"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// An OriginURLQueue is what waits for one origin, as far as a Schedule must know it.
// Times are what Nanos returns.
type OriginURLQueue interface {
	// TotalAndRobotsHops returns how many URLs wait but for resting ones, and how many of
	// them are in hop lanes.
	TotalAndRobotsHops() (all, robotsHops int)
	// RevisitCountAndFirstDue returns how many pages wait for their revisit, and when the
	// first of them comes.
	RevisitCountAndFirstDue() (n int, firstDue int64)
	// ReadyAt returns from when on a URL of the hop lanes, or of the others,
	// may be handed out, and false if there is none.
	ReadyAt(robotsHops bool) (at int64, ok bool)
}

// A QueuedURLCounts counts what waits in the lanes of an OriginURLQueue, without resting pages.
type QueuedURLCounts struct {
	Total      int
	RobotsHops int // of Total, in hop lanes
}

// AddURLs counts n more in a lane.
func (t *QueuedURLCounts) AddURLs(l LaneID, n int) {
	if l == AwaitingRevisit {
		return
	}
	t.Total += n
	if l.IsRobotsHop() {
		t.RobotsHops += n
	}
}

// TotalAndRobotsHops is that of OriginURLQueue.
func (t *QueuedURLCounts) TotalAndRobotsHops() (all, robotsHops int) { return t.Total, t.RobotsHops }

// An Origin is a queue and what holds it. There are many: times that only the
// schedule reads are what Nanos returns, which takes a third of the room.
type Origin[Q OriginURLQueue] struct {
	Queue     Q
	Host      *Host[Q]
	HeldUntil time.Time // nothing but hops before
	Suspended bool      // nobody should wait for the end of the hold

	nextDue              int64 // when its next URL can be handed out
	waitingSince         int64 // last served, or found empty: who waited longer goes first
	queuedURLCount       int   // as counted in Host and Schedule
	suspendedURLCount    int   // of them, under a dormant hold
	awaitingRevisitCount int   // as counted in Schedule
	earliestRevisitTime  int64

	hostHeapIndex       int32
	suspensionHeapIndex int32
	revisitHeapIndex    int32
}

func (o *Origin[Q]) PrecedesInHeap(p *Origin[Q]) bool { return o.nextDue < p.nextDue }
func (o *Origin[Q]) HeapIndexPtr() *int32             { return &o.hostHeapIndex }

// NextDue returns when the next URL of the origin can be handed out were there a
// slot of the host; zero if there is none.
func (o *Origin[Q]) NextDue() time.Time {
	if o.hostHeapIndex == 0 {
		return time.Time{}
	}
	return timecmp.Later(time.Unix(0, o.nextDue), o.Host.Due)
}

// originSuspensionHeapItem orders the origins under a dormant hold.
type originSuspensionHeapItem[Q OriginURLQueue] struct{ *Origin[Q] }

func (o originSuspensionHeapItem[Q]) PrecedesInHeap(p originSuspensionHeapItem[Q]) bool {
	return o.HeldUntil.Before(p.HeldUntil)
}
func (o originSuspensionHeapItem[Q]) HeapIndexPtr() *int32 { return &o.suspensionHeapIndex }

// originByRevisit orders the origins with resting pages.
type originByRevisit[Q OriginURLQueue] struct{ *Origin[Q] }

func (o originByRevisit[Q]) PrecedesInHeap(p originByRevisit[Q]) bool {
	return o.earliestRevisitTime < p.earliestRevisitTime
}
func (o originByRevisit[Q]) HeapIndexPtr() *int32 { return &o.revisitHeapIndex }

// A Host is to whom politeness is owed, for all its origins together.
type Host[Q OriginURLQueue] struct {
	storage.HostState
	LeasesOut int // leases

	origins      IndexedHeap[*Origin[Q]] // with URLs to hand out, now or some time
	queuedURLs   int
	nextDue      int64 // when its next URL can be handed out
	dueHeapIndex int32
	inHostCount  bool // counted in Schedule.hostCount
}

func (h *Host[Q]) PrecedesInHeap(g *Host[Q]) bool { return h.nextDue < g.nextDue }
func (h *Host[Q]) HeapIndexPtr() *int32           { return &h.dueHeapIndex }

// A Lease is a URL that is out.
type Lease[Q OriginURLQueue] struct {
	Token           uint64
	Origin          *Origin[Q]
	Expires         time.Time
	expiryHeapIndex int32
}

// Of leases that run out together the latest goes back first, so that the
// earliest ends at the head of the queue.
func (l *Lease[Q]) PrecedesInHeap(m *Lease[Q]) bool {
	if l.Expires.Equal(m.Expires) {
		return l.Token > m.Token
	}
	return l.Expires.Before(m.Expires)
}
func (l *Lease[Q]) HeapIndexPtr() *int32 { return &l.expiryHeapIndex }

// A Schedule is all hosts. The zero value is ready for use.
type Schedule[Q OriginURLQueue] struct {
	hostCount            int // with at least one URL queued or out
	queuedURLCount       int
	suspendedURLCount    int // of queuedURLCount, under a dormant hold
	awaitingRevisitCount int

	now                    time.Time                                // the latest it was told
	hostsByDue             IndexedHeap[*Host[Q]]                    // hosts with a URL to hand out and a slot free
	originsBySuspensionEnd IndexedHeap[originSuspensionHeapItem[Q]] // origins with URLs under a dormant hold
	originsByRevisit       IndexedHeap[originByRevisit[Q]]
	leasesByExpiry         IndexedHeap[*Lease[Q]] // by when they run out
	evicted                evictedHosts
}

// Advance tells the schedule the time. Time does not run backwards.
func (s *Schedule[Q]) Advance(now time.Time) {
	if now.After(s.now) {
		s.now = now
	}
	for len(s.originsBySuspensionEnd) > 0 && !s.originsBySuspensionEnd[0].HeldUntil.After(s.now) {
		s.UpdateOrigin(s.originsBySuspensionEnd[0].Origin)
	}
}

// ExpireNext ends the next lease that ran out, lets its host rest, and returns
// it; nil if there is none.
func (s *Schedule[Q]) ExpireNext(now time.Time) *Lease[Q] {
	if len(s.leasesByExpiry) == 0 || s.leasesByExpiry[0].Expires.After(now) {
		return nil
	}
	l := s.leasesByExpiry[0]
	h := l.Origin.Host
	h.PostponeUntil(l.Expires.Add(h.LostVisitDelay))
	s.EndLease(l)
	return l
}

// NextOrigin returns the origin whose turn it is; nil if no host is due. If the
// origin is held, a URL of its hop lanes is due.
func (s *Schedule[Q]) NextOrigin(now time.Time) *Origin[Q] {
	if len(s.hostsByDue) == 0 || s.hostsByDue[0].nextDue > Nanos(now) {
		return nil
	}
	return s.hostsByDue[0].origins[0]
}

// NextOriginOfHost returns the origin that a URL of the host is handed out of next, and
// when; nil if none is before a lease of the host ends or a URL is added.
func (s *Schedule[Q]) NextOriginOfHost(h *Host[Q]) (*Origin[Q], time.Time) {
	if h.dueHeapIndex == 0 {
		return nil, time.Time{}
	}
	return h.origins[0], time.Unix(0, h.nextDue)
}

// BeginLease takes a slot for a URL that was taken out of the origin's queue.
func (s *Schedule[Q]) BeginLease(o *Origin[Q], token uint64, now, expires time.Time) *Lease[Q] {
	l := &Lease[Q]{Token: token, Origin: o, Expires: expires}
	s.leasesByExpiry.PushOrMove(l)
	o.Host.LeasesOut++
	o.waitingSince = Nanos(now)
	s.UpdateOrigin(o)
	return l
}

// RenewLease lets the lease run until expires.
func (s *Schedule[Q]) RenewLease(l *Lease[Q], expires time.Time) {
	l.Expires = expires
	s.leasesByExpiry.PushOrMove(l)
}

// EndLease gives the lease's slot free.
func (s *Schedule[Q]) EndLease(l *Lease[Q]) {
	s.leasesByExpiry.Remove(l)
	l.Origin.Host.LeasesOut--
	s.UpdateOrigin(l.Origin)
}

// Nanos returns t in nanoseconds since 1970. What an int64 cannot hold, years
// before 1678 and after 2261, becomes the nearest it can.
func Nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// SetState gives the host a new clock. Due does not move back. An Update of one of
// its origins must follow.
func (h *Host[Q]) SetState(c storage.HostState) {
	due := h.Due
	h.HostState = c
	h.PostponeUntil(due)
}

// PostponeUntil moves Due to t unless it is later. An Update must follow.
func (h *Host[Q]) PostponeUntil(t time.Time) {
	if t.After(h.Due) {
		h.Due = t
	}
}
