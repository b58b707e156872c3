package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	p := s.client.PartitionOfHost(l.URL.Origin().Host())
	if err := s.leaseTTLs.record(ctx, p, ttl); err != nil {
		return fmt.Errorf("renew %v: %w", l.URL, err)
	}
	reply, _, err := s.client.RunUpdate(ctx, p, false, lua.RenewLease,
		s.client.Clock().LocalMicrosArg(now.UnixMicro()), client.DurationArg(ttl), strconv.FormatUint(l.Token, 10))
	if err != nil {
		return fmt.Errorf("renew %v: %w", l.URL, err)
	}
	if reply != "1" {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStaleLease)
	}
	s.client.Clock().AdvanceTo(now)
	return nil
}

// MarkSent implements storage.Store. It is as safe as Add, at once.
func (s *Store) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	h, ok := s.heldLeases.get(l.Token)
	if !ok {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	e, err := record.ParseEntry([]byte(h.encodedEntry), l.URL.Origin())
	if err != nil {
		return fmt.Errorf("mark %v: %w", l.URL, err)
	}
	e.Sent = sent
	h.encodedEntry, h.sent = encodeEntry(&e), sent
	reply, _, err := s.client.RunUpdate(ctx, h.Partition, true, lua.MarkSent, strconv.FormatUint(l.Token, 10), l.URL.Origin().String(), h.encodedEntry)
	if err != nil {
		return fmt.Errorf("mark %v: %w", l.URL, err)
	}
	if reply != "1" {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	s.heldLeases.update(l.Token, h)
	return nil
}

// Ack implements storage.Store. An ack that had to be sent again is not called
// stale: the lease may have been ended by the first.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.ValidateAcks(acks); err != nil {
		return err
	}
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	if len(acks) == 0 {
		return nil
	}
	if err := s.beforeAckCoalescer.do(s.opts.BeforeAck); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	batches := s.client.Partitions().Batches(len(acks), func(i int) (string, []string) {
		a := &acks[i]
		return a.Lease.URL.Origin().Host(), s.ackArgs(a, s.heldLeases.remove(a.Lease.Token))
	})
	var mu sync.Mutex
	var stale []error
	var longDelays []*storage.Ack
	err = s.client.SendBatches(ctx, batches, false, lua.Ack, nil, func(i int, reply byte, retried bool) error {
		mu.Lock()
		defer mu.Unlock()
		switch a := &acks[i]; {
		case reply != '1' && !retried:
			stale = append(stale, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStaleLease))
		case s.mustReplicateHostDue(a):
			longDelays = append(longDelays, a)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("ack: %w", err)
	} else {
		err = s.replicateDueTimes(ctx, longDelays)
	}
	return errors.Join(append(stale, err)...)
}

// ackArgs returns an ack as ack.lua takes it. What passed by the seen set stays a
// hop, and what was marked as sent stays so.
func (s *Store) ackArgs(a *storage.Ack, h heldLease) []string {
	e := a.Lease.Entry
	if h.Partition != nil {
		e.RobotsFor, e.Sent = h.robotsFor, h.sent
	}
	lane, at, outcome := laneOfEntry(&e), "", "done"
	switch {
	case a.Outcome == storage.Requeue:
		outcome, lane = "again", lane.ReturnedLane()
	case a.Outcome == storage.RetryAt:
		outcome, lane, at = "later", lane.DelayedLane(), s.client.Clock().TimeArg(a.NotBefore)
	case a.Outcome == storage.RevisitAt && e.RobotsFor.IsZero():
		outcome, at = "rest", s.client.Clock().TimeArg(a.NotBefore)
	case a.Outcome == storage.Park:
		outcome = "parked"
	}
	args := []string{strconv.FormatUint(a.Lease.Token, 10), e.URL.Origin().String(), outcome,
		strconv.Itoa(int(lane)), at, rankArg(&e), fingerprintArg(e.RequestFingerprint()), encodeEntry(&e)}
	if a.HostState == nil {
		return append(args, "0", "", "0", "0", "0", "")
	}
	return append(append(args, "1"), hostStateArgs(s.client.Clock(), a.HostState)...)
}

// damagedLeaseAckArgs returns an ack of a lease whose record makes no sense.
func damagedLeaseAckArgs(token uint64, origin string) []string {
	return []string{strconv.FormatUint(token, 10), origin, "done", "0", "", "0", "", "", "0", "", "0", "0", "0", ""}
}

// returnHeldLeases gives all leases back that this process has.
func (s *Store) returnHeldLeases(ctx context.Context) error {
	tokens := s.heldLeases.tokensByPartition()
	partitions := slices.Collect(maps.Keys(tokens))
	return client.InParallel(ctx, partitions, func(p *client.Partition) error {
		for part := range slices.Chunk(tokens[p], client.MaxBatchItems) {
			args := []string{client.DurationArg(s.opts.interruptedDelay())}
			for _, token := range part {
				args = append(args, strconv.FormatUint(token, 10))
			}
			if _, _, err := s.client.RunUpdate(ctx, p, false, lua.ReturnLeases, args...); err != nil {
				return fmt.Errorf("leases run out by themselves: %w", err)
			}
		}
		return nil
	})
}

// A coalescer has many wait for one call of a func that begins after they came.
type coalescer struct {
	mu          sync.Mutex
	callMu      sync.Mutex
	pendingCall *coalescedCall
}

type coalescedCall struct {
	once sync.Once
	err  error
}

// do returns the error of a call of fn that begins after do was called.
func (b *coalescer) do(fn func() error) error {
	b.mu.Lock()
	if b.pendingCall == nil {
		b.pendingCall = &coalescedCall{}
	}
	p := b.pendingCall
	b.mu.Unlock()
	p.once.Do(func() {
		b.callMu.Lock() // while another runs, more gather here
		defer b.callMu.Unlock()
		b.mu.Lock()
		b.pendingCall = nil
		b.mu.Unlock()
		p.err = fn()
	})
	return p.err
}
