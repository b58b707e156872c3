package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A Store is a storage.Store and a storage.Inspector on Redis Cluster. Use Open.
// Any number of processes may have the same store open.
type Store struct {
	opts       Options
	client     rueidis.Client
	partitions []*partition
	clock      clock
	barrier    barrier
	routes     routes
	calls      atomic.Uint64 // answers that were kept
	loose      atomic.Uint64 // calls that changed something, and did not wait until it is safe
	flushed    atomic.Uint64 // so many of them have been waited for since
	stalled    atomic.Bool   // as Options.OnStalled was told
	losses     atomic.Uint64 // how often a partition has come under another reign, which may not know all

	life   context.Context // done with ErrClosed
	cancel context.CancelCauseFunc

	using   sync.RWMutex // held by calls; Close waits for them
	closed  bool
	refresh refresh

	mu   sync.Mutex
	held map[uint64]holding
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.Inspector = (*Store)(nil)
)

// begin begins a call: it is made unless ctx is done or the store closed, and ends
// when either is. end must be called.
func (s *Store) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.using.RLock()
	if s.closed {
		s.using.RUnlock()
		return nil, nil, storage.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.using.RUnlock()
	}, nil
}

// portion bounds what one call of a script is given: it keeps its server busy.
const (
	portionItems = 500
	portionBytes = 1 << 20
)

// A batch is what goes to one partition in one call.
type batch struct {
	*partition
	args  []string
	items []int // of what the caller gave, by index
	bytes int
}

// batches sorts n items into calls, in their order for each partition.
func (s *Store) batches(n int, item func(i int) (host string, args []string)) []*batch {
	var all []*batch
	open := make(map[*partition]*batch)
	for i := range n {
		host, args := item(i)
		p := s.partition(host)
		b := open[p]
		if b == nil || len(b.items) == portionItems || b.bytes > portionBytes {
			b = &batch{partition: p}
			open[p], all = b, append(all, b)
		}
		b.args, b.items = append(b.args, args...), append(b.items, i)
		for _, a := range args {
			b.bytes += len(a)
		}
	}
	return all
}

// send makes the calls of batches, those of a partition one after another, and
// gives what is said of each item to each.
func (s *Store) send(ctx context.Context, all []*batch, safe bool, sc *script, first []string, each func(i int, said byte, again bool) error) error {
	for len(all) > 0 {
		var now, later []*batch
		var calls []call
		called := make(map[*partition]bool)
		for _, b := range all {
			if called[b.partition] {
				later = append(later, b)
				continue
			}
			called[b.partition] = true
			now, calls = append(now, b), append(calls, call{b.partition, slices.Concat(first, b.args)})
		}
		err := s.callAll(ctx, safe, sc, calls, func(k int, said string, again bool) error {
			if len(said) != len(now[k].items) {
				return errAnswer
			}
			for j, i := range now[k].items {
				if err := each(i, said[j], again); err != nil {
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

// laneOf returns the lane of a new entry.
func laneOf(e *storage.Entry) schedule.Lane {
	return schedule.LaneOf(uint8(e.Class), e.For == e.URL.Origin())
}

// rankOf returns the rank of an entry within its lane. Hops know none.
func rankOf(e *storage.Entry) string {
	if laneOf(e).IsHop() {
		return "0"
	}
	return strconv.Itoa(int(e.Rank))
}

// printOf returns a fingerprint as a signed integer: a set of such takes eight bytes
// for each.
func printOf(fingerprint uint64) string { return strconv.FormatInt(int64(fingerprint), 10) }

// encodeEntry returns the record of an entry.
func encodeEntry(e *storage.Entry) string { return string(record.AppendEntry(nil, e)) }

// Add implements storage.Store. If it fails, some entries may have been queued: of
// those it says Known when it is called again.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.Fate, error) {
	if err := storage.CheckEntries(entries); err != nil {
		return nil, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	batches := s.batches(len(entries), func(i int) (string, []string) {
		e := &entries[i]
		o, print := e.URL.Origin(), ""
		if e.For.IsZero() {
			print = printOf(e.Fingerprint())
		}
		return o.Host(), []string{o.String(), o.Host(), strconv.Itoa(int(laneOf(e))), rankOf(e), print, encodeEntry(e)}
	})
	fates := make([]storage.Fate, len(entries))
	err = s.send(ctx, batches, true, addScript, []string{strconv.Itoa(maxPerOrigin)}, func(i int, said byte, _ bool) error {
		switch said {
		case 'a':
			fates[i] = storage.Added
		case 'k':
			fates[i] = storage.Known
		case 'o':
			fates[i] = storage.Over
		default:
			return errAnswer
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return fates, nil
}

// flushPatience is how many times Options.Timeout a Flush waits for servers that
// do not answer: replicas take over in less.
const flushPatience = 6

// Flush implements storage.Store: what is not where Options.Durability wants it
// yet is waited for, though not for good: then it returns storage.ErrStalled.
func (s *Store) Flush(ctx context.Context) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, flushPatience*s.opts.Timeout, storage.ErrStalled)
	defer cancel()
	return s.flush(ctx)
}

// flush has a replica confirm a change of each partition, and so all before it, if
// anything was changed since that was not waited for.
func (s *Store) flush(ctx context.Context) error {
	if s.opts.Durability == None {
		return nil
	}
	loose := s.loose.Load()
	if s.flushed.Load() == loose {
		return nil
	}
	err := s.callAll(ctx, true, noteScript, callsTo(s.partitions, "", "", "flushed", ""), func(int, string, bool) error { return nil })
	if err == nil {
		s.flushed.Store(loose)
	}
	return err
}

// closePatience is how long Close waits for servers. What it tells them spares other
// processes a wait, and nothing is lost without it.
const closePatience = 2 * time.Second

// Close implements storage.Store. Of servers that do not answer, leases that are out run
// out by themselves, and what was acked last may be visited again when their replicas take
// over; then it returns an error that wraps storage.ErrStalled.
func (s *Store) Close() error {
	s.cancel(storage.ErrClosed) // what waits for a server waits no longer
	s.using.Lock()
	defer s.using.Unlock()
	if s.closed {
		return storage.ErrClosed
	}
	s.closed = true
	ctx, cancel := context.WithTimeoutCause(context.Background(), closePatience, storage.ErrStalled)
	defer cancel()
	err := errors.Join(s.undo(ctx), s.flush(ctx))
	s.client.Close()
	return err
}
