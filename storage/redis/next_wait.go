package redis

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// totalSummary adds up what is known of all partitions; false if not all answered.
func (s *Store) totalSummary() (all partitionSummary, complete bool) {
	all = partitionSummary{nextLeaseExpiry: never, nextHoldEnd: never, nextRevisit: never}
	complete = true
	for _, p := range s.partitions {
		sum, answers := p.lastPartitionSummary()
		all, complete = all.add(sum), complete && answers
	}
	return all, complete
}

func (s *Store) allPartitionsReachable() bool {
	for _, p := range s.partitions {
		if _, up := p.lastPartitionSummary(); !up {
			return false
		}
	}
	return true
}

func (s *Store) noPartitionReachable() bool {
	for _, p := range s.partitions {
		if _, up := p.lastPartitionSummary(); up {
			return false
		}
	}
	return true
}

// nextWait says when to ask again. What is on a server that does not answer is waited for.
func (s *Store) nextWait(callerNow time.Time) storage.Wait {
	now := s.scriptClock.callerOrLocalMicros(callerNow)
	all, up := s.totalSummary()
	next := all.asWait(now)
	if !up {
		next = storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: microsToTime(now).Add(unreachableRetryDelay)}
	}
	if !s.opts.usesCallerTime {
		next.PollAt = microsToTime(now).Add(s.opts.PartitionRefreshInterval)
	}
	next.LossGeneration = s.failovers.Load()
	return next
}

// asWait is what package schedule says is left.
func (s *partitionSummary) asWait(now int64) storage.Wait {
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
