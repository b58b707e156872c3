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
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// Between attempts there is a pause, which grows.
const (
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = 2 * time.Second
)

// transientCodes are the errors of a server that it may not have a moment later: slots
// that move, a replica that takes over, a disk or memory that is full.
var transientCodes = []string{"CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "READONLY", "MOVED", "ASK", "NOREPLICAS",
	"BUSY", "OOM", "MISCONF"}

// isTransient reports whether a call that failed may succeed later.
func isTransient(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	if !ok {
		return !errors.Is(err, errBadReply) // of the connection
	}
	code, _, _ := strings.Cut(e.Error(), " ")
	return slices.Contains(transientCodes, code)
}

// A transientError is an error of servers that may be in order a moment later.
type transientError struct{ error }

// Is makes errors.Is(err, storage.ErrWriteStalled) true.
func (e transientError) Is(target error) bool { return target == storage.ErrWriteStalled }

func (e transientError) Unwrap() error { return e.error }

// asTransient returns err as one that is worth waiting for, if it is.
func asTransient(err error) error {
	var redisErr *rueidis.RedisError
	if errors.As(err, &redisErr) && !isTransient(redisErr) {
		return err
	}
	return transientError{err}
}

// retry makes attempts to call a partition until one succeeds, fails for good, or ctx is done. It
// returns whether there were several: then one of those that failed may have been
// carried out, and its answer lost.
func (s *Store) retry(ctx context.Context, p *partition, attempt func() error) (retried bool, err error) {
	for pause := minRetryDelay; ; pause = min(2*pause, maxRetryDelay) {
		err := attempt()
		if err == nil {
			return retried, nil
		}
		if ctx.Err() != nil {
			return retried, errors.Join(context.Cause(ctx), err)
		}
		if !isTransient(err) {
			return retried, err
		}
		s.markUnreachableAndNotify(p, err)
		retried = true
		select {
		case <-ctx.Done():
			return retried, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// markUnreachableAndNotify notes that a partition does not answer, and why.
func (s *Store) markUnreachableAndNotify(p *partition, err error) {
	p.markUnreachable()
	if !s.stalled.Swap(true) {
		s.opts.OnStallChange(err)
	}
}

// runUpdateScript makes a call of a verb that changes something, until it is done, and keeps
// what it says of the partition. It returns the rest of the answer.
func (s *Store) runUpdateScript(ctx context.Context, p *partition, durable bool, sc *lua.Script, args ...string) (rest string, retried bool, err error) {
	retried, err = s.retry(ctx, p, func() error {
		startSeq := s.replySeq.Load()
		try := s.transport.try
		if durable {
			try = s.transport.tryDurably
		}
		m, err := try(ctx, p, sc, args...)
		if err == nil {
			rest, err = s.parseAndApplyUpdateReply(p, startSeq, m)
		}
		return err
	})
	if !durable {
		s.unconfirmedUpdateSeq.Add(1)
	}
	return rest, retried, err
}

// runUpdateScripts makes calls of a verb that changes something, those to a server in one go,
// and has the rest of each answer read, some at a time. Calls that fail are made again,
// each by itself, until they are done.
func (s *Store) runUpdateScripts(ctx context.Context, durable bool, sc *lua.Script, calls []scriptCall, read func(i int, rest string, retried bool) error) error {
	startSeq := s.replySeq.Load()
	try := s.transport.tryAll
	if durable {
		try = s.transport.tryAllDurably
	} else {
		defer s.unconfirmedUpdateSeq.Add(1)
	}
	var failed []int
	for i, a := range try(ctx, sc, calls) {
		p, rest, err := calls[i].partition, "", a.err
		if err == nil {
			rest, err = s.parseAndApplyUpdateReply(p, startSeq, a.message)
		}
		switch {
		case err == nil:
			err = read(i, rest, false)
		case ctx.Err() != nil:
			err = errors.Join(context.Cause(ctx), err)
		case isTransient(err):
			s.markUnreachableAndNotify(p, err)
			failed = append(failed, i)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return inParallel(ctx, failed, func(i int) error {
		rest, _, err := s.runUpdateScript(ctx, calls[i].partition, durable, sc, calls[i].args...)
		if err != nil {
			return err
		}
		return read(i, rest, true)
	})
}

// parseAndApplyUpdateReply keeps what an answer says of the partition, and returns the rest of it.
func (s *Store) parseAndApplyUpdateReply(p *partition, startSeq uint64, m rueidis.RedisMessage) (rest string, err error) {
	reply, err := m.ToArray()
	if err != nil || len(reply) != 2 {
		return "", errBadReply
	}
	if rest, err = reply[1].ToString(); err != nil {
		return "", errBadReply
	}
	return rest, s.applyPartitionSummary(p, startSeq, reply[0])
}

// applyPartitionSummary keeps what an answer says of the partition.
func (s *Store) applyPartitionSummary(p *partition, startSeq uint64, m rueidis.RedisMessage) error {
	sum, err := s.scriptClock.parsePartitionSummary(m)
	if err != nil {
		return err
	}
	if p.updateSummaryIfNewer(&s.replySeq, startSeq, sum) {
		s.failovers.Add(1)
	}
	if s.stalled.Load() && s.allPartitionsReachable() && s.stalled.Swap(false) {
		s.opts.OnStallChange(nil)
	}
	return nil
}

// runQuery calls a script that changes nothing, until it is answered, and reads the answer.
func (s *Store) runQuery(ctx context.Context, p *partition, sc *lua.Script, read func(rueidis.RedisMessage) error, args ...string) error {
	_, err := s.retry(ctx, p, func() error {
		m, err := s.transport.try(ctx, p, sc, args...)
		if err != nil {
			return err
		}
		return read(m)
	})
	return err
}
