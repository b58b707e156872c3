package schedule

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// UpdateOrigin takes note that the origin's queue, hold or host has changed.
func (s *Schedule[Q]) UpdateOrigin(o *Origin[Q]) {
	s.updateCounts(o)
	h := o.Host
	if at, ok := o.computeNextDue(); ok {
		o.nextDue = at
		h.origins.PushOrMove(o)
	} else {
		h.origins.Remove(o)
	}
	s.requeueHost(h)
}

// updateCounts brings the sums up to date.
func (s *Schedule[Q]) updateCounts(o *Origin[Q]) {
	all, robotsHops := o.Queue.TotalAndRobotsHops()
	if o.queuedURLCount == 0 && all > 0 {
		o.waitingSince = max(o.waitingSince, Nanos(s.now))
	}
	s.queuedURLCount += all - o.queuedURLCount
	o.Host.queuedURLs += all - o.queuedURLCount
	o.queuedURLCount = all

	suspended := 0
	if o.Suspended && o.HeldUntil.After(s.now) {
		suspended = all - robotsHops
	}
	s.suspendedURLCount += suspended - o.suspendedURLCount
	o.suspendedURLCount = suspended
	if suspended > 0 {
		s.originsBySuspensionEnd.PushOrMove(originSuspensionHeapItem[Q]{o})
	} else {
		s.originsBySuspensionEnd.Remove(originSuspensionHeapItem[Q]{o})
	}
	s.updateAwaitingRevisit(o)
}

// updateAwaitingRevisit does the same for pages that wait for their revisit.
func (s *Schedule[Q]) updateAwaitingRevisit(o *Origin[Q]) {
	n, firstDue := o.Queue.RevisitCountAndFirstDue()
	s.awaitingRevisitCount += n - o.awaitingRevisitCount
	o.awaitingRevisitCount = n
	if n == 0 {
		s.originsByRevisit.Remove(originByRevisit[Q]{o})
		return
	}
	o.earliestRevisitTime = firstDue
	if o.Suspended {
		o.earliestRevisitTime = max(firstDue, Nanos(o.HeldUntil))
	}
	s.originsByRevisit.PushOrMove(originByRevisit[Q]{o})
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
			s.hostCount++
		} else {
			s.hostCount--
		}
	}
	if len(h.origins) == 0 || h.LeasesOut >= max(h.Slots, 1) {
		s.hostsByDue.Remove(h)
		return
	}
	h.nextDue = max(Nanos(h.Due), h.origins[0].nextDue)
	s.hostsByDue.PushOrMove(h)
}

// Wait returns what is left, and when to ask again.
func (s *Schedule[Q]) Wait() storage.Wait {
	switch revisitDue := len(s.originsByRevisit) > 0 && s.originsByRevisit[0].earliestRevisitTime <= Nanos(s.now); {
	case len(s.leasesByExpiry) > 0 && (len(s.hostsByDue) == 0 || Nanos(s.leasesByExpiry[0].Expires) < s.hostsByDue[0].nextDue):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: s.leasesByExpiry[0].Expires}
	case len(s.leasesByExpiry) > 0 || s.queuedURLCount > s.suspendedURLCount || revisitDue:
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: time.Unix(0, s.hostsByDue[0].nextDue)}
	case s.suspendedURLCount > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: s.originsBySuspensionEnd[0].HeldUntil}
	case len(s.originsByRevisit) > 0:
		until := time.Unix(0, s.originsByRevisit[0].earliestRevisitTime)
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: until}
	}
	return storage.Wait{RemainingWorkKind: storage.RemainingNone}
}

// Counts returns how much waits or is leased. Due hosts are those that could be given a lease at the
// latest time known: 1970, where since begins, if it was told none. It knows no parked and no seen URLs.
func (s *Schedule[Q]) Counts() storage.Counts {
	now := max(0, Nanos(s.now))
	dueHosts := s.hostsByDue.countFirst(0, func(h *Host[Q]) bool { return h.nextDue <= now })
	dueHosts += s.evicted.byDue.countFirst(0, func(h *EvictedHostStub) bool { return h.nextDue <= now })
	return storage.Counts{
		QueuedHosts: s.hostCount, DueHosts: dueHosts,
		QueuedURLs: s.queuedURLCount, LeasedURLs: len(s.leasesByExpiry), SuspendedURLs: s.suspendedURLCount,
		AwaitingRevisit: s.awaitingRevisitCount,
	}
}
