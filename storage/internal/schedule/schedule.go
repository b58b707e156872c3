package schedule

import (
	"math"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// An OriginURLQueue has the queued URLs of one origin. Its methods tell a Schedule what it needs to
// know of them. Times are those of Nanos.
//
// Robots hops are redirects of the origin's own robots.txt: see LaneID.IsRobotsHop.
type OriginURLQueue interface {
	// TotalAndRobotsHops returns the number of queued URLs, without pages that await their revisit,
	// and how many of them are robots hops.
	TotalAndRobotsHops() (all, robotsHops int)
	// RevisitCountAndFirstDue returns the number of pages that await their revisit, and when the
	// first of them is due.
	RevisitCountAndFirstDue() (n int, firstDue int64)
	// ReadyAt returns when the next of the robots hops, or of the other URLs with revisits included,
	// may be leased, and false if the queue has no such URL.
	ReadyAt(robotsHops bool) (at int64, ok bool)
}

// QueuedURLCounts count the URLs in the lanes of an OriginURLQueue, without pages that await their
// revisit.
type QueuedURLCounts struct {
	Total      int
	RobotsHops int // of Total, those in lanes of robots hops
}

// AddURLs adds n, which may be negative, to the counts of a lane.
func (t *QueuedURLCounts) AddURLs(l LaneID, n int) {
	if l == AwaitingRevisit {
		return
	}
	t.Total += n
	if l.IsRobotsHop() {
		t.RobotsHops += n
	}
}

// TotalAndRobotsHops implements OriginURLQueue.
func (t *QueuedURLCounts) TotalAndRobotsHops() (all, robotsHops int) { return t.Total, t.RobotsHops }

// An Origin is an origin in a Schedule: its queue and its hold. The engine sets the exported fields, and
// calls UpdateOrigin after a change. There are many Origins: times that only the schedule reads are
// those of Nanos, which take a third of the memory of a time.Time.
type Origin[Q OriginURLQueue] struct {
	Queue     Q
	Host      *Host[Q]
	HeldUntil time.Time // only robots hops are leased before
	Suspended bool      // callers should not wait for the end of the hold

	nextDue              int64 // when its next URL may be leased; set while the origin is in Host.origins
	waitingSince         int64 // when it was last served or became non-empty; the lowest goes first
	queuedURLCount       int   // its part of Host.queuedURLs and Schedule.queuedURLCount
	suspendedURLCount    int   // its part of Schedule.suspendedURLCount
	awaitingRevisitCount int   // its part of Schedule.awaitingRevisitCount
	earliestRevisitTime  int64 // when its first revisit is due, or a suspended hold ends

	hostHeapIndex       int32 // in Host.origins
	suspensionHeapIndex int32 // in Schedule.originsBySuspensionEnd
	revisitHeapIndex    int32 // in Schedule.originsByRevisit
}

// PrecedesInHeap implements HeapItem, for Host.origins.
func (o *Origin[Q]) PrecedesInHeap(p *Origin[Q]) bool { return o.nextDue < p.nextDue }

// HeapIndexPtr implements HeapItem, for Host.origins.
func (o *Origin[Q]) HeapIndexPtr() *int32 { return &o.hostHeapIndex }

// NextDue returns when the next URL of the origin may be leased, if its host has a free slot then. It
// returns the zero time if the origin has no URL to lease.
func (o *Origin[Q]) NextDue() time.Time {
	if o.hostHeapIndex == 0 {
		return time.Time{}
	}
	return timecmp.Later(time.Unix(0, o.nextDue), o.Host.Due)
}

// An originSuspensionHeapItem orders the origins under a suspended hold by its end.
type originSuspensionHeapItem[Q OriginURLQueue] struct{ *Origin[Q] }

func (o originSuspensionHeapItem[Q]) PrecedesInHeap(p originSuspensionHeapItem[Q]) bool {
	return o.HeldUntil.Before(p.HeldUntil)
}
func (o originSuspensionHeapItem[Q]) HeapIndexPtr() *int32 { return &o.suspensionHeapIndex }

// An originByRevisit orders the origins with pages that await their revisit by the first of them.
type originByRevisit[Q OriginURLQueue] struct{ *Origin[Q] }

func (o originByRevisit[Q]) PrecedesInHeap(p originByRevisit[Q]) bool {
	return o.earliestRevisitTime < p.earliestRevisitTime
}
func (o originByRevisit[Q]) HeapIndexPtr() *int32 { return &o.revisitHeapIndex }

// A Host is a host in a Schedule, with the clock that all its origins share.
type Host[Q OriginURLQueue] struct {
	storage.HostState
	LeasesOut int // current leases of its URLs

	origins      IndexedHeap[*Origin[Q]] // origins with URLs to lease, now or later
	queuedURLs   int                     // queued URLs of its origins
	nextDue      int64                   // when its next URL may be leased
	dueHeapIndex int32                   // in Schedule.hostsByDue
	inHostCount  bool                    // is counted in Schedule.hostCount
}

// PrecedesInHeap implements HeapItem, for Schedule.hostsByDue.
func (h *Host[Q]) PrecedesInHeap(g *Host[Q]) bool { return h.nextDue < g.nextDue }

// HeapIndexPtr implements HeapItem, for Schedule.hostsByDue.
func (h *Host[Q]) HeapIndexPtr() *int32 { return &h.dueHeapIndex }

// NextURLDue returns when the next URL of the host can be leased, and the zero time if it has none. A
// leased URL counts as one, because its host is in use.
func (h *Host[Q]) NextURLDue() time.Time {
	switch {
	case h.LeasesOut > 0:
		return h.Due
	case len(h.origins) == 0:
		return time.Time{}
	}
	return timecmp.Later(time.Unix(0, h.origins[0].nextDue), h.Due)
}

// A Lease is a URL that is leased. The engine knows which.
type Lease[Q OriginURLQueue] struct {
	Token           uint64
	Origin          *Origin[Q]
	Expires         time.Time
	expiryHeapIndex int32 // in Schedule.leasesByExpiry
}

// PrecedesInHeap implements HeapItem: leases expire in the order of Expires. Of leases that expire
// together the last one goes first, so that the URL of the first one is at the head of the queue in the
// end.
func (l *Lease[Q]) PrecedesInHeap(m *Lease[Q]) bool {
	if l.Expires.Equal(m.Expires) {
		return l.Token > m.Token
	}
	return l.Expires.Before(m.Expires)
}

// HeapIndexPtr implements HeapItem, for Schedule.leasesByExpiry.
func (l *Lease[Q]) HeapIndexPtr() *int32 { return &l.expiryHeapIndex }

// A Schedule has all hosts of a crawl. The zero value is ready for use. The counts include evicted
// hosts.
type Schedule[Q OriginURLQueue] struct {
	hostCount            int // hosts with at least one URL queued or leased
	queuedURLCount       int // queued URLs, without pages that await their revisit
	suspendedURLCount    int // of queuedURLCount, those under a suspended hold
	awaitingRevisitCount int // pages that await their revisit

	now                    time.Time                                // the latest time of Advance
	hostsByDue             IndexedHeap[*Host[Q]]                    // hosts with URLs to lease and a free slot
	originsBySuspensionEnd IndexedHeap[originSuspensionHeapItem[Q]] // origins with URLs under a suspended hold
	originsByRevisit       IndexedHeap[originByRevisit[Q]]          // origins with pages that await their revisit
	leasesByExpiry         IndexedHeap[*Lease[Q]]                   // all leases
	evicted                evictedHosts
}

// Advance sets the time of the schedule to now, unless it is later already, and ends the suspended holds
// that are over.
func (s *Schedule[Q]) Advance(now time.Time) {
	if now.After(s.now) {
		s.now = now
	}
	for len(s.originsBySuspensionEnd) > 0 && !s.originsBySuspensionEnd[0].HeldUntil.After(s.now) {
		s.UpdateOrigin(s.originsBySuspensionEnd[0].Origin)
	}
}

// ExpireNext ends the next lease that has expired by now, postpones its host by LostVisitDelay from the
// expiry on, and returns the lease. It returns nil if no lease has expired.
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

// NextOrigin returns the origin whose URL is to be leased next, nil if no host is due. If the origin is
// held, one of its robots hops is due.
func (s *Schedule[Q]) NextOrigin(now time.Time) *Origin[Q] {
	if len(s.hostsByDue) == 0 || s.hostsByDue[0].nextDue > Nanos(now) {
		return nil
	}
	return s.hostsByDue[0].origins[0]
}

// NextOriginOfHost returns the origin of the host whose URL is to be leased next, and when it is due. It
// returns nil if the host can lease no URL before one of its leases ends or a URL is added.
func (s *Schedule[Q]) NextOriginOfHost(h *Host[Q]) (*Origin[Q], time.Time) {
	if h.dueHeapIndex == 0 {
		return nil, time.Time{}
	}
	return h.origins[0], time.Unix(0, h.nextDue)
}

// BeginLease returns a lease for a URL that the engine has removed from the queue of o. The lease takes
// a slot of the host.
func (s *Schedule[Q]) BeginLease(o *Origin[Q], token uint64, now, expires time.Time) *Lease[Q] {
	l := &Lease[Q]{Token: token, Origin: o, Expires: expires}
	s.leasesByExpiry.PushOrMove(l)
	o.Host.LeasesOut++
	o.waitingSince = Nanos(now)
	s.UpdateOrigin(o)
	return l
}

// RenewLease sets when the lease expires.
func (s *Schedule[Q]) RenewLease(l *Lease[Q], expires time.Time) {
	l.Expires = expires
	s.leasesByExpiry.PushOrMove(l)
}

// EndLease ends the lease and frees its slot.
func (s *Schedule[Q]) EndLease(l *Lease[Q]) {
	s.leasesByExpiry.Remove(l)
	l.Origin.Host.LeasesOut--
	s.UpdateOrigin(l.Origin)
}

// Nanos returns t in nanoseconds since 1970. A time that an int64 cannot hold, in the years before 1678
// and after 2261, becomes the lowest or highest int64.
func Nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// SetState sets the state of the host, except that Due does not move back. The caller must then call
// UpdateOrigin for one of the host's origins.
func (h *Host[Q]) SetState(c storage.HostState) {
	due := h.Due
	h.HostState = c
	h.PostponeUntil(due)
}

// PostponeUntil moves Due to t unless Due is later. The caller must then call UpdateOrigin for one of
// the host's origins.
func (h *Host[Q]) PostponeUntil(t time.Time) {
	if t.After(h.Due) {
		h.Due = t
	}
}
