package client

import (
	"context"
	"errors"
	"iter"
	"slices"

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

// MaxBatchItems and maxBatchBytes bound the arguments of one call: it keeps its server busy.
const (
	MaxBatchItems = 500
	maxBatchBytes = 1 << 20
)

// A Batch is what goes to one partition in one call.
type Batch struct {
	*Partition
	Args     []string
	Indexes  []int // of its items
	argBytes int
}

// Batches sorts n items into calls, in their order for each partition.
func (all Partitions) Batches(n int, item func(i int) (host string, args []string)) []*Batch {
	var batches []*Batch
	current := make(map[*Partition]*Batch)
	for i := range n {
		host, args := item(i)
		p := all.ofHost(host)
		b := current[p]
		if b == nil || len(b.Indexes) == MaxBatchItems || b.argBytes > maxBatchBytes {
			b = &Batch{Partition: p}
			current[p], batches = b, append(batches, b)
		}
		b.Args, b.Indexes = append(b.Args, args...), append(b.Indexes, i)
		for _, a := range args {
			b.argBytes += len(a)
		}
	}
	return batches
}

// SendBatches makes the calls of batches, those of a partition one after another, and
// calls each with the byte that the script returned for an item.
func (c *Client) SendBatches(
	ctx context.Context, all []*Batch, durable bool, sc *lua.Script, commonArgs []string,
	each func(i int, reply byte, retried bool) error,
) error {
	for len(all) > 0 {
		var round, later []*Batch
		var calls []ScriptCall
		called := make(map[*Partition]bool)
		for _, b := range all {
			if called[b.Partition] {
				later = append(later, b)
				continue
			}
			called[b.Partition] = true
			round, calls = append(round, b), append(calls, ScriptCall{b.Partition, slices.Concat(commonArgs, b.Args)})
		}
		err := c.runUpdates(ctx, durable, sc, calls, func(k int, reply string, retried bool) error {
			if len(reply) != len(round[k].Indexes) {
				return ErrBadReply
			}
			for j, i := range round[k].Indexes {
				if err := each(i, reply[j], retried); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		all = later
	}
	return nil
}
