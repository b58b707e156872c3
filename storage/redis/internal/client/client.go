package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A Client calls scripts on the partitions of a store, and keeps the summaries that they return. Open
// returns one. Its methods may be called at the same time.
type Client struct {
	*callTracker
	*scriptTransport
	partitions    Partitions
	onStallChange func(error)

	stalled              atomic.Bool   // whether the last call of onStallChange had an error
	replySeq             atomic.Uint64 // number of summaries that were kept
	failovers            atomic.Uint64 // see Failovers
	unconfirmedUpdateSeq atomic.Uint64 // number of updates that did not wait for a replica
	confirmedUpdateSeq   atomic.Uint64 // unconfirmedUpdateSeq when all updates were last confirmed
}

// Close cancels the calls that run, waits for their end, calls last and closes the connections. It
// returns the error of last, or storage.ErrClosed if it was called before.
func (c *Client) Close(last func() error) error {
	return c.callTracker.close(func() error {
		defer c.conn.Close()
		return last()
	})
}

// Partitions returns all partitions of the store.
func (c *Client) Partitions() Partitions { return c.partitions }

// ScriptClock returns the clock that converts times for the scripts of this client.
func (c *Client) ScriptClock() *ScriptClock { return c.clock }

// PartitionOfHost returns the partition that holds all keys of a host.
func (c *Client) PartitionOfHost(host string) *Partition { return c.partitions.ofHost(host) }

// Failovers returns how often a partition was found under another replication id than before. Each
// time, the last writes to it may be lost.
func (c *Client) Failovers() uint64 { return c.failovers.Load() }

// applySummary keeps the summary m of a partition. It calls onStallChange with nil if this ends a
// stall: all servers answer again. startSeq is replySeq before the call. It returns the server's
// time in its microseconds.
func (c *Client) applySummary(p *Partition, startSeq uint64, m Reply) (serverNow int64, err error) {
	sum, serverNow, err := parsePartitionSummary(c.clock, m)
	if err != nil {
		return 0, err
	}
	if p.cacheSummaryIfNewer(&c.replySeq, startSeq, sum) {
		c.failovers.Add(1)
	}
	if c.stalled.Load() && c.partitions.Reachable() == len(c.partitions) && c.stalled.Swap(false) {
		c.onStallChange(nil)
	}
	return serverNow, nil
}

