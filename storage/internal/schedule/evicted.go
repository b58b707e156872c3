package schedule

import (
	"math"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// Most hosts of a large crawl wait, and until their turn the schedule needs little of them. An engine
// that has a host on disk may evict it from the schedule, which then keeps an EvictedHostStub, a tenth
// of the size of a Host and its origins. The counts of the schedule still include evicted hosts.

// An EvictedHostStub replaces an evicted host in a Schedule.
type EvictedHostStub struct {
	HostNumber uint32 // the engine's number of the host
	Origins    []EvictedOriginStub

	nextDue             int64 // when its next URL may be leased
	firstSuspensionEnd  int64 // when the first of its suspended holds ends
	earliestRevisitTime int64 // when the first of its revisits is due

	// The host's parts of the counts of the Schedule.
	queuedURLCount, suspendedURLCount, awaitingRevisitCount int32

	dueHeapIndex        int32 // in evictedHosts.byDue
	suspensionHeapIndex int32 // in evictedHosts.bySuspensionEnd
	revisitHeapIndex    int32 // in evictedHosts.byRevisit
	inHostCount         bool  // is counted in Schedule.hostCount
}

// An EvictedOriginStub is an origin of an EvictedHostStub.
type EvictedOriginStub struct {
	OriginNumber uint32 // the engine's number of the origin
	WaitingSince int64  // argument of RestoreEvictedOrigin
}

// PrecedesInHeap implements HeapItem, for evictedHosts.byDue.
func (h *EvictedHostStub) PrecedesInHeap(g *EvictedHostStub) bool { return h.nextDue < g.nextDue }

// HeapIndexPtr implements HeapItem, for evictedHosts.byDue.
func (h *EvictedHostStub) HeapIndexPtr() *int32 { return &h.dueHeapIndex }

// An evictedHostSuspensionHeapItem orders the evicted hosts with URLs under a suspended hold by the
// first end of one.
type evictedHostSuspensionHeapItem struct{ *EvictedHostStub }

func (h evictedHostSuspensionHeapItem) PrecedesInHeap(g evictedHostSuspensionHeapItem) bool {
	return h.firstSuspensionEnd < g.firstSuspensionEnd
}
func (h evictedHostSuspensionHeapItem) HeapIndexPtr() *int32 { return &h.suspensionHeapIndex }

// An evictedHostByRevisitTime orders the evicted hosts with pages that await their revisit by the first
// of them.
type evictedHostByRevisitTime struct{ *EvictedHostStub }

func (h evictedHostByRevisitTime) PrecedesInHeap(g evictedHostByRevisitTime) bool {
	return h.earliestRevisitTime < g.earliestRevisitTime
}
func (h evictedHostByRevisitTime) HeapIndexPtr() *int32 { return &h.revisitHeapIndex }

// evictedHosts are the stubs of all evicted hosts.
type evictedHosts struct {
	byNumber        map[uint32]*EvictedHostStub
	byDue           IndexedHeap[*EvictedHostStub]
	bySuspensionEnd IndexedHeap[evictedHostSuspensionHeapItem]
	byRevisit       IndexedHeap[evictedHostByRevisitTime]
}

// EvictHost replaces a host without leases, and all its origins that have URLs to lease, by a stub.
// number is the engine's number of the host; numberOf returns that of an origin. The engine must not
// change the host or its origins until it has called RemoveFromEvictedHosts and RestoreEvictedOrigin.
func (s *Schedule[Q]) EvictHost(h *Host[Q], number uint32, numberOf func(Q) uint32) {
	evicted := &EvictedHostStub{
		HostNumber: number, Origins: make([]EvictedOriginStub, 0, len(h.origins)),
		nextDue: h.nextDue, firstSuspensionEnd: math.MaxInt64, earliestRevisitTime: math.MaxInt64,
		inHostCount: h.inHostCount,
	}
	// Move the counts and the earliest times of the origins to the stub.
	for len(h.origins) > 0 {
		o := h.origins[0]
		evicted.Origins = append(evicted.Origins, EvictedOriginStub{numberOf(o.Queue), o.waitingSince})
		evicted.queuedURLCount += int32(o.queuedURLCount)
		evicted.suspendedURLCount += int32(o.suspendedURLCount)
		evicted.awaitingRevisitCount += int32(o.awaitingRevisitCount)
		if o.suspendedURLCount > 0 {
			evicted.firstSuspensionEnd = min(evicted.firstSuspensionEnd, Nanos(o.HeldUntil))
		}
		if o.awaitingRevisitCount > 0 {
			evicted.earliestRevisitTime = min(evicted.earliestRevisitTime, o.earliestRevisitTime)
		}
		h.origins.Remove(o)
		s.originsBySuspensionEnd.Remove(originSuspensionHeapItem[Q]{o})
		s.originsByRevisit.Remove(originByRevisit[Q]{o})
	}
	// Put the stub into the heaps in place of the host.
	s.hostsByDue.Remove(h)
	if s.evicted.byNumber == nil {
		s.evicted.byNumber = make(map[uint32]*EvictedHostStub)
	}
	s.evicted.byNumber[number] = evicted
	s.evicted.byDue.PushOrMove(evicted)
	if evicted.suspendedURLCount > 0 {
		s.evicted.bySuspensionEnd.PushOrMove(evictedHostSuspensionHeapItem{evicted})
	}
	if evicted.awaitingRevisitCount > 0 {
		s.evicted.byRevisit.PushOrMove(evictedHostByRevisitTime{evicted})
	}
}

// IsHostEvictable reports whether EvictHost may be called: the host has no leases; origins, the number
// of its origins in the engine's memory, is the number of its origins with URLs to lease; and the host
// is not the first of a heap, so that NextHostToRestore does not return it at once.
func (s *Schedule[Q]) IsHostEvictable(h *Host[Q], origins int) bool {
	if h.LeasesOut > 0 || len(h.origins) != origins || origins == 0 || s.hostsByDue[0] == h {
		return false
	}
	isFirstHold := len(s.originsBySuspensionEnd) > 0 && s.originsBySuspensionEnd[0].Host == h
	isFirstRevisit := len(s.originsByRevisit) > 0 && s.originsByRevisit[0].Host == h
	return !isFirstHold && !isFirstRevisit
}

// OriginsWithURLs calls yield with the queue of each origin of the host that has URLs to lease, now or
// later.
func (h *Host[Q]) OriginsWithURLs(yield func(Q) bool) {
	for _, o := range h.origins {
		if !yield(o.Queue) {
			return
		}
	}
}

// EvictedHostByNumber returns the stub of the host with a number, nil if it is not evicted.
func (s *Schedule[Q]) EvictedHostByNumber(number uint32) *EvictedHostStub {
	return s.evicted.byNumber[number]
}

// NextHostToRestore returns the stub of a host that the engine must restore before it calls NextOrigin or
// Wait, because the host would be the first by due time, by the end of a suspended hold or by revisit. It
// returns nil when no such host is left.
func (s *Schedule[Q]) NextHostToRestore() *EvictedHostStub {
	// Compare the first evicted host of each heap with the first one in memory.
	evicted := &s.evicted
	switch {
	case len(evicted.byDue) > 0 && (len(s.hostsByDue) == 0 || evicted.byDue[0].nextDue < s.hostsByDue[0].nextDue):
		return evicted.byDue[0]
	case len(evicted.bySuspensionEnd) > 0 && (len(s.originsBySuspensionEnd) == 0 ||
		evicted.bySuspensionEnd[0].firstSuspensionEnd < Nanos(s.originsBySuspensionEnd[0].HeldUntil)):
		return evicted.bySuspensionEnd[0].EvictedHostStub
	case len(evicted.byRevisit) > 0 && (len(s.originsByRevisit) == 0 ||
		evicted.byRevisit[0].earliestRevisitTime < s.originsByRevisit[0].earliestRevisitTime):
		return evicted.byRevisit[0].EvictedHostStub
	}
	return nil
}

// RemoveFromEvictedHosts removes a stub and its counts from the schedule. The engine must then call
// RestoreEvictedOrigin for each of h.Origins.
func (s *Schedule[Q]) RemoveFromEvictedHosts(h *EvictedHostStub) {
	delete(s.evicted.byNumber, h.HostNumber)
	s.evicted.byDue.Remove(h)
	s.evicted.bySuspensionEnd.Remove(evictedHostSuspensionHeapItem{h})
	s.evicted.byRevisit.Remove(evictedHostByRevisitTime{h})
	s.queuedURLCount -= int(h.queuedURLCount)
	s.suspendedURLCount -= int(h.suspendedURLCount)
	s.awaitingRevisitCount -= int(h.awaitingRevisitCount)
	if h.inHostCount {
		s.hostCount--
	}
}

// RestoreEvictedOrigin puts an evicted origin back into the schedule, at its former place.
// waitingSince is EvictedOriginStub.WaitingSince.
func (s *Schedule[Q]) RestoreEvictedOrigin(o *Origin[Q], waitingSince int64) {
	s.UpdateOrigin(o)
	o.waitingSince = waitingSince // the first UpdateOrigin has changed it, as of an origin that was empty
	s.UpdateOrigin(o)
}

// EvictedOriginNextDue is Origin.NextDue for an origin of an evicted host that the engine has read from
// disk without restoring it. waitingSince is EvictedOriginStub.WaitingSince.
func EvictedOriginNextDue[Q OriginURLQueue](o *Origin[Q], waitingSince int64) time.Time {
	o.waitingSince = waitingSince
	at, ok := o.computeNextDue()
	if !ok {
		return time.Time{}
	}
	return timecmp.Later(time.Unix(0, at), o.Host.Due)
}
