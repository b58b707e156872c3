package schedule

import (
	"math"
	"time"
)

// Most hosts of a large crawl wait, and until their turn the schedule needs little of
// them. An engine that has them on disk may evict them from the schedule, which then
// keeps an EvictedHost of each, a tenth of the size of a Host and its origins. The sums of
// the schedule still count idle hosts.

// An EvictedHost is a host that was evicted.
type EvictedHost struct {
	Number  uint32 // as the engine counts
	Origins []EvictedOrigin

	nextDue             int64 // when its next URL can be handed out
	firstSuspensionEnd  int64 // when the first of its dormant holds ends
	earliestRevisitTime int64 // when the first of its pages comes due

	queuedURLs, suspendedURLs, awaitingRevisit int32 // as counted in Schedule
	dueHeapIndex                               int32
	suspensionHeapIndex                        int32
	revisitHeapIndex                           int32
	inHostCount                                bool
}

// An EvictedOrigin is an origin of an EvictedHost.
type EvictedOrigin struct {
	Number       uint32 // as the engine counts
	WaitingSince int64  // for Restore
}

func (h *EvictedHost) before(g *EvictedHost) bool { return h.nextDue < g.nextDue }
func (h *EvictedHost) heapIndex() *int32          { return &h.dueHeapIndex }

// evictedHostBySuspensionEnd orders the idle hosts with URLs under a dormant hold.
type evictedHostBySuspensionEnd struct{ *EvictedHost }

func (h evictedHostBySuspensionEnd) before(g evictedHostBySuspensionEnd) bool {
	return h.firstSuspensionEnd < g.firstSuspensionEnd
}
func (h evictedHostBySuspensionEnd) heapIndex() *int32 { return &h.suspensionHeapIndex }

// evictedHostByRevisitTime orders the idle hosts with resting pages.
type evictedHostByRevisitTime struct{ *EvictedHost }

func (h evictedHostByRevisitTime) before(g evictedHostByRevisitTime) bool {
	return h.earliestRevisitTime < g.earliestRevisitTime
}
func (h evictedHostByRevisitTime) heapIndex() *int32 { return &h.revisitHeapIndex }

// evictedHosts is all idle hosts.
type evictedHosts struct {
	byNumber        map[uint32]*EvictedHost
	byDue           heap[*EvictedHost]
	bySuspensionEnd heap[evictedHostBySuspensionEnd]
	byRevisit       heap[evictedHostByRevisitTime]
}

// Evict takes a host without leases, and all its origins that have anything to
// hand out, out of the schedule. number is the host's; numberOf returns that of an
// origin. The engine must not change what they hold until it has called RemoveEvictedHost and
// Restore.
func (s *Schedule[Q]) Evict(h *Host[Q], number uint32, numberOf func(Q) uint32) {
	evicted := &EvictedHost{
		Number: number, Origins: make([]EvictedOrigin, 0, len(h.origins)),
		nextDue: h.nextDue, firstSuspensionEnd: math.MaxInt64, earliestRevisitTime: math.MaxInt64, inHostCount: h.inHostCount,
	}
	for len(h.origins) > 0 {
		o := h.origins[0]
		evicted.Origins = append(evicted.Origins, EvictedOrigin{numberOf(o.Queue), o.waitingSince})
		evicted.queuedURLs += int32(o.queuedURLs)
		evicted.suspendedURLs += int32(o.suspendedURLs)
		evicted.awaitingRevisit += int32(o.awaitingRevisit)
		if o.suspendedURLs > 0 {
			evicted.firstSuspensionEnd = min(evicted.firstSuspensionEnd, Nanos(o.HeldUntil))
		}
		if o.awaitingRevisit > 0 {
			evicted.earliestRevisitTime = min(evicted.earliestRevisitTime, o.earliestRevisitTime)
		}
		h.origins.remove(o)
		s.originsBySuspensionEnd.remove(originBySuspensionEnd[Q]{o})
		s.originsByRevisit.remove(originByRevisit[Q]{o})
	}
	s.hostsByDue.remove(h)
	if s.evicted.byNumber == nil {
		s.evicted.byNumber = make(map[uint32]*EvictedHost)
	}
	s.evicted.byNumber[number] = evicted
	s.evicted.byDue.pushOrMove(evicted)
	if evicted.suspendedURLs > 0 {
		s.evicted.bySuspensionEnd.pushOrMove(evictedHostBySuspensionEnd{evicted})
	}
	if evicted.awaitingRevisit > 0 {
		s.evicted.byRevisit.pushOrMove(evictedHostByRevisitTime{evicted})
	}
}

