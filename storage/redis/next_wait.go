package redis

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// nextWait says when to ask again. What is on a server that does not answer is waited for.
func (s *Store) nextWait(callerNow time.Time) storage.Wait {
	now := s.client.Clock().callerOrLocalMicros(callerNow)
	all, up := s.client.Partitions().total()
	next := waitOfSummary(&all, now)
	if !up {
		next = storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: microsToTime(now).Add(unreachableRetryDelay)}
	}
	if !s.opts.usesCallerTime {
		next.PollAt = microsToTime(now).Add(s.opts.PartitionRefreshInterval)
	}
	next.LossGeneration = s.client.failoverCount()
	return next
}

// waitOfSummary is what package schedule says is left.
func waitOfSummary(s *partitionSummary, now int64) storage.Wait {
	switch {
	case s.leasedURLs > 0 && (s.nextHostDue() == never || s.nextLeaseExpiry < s.nextHostDue()):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: microsToTime(s.nextLeaseExpiry)}
	case s.leasedURLs > 0 || s.queuedURLs > s.suspendedURLs || hasPassed(s.nextRevisit, now):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: microsToTime(s.nextHostDue())}
	case s.suspendedURLs > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: microsToTime(s.nextHoldEnd)}
	case s.awaitingRevisit > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: microsToTime(s.nextRevisit)}
	}
	return storage.Wait{}
}
