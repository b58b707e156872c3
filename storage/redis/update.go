package redis

import (
	"context"
	"errors"
	"iter"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// An updateReply is what came of a call of a script that may change something.
type updateReply struct {
	rest      rueidis.RedisMessage // what the script says beside the summary of its partition
	serverNow int64                // the time of the server, in its microseconds
	err       error
}

// tryUpdates makes calls of a script that may change something, once, and keeps what each
// reply says of its partition as the reply is taken.
func (c *clusterClient) tryUpdates(ctx context.Context, durable bool, sc *lua.Script, calls []scriptCall) iter.Seq2[int, updateReply] {
	startSeq := c.replySeq.Load()
	try := c.transport.tryAll
	if durable {
		try = c.transport.tryAllDurably
	}
	replies := try(ctx, sc, calls)
	return func(yield func(int, updateReply) bool) {
		for i, a := range replies {
			if !yield(i, c.applyReply(calls[i].partition, startSeq, a)) {
				return
			}
		}
	}
}

// applyReply keeps what a reply says of its partition.
func (c *clusterClient) applyReply(p *partition, startSeq uint64, a scriptReply) (r updateReply) {
	if a.err != nil {
		return updateReply{err: a.err}
	}
	reply, err := a.message.ToArray()
	if err != nil || len(reply) != 2 {
		return updateReply{err: errBadReply}
	}
	r.rest = reply[1]
	r.serverNow, r.err = c.applySummary(p, startSeq, reply[0])
	return r
}

// text returns the reply of a script that says a string beside the summary.
func (r *updateReply) text() (string, error) {
	if r.err != nil {
		return "", r.err
	}
	text, err := r.rest.ToString()
	if err != nil {
		return "", errBadReply
	}
	return text, nil
}

// runUpdate makes a call of a script that changes something, until it is done. It returns
// what the script says beside the summary, and whether the call was made several times.
func (c *clusterClient) runUpdate(ctx context.Context, p *partition, durable bool, sc *lua.Script, args ...string) (text string, retried bool, err error) {
	retried, err = c.retry(ctx, p, func() error {
		startSeq := c.replySeq.Load()
		try := c.transport.try
		if durable {
			try = c.transport.tryDurably
		}
		m, err := try(ctx, p, sc, args...)
		r := c.applyReply(p, startSeq, scriptReply{m, err})
		text, err = r.text()
		return err
	})
	if !durable {
		c.countUnconfirmedUpdate()
	}
	return text, retried, err
}

// runUpdates makes calls of a script that changes something, those to a server in one go,
// and has what each says beside the summary read, some at a time. Calls that fail are made
// again, each by itself, until they are done.
func (c *clusterClient) runUpdates(
	ctx context.Context, durable bool, sc *lua.Script, calls []scriptCall, read func(i int, text string, retried bool) error,
) error {
	if !durable {
		defer c.countUnconfirmedUpdate()
	}
	var failed []int
	for i, r := range c.tryUpdates(ctx, durable, sc, calls) {
		text, err := r.text()
		switch {
		case err == nil:
			err = read(i, text, false)
		case ctx.Err() != nil:
			err = errors.Join(context.Cause(ctx), err)
		case isTransient(err):
			c.markUnreachable(calls[i].partition, err)
			failed = append(failed, i)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return inParallel(ctx, failed, func(i int) error {
		text, _, err := c.runUpdate(ctx, calls[i].partition, durable, sc, calls[i].args...)
		if err != nil {
			return err
		}
		return read(i, text, true)
	})
}

// countUnconfirmedUpdate notes that a call has changed something that no replica has
// confirmed.
func (c *clusterClient) countUnconfirmedUpdate() { c.unconfirmedUpdateSeq.Add(1) }

// confirmEarlierUpdates runs a script that writes on each partition, until a replica has
// confirmed it and so all before it, unless all that was changed is confirmed already.
func (c *clusterClient) confirmEarlierUpdates(ctx context.Context, sc *lua.Script, args ...string) error {
	if !c.transport.awaitsReplicas {
		return nil
	}
	unconfirmed := c.unconfirmedUpdateSeq.Load()
	if c.confirmedUpdateSeq.Load() == unconfirmed {
		return nil
	}
	err := c.runUpdates(ctx, true, sc, callsToPartitions(c.partitions, args...), func(int, string, bool) error { return nil })
	if err == nil {
		c.confirmedUpdateSeq.Store(unconfirmed)
	}
	return err
}