// IsEvictable reports whether Evict may be called: no lease of the host is out, origins
// is the number of its origins that have anything to hand out, and the host is first in
// no queue, so that NextToRestore does not return it at once.
func (s *Schedule[Q]) IsEvictable(h *Host[Q], origins int) bool {
	if h.LeasesOut > 0 || len(h.origins) != origins || origins == 0 || s.hostsByDue[0] == h {
		return false
	}
	isFirstHold := len(s.originsBySuspensionEnd) > 0 && s.originsBySuspensionEnd[0].Host == h
	isFirstRevisit := len(s.originsByRevisit) > 0 && s.originsByRevisit[0].Host == h
	return !isFirstHold && !isFirstRevisit
}

// Origins calls yield with the origins of the host that have anything to hand out.
func (h *Host[Q]) Origins(yield func(Q) bool) {
	for _, o := range h.origins {
		if !yield(o.Queue) {
			return
		}
	}
}

// EvictedHostByNumber returns the idle host with that number, or nil.
func (s *Schedule[Q]) EvictedHostByNumber(number uint32) *EvictedHost {
	return s.evicted.byNumber[number]
}

// NextToRestore returns an idle host that the engine must wake before it calls NextOrigin or RemainingWork,
// so that the schedule knows the first entry of each queue; nil if no host must wake.
// Hosts whose dormant hold has ended by the time of Advance come first.
func (s *Schedule[Q]) NextToRestore() *EvictedHost {
	evicted := &s.evicted
	switch {
	case len(evicted.byDue) > 0 && (len(s.hostsByDue) == 0 || evicted.byDue[0].nextDue < s.hostsByDue[0].nextDue):
		return evicted.byDue[0]
	case len(evicted.bySuspensionEnd) > 0 && (len(s.originsBySuspensionEnd) == 0 || evicted.bySuspensionEnd[0].firstSuspensionEnd < Nanos(s.originsBySuspensionEnd[0].HeldUntil)):
		return evicted.bySuspensionEnd[0].EvictedHost
	case len(evicted.byRevisit) > 0 && (len(s.originsByRevisit) == 0 || evicted.byRevisit[0].earliestRevisitTime < s.originsByRevisit[0].earliestRevisitTime):
		return evicted.byRevisit[0].EvictedHost
	}
	return nil
}

// RemoveEvictedHost takes h out of the idle hosts. The engine must call RestoreEvictedOrigin with each of
// its origins.
func (s *Schedule[Q]) RemoveEvictedHost(h *EvictedHost) {
	delete(s.evicted.byNumber, h.Number)
	s.evicted.byDue.remove(h)
	s.evicted.bySuspensionEnd.remove(evictedHostBySuspensionEnd{h})
	s.evicted.byRevisit.remove(evictedHostByRevisitTime{h})
	s.QueuedURLs -= int(h.queuedURLs)
	s.SuspendedURLs -= int(h.suspendedURLs)
	s.AwaitingRevisit -= int(h.awaitingRevisit)
	if h.inHostCount {
		s.HostCount--
	}
}

// RestoreEvictedOrigin puts an evicted origin back into its former place.
func (s *Schedule[Q]) RestoreEvictedOrigin(o *Origin[Q], waitingSince int64) {
	s.Update(o)
	o.waitingSince = waitingSince // Update sees it as formerly empty
	s.Update(o)
}

// EvictedOriginNextDue returns when the next URL of an idle origin can be handed out, as
// Origin.NextDue does.
func EvictedOriginNextDue[Q OriginQueue](o *Origin[Q], waitingSince int64) (time.Time, bool) {
	o.waitingSince = waitingSince
	at, ok := o.computeNextDue()
	if !ok {
		return time.Time{}, false
	}
	return laterTime(time.Unix(0, at), o.Host.Due), true
}

// countDue counts the idle hosts from i down whose time has come.
func (s *evictedHosts) countDue(now int64, i int) int {
	if i >= len(s.byDue) || s.byDue[i].nextDue > now {
		return 0
	}
	return 1 + s.countDue(now, 2*i+1) + s.countDue(now, 2*i+2)
}
