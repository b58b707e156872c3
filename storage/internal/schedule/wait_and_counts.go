package schedule

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

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
