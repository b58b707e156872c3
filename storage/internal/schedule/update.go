package schedule

import "time"

// UpdateOrigin takes note that the origin's queue, hold or host has changed.
func (s *Schedule[Q]) UpdateOrigin(o *Origin[Q]) {
	s.updateCounts(o)
	h := o.Host
	if at, ok := o.computeNextDue(); ok {
		o.nextDue = at
		h.origins.pushOrMove(o)
	} else {
		h.origins.remove(o)
	}
	s.requeueHost(h)
}

// updateCounts brings the sums up to date.
func (s *Schedule[Q]) updateCounts(o *Origin[Q]) {
	all, robotsHops := o.Queue.TotalAndRobotsHops()
	if o.queuedURLCount == 0 && all > 0 {
		o.waitingSince = max(o.waitingSince, Nanos(s.now))
	}
	s.QueuedURLCount += all - o.queuedURLCount
	o.Host.queuedURLs += all - o.queuedURLCount
	o.queuedURLCount = all

	suspended := 0
	if o.Suspended && o.HeldUntil.After(s.now) {
		suspended = all - robotsHops
	}
	s.SuspendedURLCount += suspended - o.suspendedURLCount
	o.suspendedURLCount = suspended
	if suspended > 0 {
		s.originsBySuspensionEnd.pushOrMove(originSuspensionHeapItem[Q]{o})
	} else {
		s.originsBySuspensionEnd.remove(originSuspensionHeapItem[Q]{o})
	}
	s.updateAwaitingRevisit(o)
}

// updateAwaitingRevisit does the same for pages that wait for their revisit.
func (s *Schedule[Q]) updateAwaitingRevisit(o *Origin[Q]) {
	n, firstDue := o.Queue.RevisitCountAndFirstDue()
	s.AwaitingRevisitCount += n - o.awaitingRevisitCount
	o.awaitingRevisitCount = n
	if n == 0 {
		s.originsByRevisit.remove(originByRevisit[Q]{o})
		return
	}
	o.earliestRevisitTime = firstDue
	if o.Suspended {
		o.earliestRevisitTime = max(firstDue, Nanos(o.HeldUntil))
	}
	s.originsByRevisit.pushOrMove(originByRevisit[Q]{o})
}

// computeNextDue returns when the next URL of the origin can be handed out. It is not
// earlier than its last turn, so that origins and hosts that are due take turns.
func (o *Origin[Q]) computeNextDue() (int64, bool) {
	at, ok := o.Queue.ReadyAt(false)
	if ok {
		at = max(at, Nanos(o.HeldUntil))
	}
	if hopDue, hasHop := o.Queue.ReadyAt(true); hasHop && (!ok || hopDue < at) {
		at, ok = hopDue, true
	}
	return max(at, o.waitingSince), ok
}

// requeueHost gives the host its place among those that wait for their turn.
func (s *Schedule[Q]) requeueHost(h *Host[Q]) {
	if hasURLs := h.queuedURLs+h.LeasesOut > 0; hasURLs != h.inHostCount {
		h.inHostCount = hasURLs
		if hasURLs {
			s.HostCount++
		} else {
			s.HostCount--
		}
	}
	if len(h.origins) == 0 || h.LeasesOut >= max(h.Slots, 1) {
		s.hostsByDue.remove(h)
		return
	}
	h.nextDue = max(Nanos(h.Due), h.origins[0].nextDue)
	s.hostsByDue.pushOrMove(h)
}

// A RemainingWorkKind is storage.RemainingWorkKind.
type RemainingWorkKind uint8

// What may be left.
const (
	RemainingNone RemainingWorkKind = iota
	RemainingRevisits
	RemainingSuspended
	RemainingPending
)

// RemainingWorkKindAndTime returns what is left, and when to ask again.
func (s *Schedule[Q]) RemainingWorkKindAndTime() (RemainingWorkKind, time.Time) {
	switch revisitDue := len(s.originsByRevisit) > 0 && s.originsByRevisit[0].earliestRevisitTime <= Nanos(s.now); {
	case len(s.leasesByExpiry) > 0 && (len(s.hostsByDue) == 0 || Nanos(s.leasesByExpiry[0].Expires) < s.hostsByDue[0].nextDue):
		return RemainingPending, s.leasesByExpiry[0].Expires
	case len(s.leasesByExpiry) > 0 || s.QueuedURLCount > s.SuspendedURLCount || revisitDue:
		return RemainingPending, time.Unix(0, s.hostsByDue[0].nextDue)
	case s.SuspendedURLCount > 0:
		return RemainingSuspended, s.originsBySuspensionEnd[0].HeldUntil
	case len(s.originsByRevisit) > 0:
		return RemainingRevisits, time.Unix(0, s.originsByRevisit[0].earliestRevisitTime)
	}
	return RemainingNone, time.Time{}
}

// CountDueHosts counts the hosts that could be given a lease at the latest time known:
// 1970, where since begins, if it was told none.
func (s *Schedule[Q]) CountDueHosts() int {
	now := max(0, Nanos(s.now))
	return countDue(s.hostsByDue, now, 0) + s.evicted.countDue(now, 0)
}

// countDue counts the hosts of the heap from i down whose time has come. Below one
// whose time has not, there is none.
func countDue[Q OriginURLQueue](hosts indexedHeap[*Host[Q]], now int64, i int) int {
	if i >= len(hosts) || hosts[i].nextDue > now {
		return 0
	}
	return 1 + countDue(hosts, now, 2*i+1) + countDue(hosts, now, 2*i+2)
}
