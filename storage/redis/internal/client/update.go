package client

import (
	"context"
	"errors"
	"iter"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// An UpdateReply is what came of a call of a script that may change something.
type UpdateReply struct {
	Rest      Reply // what the script returned beside the summary of its partition
	ServerNow int64 // the time of the server, in its microseconds
	Err       error
}

// TryUpdates makes calls of a script that may change something, once, and yields their
// replies in order. It keeps the summary of a reply just before the reply is yielded.
func (c *Client) TryUpdates(
	ctx context.Context, durable bool, sc *lua.Script, calls []ScriptCall,
) iter.Seq2[int, UpdateReply] {
	startSeq := c.replySeq.Load()
	replies := c.tryBatch(ctx, durable, sc, calls)
	return func(yield func(int, UpdateReply) bool) {
		for i, a := range replies {
			if !yield(i, c.applyReply(calls[i].Partition, startSeq, a)) {
				return
			}
		}
	}
}

// applyReply keeps the summary of a reply, and returns the rest.
func (c *Client) applyReply(p *Partition, startSeq uint64, a scriptReply) (r UpdateReply) {
	if a.err != nil {
		return UpdateReply{Err: a.err}
	}
	reply, err := a.message.ToArray()
	if err != nil || len(reply) != 2 {
		return UpdateReply{Err: ErrBadReply}
	}
	r.Rest = reply[1]
	r.ServerNow, r.Err = c.applySummary(p, startSeq, reply[0])
	return r
}

// Text returns Rest as a string.
func (r *UpdateReply) Text() (string, error) {
	if r.Err != nil {
		return "", r.Err
	}
	text, err := r.Rest.ToString()
	if err != nil {
		return "", ErrBadReply
	}
	return text, nil
}

// RunUpdate makes a call of a script that changes something, until it is done; if durable
// is set, until a replica has confirmed it. It returns what the script returned beside the
// summary, and whether the call was made several times.
func (c *Client) RunUpdate(
	ctx context.Context, p *Partition, durable bool, sc *lua.Script, args ...string,
) (text string, retried bool, err error) {
	retried, err = c.retry(ctx, p, func() error {
		startSeq := c.replySeq.Load()
		m, err := c.try(ctx, durable, p, sc, args...)
		r := c.applyReply(p, startSeq, scriptReply{m, err})
		text, err = r.Text()
		return err
	})
	if !durable {
		c.CountUnconfirmedUpdate()
	}
	return text, retried, err
}

// runUpdates makes calls of a script that changes something, those to a server in one go,
// and calls read with what each returned beside the summary. Calls that fail are made
// again, each by itself and some at a time, until they are done.
func (c *Client) runUpdates(
	ctx context.Context, durable bool, sc *lua.Script, calls []ScriptCall, read func(i int, text string, retried bool) error,
) error {
	if !durable {
		defer c.CountUnconfirmedUpdate()
	}
	var failed []int
	for i, r := range c.TryUpdates(ctx, durable, sc, calls) {
		text, err := r.Text()
		switch {
		case err == nil:
			err = read(i, text, false)
		case ctx.Err() != nil:
			err = errors.Join(context.Cause(ctx), err)
		case IsTransient(err):
			c.MarkUnreachable(calls[i].Partition, err)
			failed = append(failed, i)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return InParallel(ctx, failed, func(i int) error {
		text, _, err := c.RunUpdate(ctx, calls[i].Partition, durable, sc, calls[i].Args...)
		if err != nil {
			return err
		}
		return read(i, text, true)
	})
}

// CountUnconfirmedUpdate notes that a call has changed something that no replica has
// confirmed.
func (c *Client) CountUnconfirmedUpdate() { c.unconfirmedUpdateSeq.Add(1) }

// ConfirmEarlierUpdates runs a script that writes on each partition, until a replica has
// confirmed it and so all before it, unless all that was changed is confirmed already.
func (c *Client) ConfirmEarlierUpdates(ctx context.Context, sc *lua.Script, args ...string) error {
	if !c.awaitsReplicas {
		return nil
	}
	unconfirmed := c.unconfirmedUpdateSeq.Load()
	if c.confirmedUpdateSeq.Load() == unconfirmed {
		return nil
	}
	err := c.runUpdates(ctx, true, sc, CallsTo(c.partitions, args...), func(int, string, bool) error { return nil })
	if err == nil {
		c.confirmedUpdateSeq.Store(unconfirmed)
	}
	return err
}
