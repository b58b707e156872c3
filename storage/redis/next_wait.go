package redis

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

// nextWait returns when to ask again. What is on a server that does not answer is waited for.
func (l *leaser) nextWait(callerNow time.Time) storage.Wait {
	now := l.client.Clock().CallerOrLocalMicros(callerNow)
	all, up := l.client.Partitions().Total()
	next := waitOfSummary(&all, now)
	if !up {
		retryAt := client.MicrosToTime(now).Add(unreachableRetryDelay)
		next = storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: retryAt}
	}
	if !l.client.Clock().UsesCallerTime() {
		next.PollAt = client.MicrosToTime(now).Add(l.refreshInterval)
	}
	next.LossGeneration = l.client.Failovers()
	return next
}

// waitOfSummary returns what is left, as package schedule says it.
func waitOfSummary(s *client.Summary, now int64) storage.Wait {
	switch {
	case s.LeasedURLs > 0 && (s.NextHostDue() == client.Never || s.NextLeaseExpiry < s.NextHostDue()):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: client.MicrosToTime(s.NextLeaseExpiry)}
	case s.LeasedURLs > 0 || s.QueuedURLs > s.SuspendedURLs || client.HasPassed(s.NextRevisit, now):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: client.MicrosToTime(s.NextHostDue())}
	case s.SuspendedURLs > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: client.MicrosToTime(s.NextHoldEnd)}
	case s.AwaitingRevisit > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: client.MicrosToTime(s.NextRevisit)}
	}
	return storage.Wait{}
}
