package schedule

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// Wait returns what remains to be leased, and when to call Lease again. The engine must have restored
// the evicted hosts of NextHostToRestore.
func (s *Schedule[Q]) Wait() storage.Wait {
	// Leases and URLs that are not suspended come first, then suspended URLs, then revisits.
	switch revisitDue := len(s.originsByRevisit) > 0 && s.originsByRevisit[0].earliestRevisitTime <= Nanos(s.now); {
	case len(s.leasesByExpiry) > 0 && (len(s.hostsByDue) == 0 ||
		Nanos(s.leasesByExpiry[0].Expires) < s.hostsByDue[0].nextDue):
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

// Counts returns the counts of the schedule; those of parked and seen URLs are zero. DueHosts are those
// at the latest time of Advance, or of 1970 before the first Advance, the lowest waitingSince.
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
