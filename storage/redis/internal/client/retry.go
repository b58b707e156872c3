package client

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

// minRetryDelay and maxRetryDelay bound the pause between attempts, which doubles each time.
const (
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = 2 * time.Second
)

// transientCodes are the codes of errors that may pass without a change of the call: slots move, a
// replica takes over, a disk or the memory is full.
var transientCodes = []string{
	"CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "READONLY", "MOVED", "ASK",
	"NOREPLICAS", "BUSY", "OOM", "MISCONF",
}

// IsTransient reports whether a call that failed with err may succeed later.
func IsTransient(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	if !ok {
		return !errors.Is(err, ErrBadReply) // an error of the connection
	}
	code, _, _ := strings.Cut(e.Error(), " ")
	return slices.Contains(transientCodes, code)
}

// A transientError is an error of servers that may work a moment later.
type transientError struct{ error }

// Is makes errors.Is(err, storage.ErrWriteStalled) true.
func (e transientError) Is(target error) bool { return target == storage.ErrWriteStalled }

// Unwrap returns the error of the server or the connection.
func (e transientError) Unwrap() error { return e.error }

// AsTransient returns an error that wraps err and storage.ErrWriteStalled. It returns err itself if
// that is an error of a server that is not transient.
func AsTransient(err error) error {
	if redisErr, ok := errors.AsType[*rueidis.RedisError](err); ok && !IsTransient(redisErr) {
		return err
	}
	return transientError{err}
}

// retry calls attempt until it succeeds, fails with an error that is not transient, or ctx is done. It
// marks p unreachable after each transient error. retried reports whether there were several
// attempts: a failed one may have been carried out, with its reply lost.
func (c *Client) retry(ctx context.Context, p *Partition, attempt func() error) (retried bool, err error) {
	for pause := minRetryDelay; ; pause = min(2*pause, maxRetryDelay) {
		err := attempt()
		if err == nil {
			return retried, nil
		}
		if ctx.Err() != nil {
			return retried, errors.Join(context.Cause(ctx), err)
		}
		if !IsTransient(err) {
			return retried, err
		}
		c.MarkUnreachable(p, err)
		retried = true
		// Wait for half to all of the pause at random, so that processes do not call in step.
		select {
		case <-ctx.Done():
			return retried, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// MarkUnreachable records that the server of a partition does not answer. It calls onStallChange with
// err if all servers answered before.
func (c *Client) MarkUnreachable(p *Partition, err error) {
	p.mu.Lock()
	p.unreachable = true
	p.mu.Unlock()
	if !c.stalled.Swap(true) {
		c.onStallChange(err)
	}
}
