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
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A Store is a storage.Store and a storage.Inspector on Redis Cluster. Use Open.
// Any number of processes may have the same store open.
type Store struct {
	opts                 Options
	client               rueidis.Client
	partitions           []*partition
	scriptClock          scriptClock
	transport            *scriptTransport
	beforeAckCoalescer   coalescer
	replySeq             atomic.Uint64 // answers that were kept
	unconfirmedUpdateSeq atomic.Uint64 // calls that changed something, and did not wait until it is safe
	confirmedUpdateSeq   atomic.Uint64 // so many of them have been waited for since
	stalled              atomic.Bool   // as Options.OnStallChange was told
	failovers            atomic.Uint64 // how often a partition has come under another reign, which may not know all

	calls               *callTracker
	summaryRefreshTimes summaryRefreshTimes

	mu         sync.Mutex
	heldLeases map[uint64]heldLease
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.Inspector = (*Store)(nil)
)

// portion bounds what one call of a script is given: it keeps its server busy.
const (
	maxBatchItems = 500
	maxBatchBytes = 1 << 20
)

// A partitionBatch is what goes to one partition in one call.
type partitionBatch struct {
	*partition
	args     []string
	indexes  []int // of what the caller gave, by index
	argBytes int
}

// batchByPartition sorts n items into calls, in their order for each partition.
func (s *Store) batchByPartition(n int, item func(i int) (host string, args []string)) []*partitionBatch {
	var all []*partitionBatch
	current := make(map[*partition]*partitionBatch)
	for i := range n {
		host, args := item(i)
		p := s.partitionOfHost(host)
		b := current[p]
		if b == nil || len(b.indexes) == maxBatchItems || b.argBytes > maxBatchBytes {
			b = &partitionBatch{partition: p}
			current[p], all = b, append(all, b)
		}
		b.args, b.indexes = append(b.args, args...), append(b.indexes, i)
		for _, a := range args {
			b.argBytes += len(a)
		}
	}
	return all
}

// sendBatches makes the calls of batches, those of a partition one after another, and
// gives what is said of each item to each.
func (s *Store) sendBatches(ctx context.Context, all []*partitionBatch, durable bool, sc *lua.Script, commonArgs []string, each func(i int, reply byte, retried bool) error) error {
	for len(all) > 0 {
		var round, later []*partitionBatch
		var calls []scriptCall
		called := make(map[*partition]bool)
		for _, b := range all {
			if called[b.partition] {
				later = append(later, b)
				continue
			}
			called[b.partition] = true
			round, calls = append(round, b), append(calls, scriptCall{b.partition, slices.Concat(commonArgs, b.args)})
		}
		err := s.runUpdateScripts(ctx, durable, sc, calls, func(k int, reply string, retried bool) error {
			if len(reply) != len(round[k].indexes) {
				return errBadReply
			}
			for j, i := range round[k].indexes {
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

// laneOfEntry returns the lane of a new entry.
func laneOfEntry(e *storage.Entry) schedule.LaneID {
	return schedule.LaneForClass(uint8(e.PriorityClass), e.RobotsFor == e.URL.Origin())
}

// rankArg returns the rank of an entry within its lane. Hops know none.
func rankArg(e *storage.Entry) string {
	if laneOfEntry(e).IsRobotsHop() {
		return "0"
	}
	return strconv.Itoa(int(e.PriorityRank))
}

// fingerprintArg returns a fingerprint as a signed integer: a set of such takes eight bytes
// for each.
func fingerprintArg(fingerprint uint64) string { return strconv.FormatInt(int64(fingerprint), 10) }

// encodeEntry returns the record of an entry.
func encodeEntry(e *storage.Entry) string { return string(record.AppendEntry(nil, e)) }

// Add implements storage.Store. If it fails, some entries may have been queued: of
// those it says Known when it is called again.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	ctx, end, err := s.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	batches := s.batchByPartition(len(entries), func(i int) (string, []string) {
		e := &entries[i]
		o, fingerprint := e.URL.Origin(), ""
		if e.RobotsFor.IsZero() {
			fingerprint = fingerprintArg(e.RequestFingerprint())
		}
		return o.Host(), []string{o.String(), o.Host(), strconv.Itoa(int(laneOfEntry(e))), rankArg(e), fingerprint, encodeEntry(e)}
	})
	results := make([]storage.AddOutcome, len(entries))
	err = s.sendBatches(ctx, batches, true, lua.Add, []string{strconv.Itoa(maxPerOrigin)}, func(i int, reply byte, _ bool) error {
		switch reply {
		case 'a':
			results[i] = storage.Added
		case 'k':
			results[i] = storage.Duplicate
		case 'o':
			results[i] = storage.OverLimit
		default:
			return errBadReply
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return results, nil
}

// flushTimeouts is how many times Options.Timeout a Flush waits for servers that
// do not answer: replicas take over in less.
const flushTimeouts = 6

// Flush implements storage.Store: what is not where Options.Durability wants it
// yet is waited for, though not for good: then it returns storage.ErrWriteStalled.
func (s *Store) Flush(ctx context.Context) error {
	ctx, end, err := s.calls.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, flushTimeouts*s.opts.Timeout, storage.ErrWriteStalled)
	defer cancel()
	return s.confirmEarlierUpdates(ctx)
}

// confirmEarlierUpdates has a replica confirm a change of each partition, and so all before it, if
// anything was changed since that was not waited for.
func (s *Store) confirmEarlierUpdates(ctx context.Context) error {
	if s.opts.Durability == DurabilityNone {
		return nil
	}
	unconfirmed := s.unconfirmedUpdateSeq.Load()
	if s.confirmedUpdateSeq.Load() == unconfirmed {
		return nil
	}
	err := s.runUpdateScripts(ctx, true, lua.SetNote, callsToPartitions(s.partitions, "", "", "flushed", ""), func(int, string, bool) error { return nil })
	if err == nil {
		s.confirmedUpdateSeq.Store(unconfirmed)
	}
	return err
}

// closeTimeout is how long Close waits for servers. What it tells them spares other
// processes a wait, and nothing is lost without it.
const closeTimeout = 2 * time.Second

// Close implements storage.Store. Of servers that do not answer, leases that are out run
// out by themselves, and what was acked last may be visited again when their replicas take
// over; then it returns an error that wraps storage.ErrWriteStalled.
func (s *Store) Close() error {
	return s.calls.close(func() error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, storage.ErrWriteStalled)
		defer cancel()
		err := errors.Join(s.returnHeldLeases(ctx), s.confirmEarlierUpdates(ctx))
		s.client.Close()
		return err
	})
}
