package redis

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// total adds up what is known of all partitions; false if not all answered.
func (s *Store) total() (all sum, up bool) {
	all = sum{expires: never, hold: never, revisit: never}
	up = true
	for _, p := range s.partitions {
		sum, answers := p.known()
		all, up = all.join(sum), up && answers
	}
	return all, up
}

func (s *Store) allUp() bool {
	for _, p := range s.partitions {
		if _, up := p.known(); !up {
			return false
		}
	}
	return true
}

func (s *Store) allDown() bool {
	for _, p := range s.partitions {
		if _, up := p.known(); up {
			return false
		}
	}
	return true
}

// left says when to ask again. What is on a server that does not answer is waited for.
func (s *Store) left(callerNow time.Time) storage.Next {
	now := s.clock.at(callerNow)
	all, up := s.total()
	next := all.next(now)
	if !up {
		next = storage.Next{Left: storage.Waiting, At: instant(now).Add(retryDown)}
	}
	if !s.opts.usesCallerTime {
		next.Ask = instant(now).Add(s.opts.Refresh)
	}
	next.Lost = s.losses.Load()
	return next
}

// next is what package schedule says is left.
func (s *sum) next(now int64) storage.Next {
	switch {
	case s.out > 0 && (s.turn() == never || s.expires < s.turn()):
		return storage.Next{Left: storage.Waiting, At: instant(s.expires)}
	case s.out > 0 || s.queued > s.dormant || hasCome(s.revisit, now):
		return storage.Next{Left: storage.Waiting, At: instant(s.turn())}
	case s.dormant > 0:
		return storage.Next{Left: storage.Dormant, At: instant(s.hold)}
	case s.resting > 0:
		return storage.Next{Left: storage.Resting, At: instant(s.revisit)}
	}
	return storage.Next{}
}
