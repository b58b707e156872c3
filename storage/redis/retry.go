package redis

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage"
)

// Between attempts there is a pause, which grows.
const (
	shortestPause = 20 * time.Millisecond
	maxRetryDelay = 2 * time.Second
)

// passing are the errors of a server that it may not have a moment later: slots
// that move, a replica that takes over, a disk or memory that is full.
var passing = []string{"CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "READONLY", "MOVED", "ASK", "NOREPLICAS",
	"BUSY", "OOM", "MISCONF"}

// isPassing reports whether a call that failed may succeed later.
func isPassing(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	if !ok {
		return !errors.Is(err, errAnswer) // of the connection
	}
	word, _, _ := strings.Cut(e.Error(), " ")
	return slices.Contains(passing, word)
}

// An away is an error of servers that may be in order a moment later.
type away struct{ error }

// Is makes errors.Is(err, storage.ErrStalled) true.
func (e away) Is(target error) bool { return target == storage.ErrStalled }

func (e away) Unwrap() error { return e.error }

// awaited returns err as one that is worth waiting for, if it is.
func awaited(err error) error {
	var answer *rueidis.RedisError
	if errors.As(err, &answer) && !isPassing(answer) {
		return err
	}
	return away{err}
}

// persist makes attempts to call a partition until one succeeds, fails for good, or ctx is done. It
// returns whether there were several: then one of those that failed may have been
// carried out, and its answer lost.
func (s *Store) persist(ctx context.Context, p *partition, attempt func() error) (again bool, err error) {
	for pause := shortestPause; ; pause = min(2*pause, maxRetryDelay) {
		err := attempt()
		if err == nil {
			return again, nil
		}
		if ctx.Err() != nil {
			return again, errors.Join(context.Cause(ctx), err)
		}
		if !isPassing(err) {
			return again, err
		}
		s.lost(p, err)
		again = true
		select {
		case <-ctx.Done():
			return again, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// lost notes that a partition does not answer, and why.
func (s *Store) lost(p *partition, err error) {
	p.lose()
	if !s.stalled.Swap(true) {
		s.opts.Stalled(err)
	}
}

// call makes a call of a verb that changes something, until it is done, and keeps
// what it says of the partition. It returns the rest of the answer.
func (s *Store) call(ctx context.Context, p *partition, safe bool, sc *script, args ...string) (rest string, again bool, err error) {
	again, err = s.persist(ctx, p, func() error {
		began := s.calls.Load()
		try := s.try
		if safe {
			try = s.trySafely
		}
		m, err := try(ctx, p, sc, args...)
		if err == nil {
			rest, err = s.readRest(p, began, m)
		}
		return err
	})
	if !safe {
		s.loose.Add(1)
	}
	return rest, again, err
}

// callAll makes calls of a verb that changes something, those to a server in one go,
// and has the rest of each answer read, some at a time. Calls that fail are made again,
// each by itself, until they are done.
func (s *Store) callAll(ctx context.Context, safe bool, sc *script, calls []call, read func(i int, rest string, again bool) error) error {
	began := s.calls.Load()
	try := s.tryAll
	if safe {
		try = s.trySafelyAll
	} else {
		defer s.loose.Add(1)
	}
	var failed []int
	for i, a := range try(ctx, sc, calls) {
		p, rest, err := calls[i].partition, "", a.err
		if err == nil {
			rest, err = s.readRest(p, began, a.message)
		}
		switch {
		case err == nil:
			err = read(i, rest, false)
		case ctx.Err() != nil:
			err = errors.Join(context.Cause(ctx), err)
		case isPassing(err):
			s.lost(p, err)
			failed = append(failed, i)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return inParallel(ctx, failed, func(i int) error {
		rest, _, err := s.call(ctx, calls[i].partition, safe, sc, calls[i].args...)
		if err != nil {
			return err
		}
		return read(i, rest, true)
	})
}

// readRest keeps what an answer says of the partition, and returns the rest of it.
func (s *Store) readRest(p *partition, began uint64, m rueidis.RedisMessage) (rest string, err error) {
	answer, err := m.ToArray()
	if err != nil || len(answer) != 2 {
		return "", errAnswer
	}
	if rest, err = answer[1].ToString(); err != nil {
		return "", errAnswer
	}
	return rest, s.learn(p, began, answer[0])
}

// learn keeps what an answer says of the partition.
func (s *Store) learn(p *partition, began uint64, m rueidis.RedisMessage) error {
	sum, err := s.clock.parseSum(m)
	if err != nil {
		return err
	}
	if p.keep(&s.calls, began, sum) {
		s.losses.Add(1)
	}
	if s.stalled.Load() && s.allUp() && s.stalled.Swap(false) {
		s.opts.Stalled(nil)
	}
	return nil
}

// ask calls a script that changes nothing, until it is answered, and reads the answer.
func (s *Store) ask(ctx context.Context, p *partition, sc *script, read func(rueidis.RedisMessage) error, args ...string) error {
	_, err := s.persist(ctx, p, func() error {
		m, err := s.try(ctx, p, sc, args...)
		if err != nil {
			return err
		}
		return read(m)
	})
	return err
}
