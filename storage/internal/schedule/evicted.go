package schedule

import (
	"math"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// Most hosts of a large crawl wait, and until their turn the schedule needs little of
// them. An engine that has them on disk may evict them from the schedule, which then
// keeps an EvictedHostStub of each, a tenth of the size of a Host and its origins. The sums of
// the schedule still count idle hosts.

// An EvictedHostStub is a host that was evicted.
type EvictedHostStub struct {
	HostNumber uint32 // as the engine counts
	Origins    []EvictedOriginStub

	nextDue             int64 // when its next URL can be handed out
	firstSuspensionEnd  int64 // when the first of its dormant holds ends
	earliestRevisitTime int64 // when the first of its pages comes due

	queuedURLCount, suspendedURLCount, awaitingRevisitCount int32 // as counted in Schedule
	dueHeapIndex                                            int32
	suspensionHeapIndex                                     int32
	revisitHeapIndex                                        int32
	inHostCount                                             bool
}

// An EvictedOriginStub is an origin of an EvictedHostStub.
type EvictedOriginStub struct {
	OriginNumber uint32 // as the engine counts
	WaitingSince int64  // for Restore
}

func (h *EvictedHostStub) PrecedesInHeap(g *EvictedHostStub) bool { return h.nextDue < g.nextDue }
func (h *EvictedHostStub) HeapIndexPtr() *int32                   { return &h.dueHeapIndex }

// evictedHostSuspensionHeapItem orders the idle hosts with URLs under a dormant hold.
type evictedHostSuspensionHeapItem struct{ *EvictedHostStub }

func (h evictedHostSuspensionHeapItem) PrecedesInHeap(g evictedHostSuspensionHeapItem) bool {
	return h.firstSuspensionEnd < g.firstSuspensionEnd
}
func (h evictedHostSuspensionHeapItem) HeapIndexPtr() *int32 { return &h.suspensionHeapIndex }

// evictedHostByRevisitTime orders the idle hosts with resting pages.
type evictedHostByRevisitTime struct{ *EvictedHostStub }

func (h evictedHostByRevisitTime) PrecedesInHeap(g evictedHostByRevisitTime) bool {
	return h.earliestRevisitTime < g.earliestRevisitTime
}
func (h evictedHostByRevisitTime) HeapIndexPtr() *int32 { return &h.revisitHeapIndex }

// evictedHosts is all idle hosts.
type evictedHosts struct {
	byNumber        map[uint32]*EvictedHostStub
	byDue           IndexedHeap[*EvictedHostStub]
	bySuspensionEnd IndexedHeap[evictedHostSuspensionHeapItem]
	byRevisit       IndexedHeap[evictedHostByRevisitTime]
}

// EvictHost takes a host without leases, and all its origins that have anything to
// hand out, out of the schedule. number is the host's; numberOf returns that of an
// origin. The engine must not change what they hold until it has called RemoveFromEvictedHosts and
// Restore.
func (s *Schedule[Q]) EvictHost(h *Host[Q], number uint32, numberOf func(Q) uint32) {
	evicted := &EvictedHostStub{
		HostNumber: number, Origins: make([]EvictedOriginStub, 0, len(h.origins)),
		nextDue: h.nextDue, firstSuspensionEnd: math.MaxInt64, earliestRevisitTime: math.MaxInt64, inHostCount: h.inHostCount,
	}
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

// IsHostEvictable reports whether EvictHost may be called: no lease of the host is out, origins
// is the number of its origins that have anything to hand out, and the host is first in
// no queue, so that NextHostToRestore does not return it at once.
func (s *Schedule[Q]) IsHostEvictable(h *Host[Q], origins int) bool {
	if h.LeasesOut > 0 || len(h.origins) != origins || origins == 0 || s.hostsByDue[0] == h {
		return false
	}
	isFirstHold := len(s.originsBySuspensionEnd) > 0 && s.originsBySuspensionEnd[0].Host == h
	isFirstRevisit := len(s.originsByRevisit) > 0 && s.originsByRevisit[0].Host == h
	return !isFirstHold && !isFirstRevisit
}

// OriginsWithURLs calls yield with the origins of the host that have anything to hand out.
func (h *Host[Q]) OriginsWithURLs(yield func(Q) bool) {
	for _, o := range h.origins {
		if !yield(o.Queue) {
			return
		}
	}
}

// EvictedHostByNumber returns the idle host with that number, or nil.
func (s *Schedule[Q]) EvictedHostByNumber(number uint32) *EvictedHostStub {
	return s.evicted.byNumber[number]
}

// NextHostToRestore returns an idle host that the engine must wake before it calls NextOrigin or RemainingWorkKindAndTime,
// so that the schedule knows the first entry of each queue; nil if no host must wake.
// Hosts whose dormant hold has ended by the time of Advance come first.
func (s *Schedule[Q]) NextHostToRestore() *EvictedHostStub {
	evicted := &s.evicted
	switch {
	case len(evicted.byDue) > 0 && (len(s.hostsByDue) == 0 || evicted.byDue[0].nextDue < s.hostsByDue[0].nextDue):
		return evicted.byDue[0]
	case len(evicted.bySuspensionEnd) > 0 && (len(s.originsBySuspensionEnd) == 0 || evicted.bySuspensionEnd[0].firstSuspensionEnd < Nanos(s.originsBySuspensionEnd[0].HeldUntil)):
		return evicted.bySuspensionEnd[0].EvictedHostStub
	case len(evicted.byRevisit) > 0 && (len(s.originsByRevisit) == 0 || evicted.byRevisit[0].earliestRevisitTime < s.originsByRevisit[0].earliestRevisitTime):
		return evicted.byRevisit[0].EvictedHostStub
	}
	return nil
}

// RemoveFromEvictedHosts takes h out of the idle hosts. The engine must call RestoreEvictedOrigin with each of
// its origins.
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

// RestoreEvictedOrigin puts an evicted origin back into its former place.
func (s *Schedule[Q]) RestoreEvictedOrigin(o *Origin[Q], waitingSince int64) {
	s.UpdateOrigin(o)
	o.waitingSince = waitingSince // Update sees it as formerly empty
	s.UpdateOrigin(o)
}

// EvictedOriginNextDue returns when the next URL of an idle origin can be handed out, as
// Origin.NextDue does.
func EvictedOriginNextDue[Q OriginURLQueue](o *Origin[Q], waitingSince int64) time.Time {
	o.waitingSince = waitingSince
	at, ok := o.computeNextDue()
	if !ok {
		return time.Time{}
	}
	return timecmp.Later(time.Unix(0, at), o.Host.Due)
}