// RefreshSummaries calls a script that returns only a summary on all partitions. It repeats the calls
// until all have succeeded in one attempt.
func (c *Client) RefreshSummaries(ctx context.Context, sc *lua.Script) error {
	_, err := c.retry(ctx, c.partitions[0], func() error {
		startSeq := c.replySeq.Load()
		for i, a := range c.tryBatch(ctx, false, sc, CallsTo(c.partitions)) {
			if a.err != nil {
				return a.err
			}
			if _, err := c.applySummary(c.partitions[i], startSeq, a.message); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// RunQuery calls a script that changes nothing, and calls read with the reply. It repeats the call
// until it succeeds, so read may be called several times.
func (c *Client) RunQuery(
	ctx context.Context, p *Partition, sc *lua.Script, read func(Reply) error, args ...string,
) error {
	_, err := c.retry(ctx, p, func() error {
		m, err := c.try(ctx, false, p, sc, args...)
		if err != nil {
			return err
		}
		return read(m)
	})
	return err
}

// TryQuery calls a script that changes nothing, once, and returns its reply.
func (c *Client) TryQuery(ctx context.Context, p *Partition, sc *lua.Script, args ...string) (Reply, error) {
	return c.try(ctx, false, p, sc, args...)
}

// The methods below send plain commands. They repeat a command until the server answers.

// SetHashFieldOnce sets a field of a hash, unless it is set already, and returns its value. key is the
// whole key: the hash belongs to no partition.
func (c *Client) SetHashFieldOnce(ctx context.Context, key, field, value string) (current string, err error) {
	_, err = c.retry(ctx, c.partitions[0], func() (err error) {
		set := c.conn.B().Hsetnx().Key(key).Field(field).Value(value).Build()
		if err := c.conn.Do(ctx, set).Error(); err != nil {
			return err
		}
		current, err = c.conn.Do(ctx, c.conn.B().Hget().Key(key).Field(field).Build()).ToString()
		return err
	})
	return current, err
}

// CachedHashField returns a field of a hash of a partition, or nil if the field is not set. It returns
// a value from memory if that was read less than ttl ago and the server has reported no change of
// the hash since.
func (c *Client) CachedHashField(
	ctx context.Context, p *Partition, key, field string, ttl time.Duration,
) (value []byte, err error) {
	_, err = c.retry(ctx, p, func() error {
		m, err := c.conn.DoCache(ctx, c.conn.B().Hget().Key(p.Key(key)).Field(field).Cache(), ttl).ToMessage()
		if rueidis.IsRedisNil(err) {
			return nil
		}
		if err != nil {
			return err
		}
		v, err := m.ToString()
		value = append([]byte{}, v...) // not nil
		return err
	})
	return value, err
}

// AwaitInvalidation returns when the connection that reads a key of a partition has answered another
// command. By then it has delivered the server's reports of earlier changes of that key.
func (c *Client) AwaitInvalidation(ctx context.Context, p *Partition, key string) error {
	_, err := c.retry(ctx, p, func() error {
		return c.conn.Do(ctx, c.conn.B().Exists().Key(p.Key(key)).Build()).Error()
	})
	return err
}

// HashFieldNames returns the names of the fields of a hash of a partition.
func (c *Client) HashFieldNames(ctx context.Context, p *Partition, key string) (names []string, err error) {
	_, err = c.retry(ctx, p, func() (err error) {
		names, err = c.conn.Do(ctx, c.conn.B().Hkeys().Key(p.Key(key)).Build()).AsStrSlice()
		return err
	})
	return names, err
}

// ListChunk returns n elements of a list of a partition, from index from; fewer at the list's end.
func (c *Client) ListChunk(ctx context.Context, p *Partition, key string, from,
	n int64) (elements []string, err error) {
	_, err = c.retry(ctx, p, func() (err error) {
		elements, err = c.conn.Do(ctx, c.conn.B().Lrange().Key(p.Key(key)).Start(from).Stop(
			from+n-1).Build()).AsStrSlice()
		return err
	})
	return elements, err
}

// ScanSet returns about n elements of a set of a partition, and the cursor of the next call, which is
// 0 after the last element. Several calls may return an element twice.
func (c *Client) ScanSet(
	ctx context.Context, p *Partition, key string, cursor uint64, n int64,
) (elements []string, next uint64, err error) {
	_, err = c.retry(ctx, p, func() error {
		page, err := c.conn.Do(ctx, c.conn.B().Sscan().Key(p.Key(key)).Cursor(cursor).Count(n).Build()).AsScanEntry()
		elements, next = page.Elements, page.Cursor
		return err
	})
	return elements, next, err
}

// ChangedOrUnreachablePartitions reads the version of all partitions, once. It returns the partitions
// whose last summary has another version, and those whose servers do not answer.
func (c *Client) ChangedOrUnreachablePartitions(ctx context.Context) (changed []*Partition) {
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	commands := make([]rueidis.Completed, len(c.partitions))
	for i, p := range c.partitions {
		commands[i] = c.conn.B().Hget().Key(p.Key("m")).Field("version").Build()
	}
	for i, answer := range c.conn.DoMulti(limited, commands...) {
		version, err := answer.AsInt64()
		if sum, up := c.partitions[i].LastSummary(); !up || version != sum.Version ||
			err != nil && !rueidis.IsRedisNil(err) {
			changed = append(changed, c.partitions[i])
		}
	}
	return changed
}
