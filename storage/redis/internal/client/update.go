package client

import (
	"context"
	"errors"
	"iter"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// An UpdateReply is the outcome of a call of a script that may change something.
type UpdateReply struct {
	Rest      Reply // what the script returned after the summary of its partition
	ServerNow int64 // the server's time, in its microseconds
	Err       error // the error of the call; Rest and ServerNow are zero then
}

// TryUpdates makes calls of a script that may change something, once, and yields their replies in the
// order of calls. It keeps the summary of a reply just before it yields the reply.
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

// applyReply keeps the summary of a reply, and returns the rest. startSeq is replySeq before the call.
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

// Text returns Rest as a string, or Err.
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

// RunUpdate calls a script that changes something, and repeats the call until it succeeds; if durable
// is set, until a replica has confirmed the change. It returns what the script returned after the
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

// runUpdates makes calls of a script that changes something, those to one server together, and calls
// read with what each returned after the summary. It repeats calls that fail until they succeed, each
// separately and up to maxParallelCalls at a time; read may then run concurrently.
func (c *Client) runUpdates(
	ctx context.Context, durable bool, sc *lua.Script, calls []ScriptCall,
	read func(i int, text string, retried bool) error,
) error {
	if !durable {
		defer c.CountUnconfirmedUpdate()
	}
	// First try: all calls at once, and collect the transient failures.
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
	// Repeat what failed. The first attempt may have been carried out, so retried is true.
	return InParallel(ctx, failed, func(i int) error {
		text, _, err := c.RunUpdate(ctx, calls[i].Partition, durable, sc, calls[i].Args...)
		if err != nil {
			return err
		}
		return read(i, text, true)
	})
}

// CountUnconfirmedUpdate records that a call may have changed something that no replica has confirmed.
func (c *Client) CountUnconfirmedUpdate() { c.unconfirmedUpdateSeq.Add(1) }

// ConfirmEarlierUpdates calls a script that writes on each partition, until a replica has confirmed
// the call, and so all earlier changes. It does nothing if all changes are confirmed, or if the
// client does not wait for replicas.
func (c *Client) ConfirmEarlierUpdates(ctx context.Context, sc *lua.Script, args ...string) error {
	if !c.awaitsReplicas {
		return nil
	}
	unconfirmed := c.unconfirmedUpdateSeq.Load() // changes that are made from here on are not covered
	if c.confirmedUpdateSeq.Load() == unconfirmed {
		return nil
	}
	err := c.runUpdates(ctx, true, sc, CallsTo(c.partitions, args...), func(int, string, bool) error { return nil })
	if err == nil {
		c.confirmedUpdateSeq.Store(unconfirmed)
	}
	return err
}
