package redis

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// nextWait says when to ask again. What is on a server that does not answer is waited for.
func (s *Store) nextWait(callerNow time.Time) storage.Wait {
	now := s.client.Clock().CallerOrLocalMicros(callerNow)
	all, up := s.client.Partitions().Total()
	next := waitOfSummary(&all, now)
	if !up {
		next = storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: MicrosToTime(now).Add(unreachableRetryDelay)}
	}
	if !s.opts.usesCallerTime {
		next.PollAt = MicrosToTime(now).Add(s.opts.PartitionRefreshInterval)
	}
	next.LossGeneration = s.client.Failovers()
	return next
}

// waitOfSummary is what package schedule says is left.
func waitOfSummary(s *Summary, now int64) storage.Wait {
	switch {
	case s.LeasedURLs > 0 && (s.NextHostDue() == Never || s.NextLeaseExpiry < s.NextHostDue()):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: MicrosToTime(s.NextLeaseExpiry)}
	case s.LeasedURLs > 0 || s.QueuedURLs > s.SuspendedURLs || HasPassed(s.NextRevisit, now):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: MicrosToTime(s.NextHostDue())}
	case s.SuspendedURLs > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: MicrosToTime(s.NextHoldEnd)}
	case s.AwaitingRevisit > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: MicrosToTime(s.NextRevisit)}
	}
	return storage.Wait{}
}
