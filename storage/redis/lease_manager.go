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
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// leaseManager renews, marks, acks and returns the leases that this process holds.
type leaseManager struct {
	client           *client.Client
	held             *heldLeases
	ttls             *leaseTTLRecorder
	interruptedDelay time.Duration // how long a host rests at least after a visit that was cut short
	beforeAck        func() error  // Options.BeforeAck
	coalescer        callCoalescer // of beforeAck
}

// Renew implements storage.Store. If ttl is longer than any lease before, a replica confirms that
// first.
func (h *leaseManager) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	ctx, end, err := h.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	p := h.client.PartitionOfHost(l.URL.Origin().Host())
	// A replica that takes over must know of a lease that runs for longer than those before.
	if err := h.ttls.record(ctx, p, ttl); err != nil {
		return fmt.Errorf("renew %v: %w", l.URL, err)
	}
	reply, _, err := h.client.RunUpdate(ctx, p, false, lua.RenewLease,
		h.client.ScriptClock().LocalMicrosArg(now.UnixMicro()), client.DurationArg(ttl),
		strconv.FormatUint(l.Token, 10))
	if err != nil {
		return fmt.Errorf("renew %v: %w", l.URL, err)
	}
	if reply != "1" {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStaleLease)
	}
	h.client.ScriptClock().AdvanceTo(now)
	return nil
}

// MarkSent implements storage.Store. The mark is as durable as what Add adds: no Flush is needed.
func (h *leaseManager) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	ctx, end, err := h.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	held, ok := h.held.get(l.Token)
	if !ok {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	// Change the record as the server has it, not the caller's Entry, which may have changed.
	e, err := record.ParseEntry([]byte(held.encodedEntry), l.URL.Origin())
	if err != nil {
		return fmt.Errorf("mark %v: %w", l.URL, err)
	}
	e.Sent = sent
	held.encodedEntry, held.sent = encodeEntry(&e), sent
	args := []string{strconv.FormatUint(l.Token, 10), l.URL.Origin().String(), held.encodedEntry}
	reply, _, err := h.client.RunUpdate(ctx, held.Partition, true, lua.MarkSent, args...)
	if err != nil {
		return fmt.Errorf("mark %v: %w", l.URL, err)
	}
	if reply != "1" {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	h.held.update(l.Token, held)
	return nil
}

// Ack implements storage.Store. It calls BeforeAck first. An ack that had to be repeated does not
// count as stale: the first attempt may have ended the lease, and its reply was lost.
func (h *leaseManager) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.ValidateAcks(acks); err != nil {
		return err
	}
	ctx, end, err := h.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	if len(acks) == 0 {
		return nil
	}
	// Acks that wait for BeforeAck at the same time share one call.
	if err := h.coalescer.do(h.beforeAck); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	batches := h.client.Partitions().Batches(len(acks), func(i int) (string, []string) {
		a := &acks[i]
		return a.Lease.URL.Origin().Host(), ackArgs(h.client.ScriptClock(), a, h.held.remove(a.Lease.Token))
	})
	var mu sync.Mutex // guards stale and longDelays
	var stale []error
	var longDelays []*storage.Ack
	err = h.client.SendBatches(ctx, batches, false, lua.Ack, nil, func(i int, reply byte, retried bool) error {
		mu.Lock()
		defer mu.Unlock()
		switch a := &acks[i]; {
		case reply != '1' && !retried:
			stale = append(stale, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStaleLease))
		case h.mustReplicateHostDue(a):
			longDelays = append(longDelays, a)
		}
		return nil
	})
	if err == nil {
		err = h.replicateDueTimes(ctx, longDelays)
	}
	if err != nil {
		err = fmt.Errorf("ack: %w", err)
	}
	return errors.Join(append(stale, err)...)
}

// A replica that takes over may lack the last acks. Its fence (see lease.lua) makes up for the
// delays of these acks that are not longer than itself. Longer delays are sent once more, until a
// replica has confirmed them.

// mustReplicateHostDue reports whether an ack delays its host for longer than the pause in which a
// replica that takes over gives no lease.
func (h *leaseManager) mustReplicateHostDue(a *storage.Ack) bool {
	if a.HostState == nil {
		return false
	}
	failoverDelay := h.ttls.maxTTL(h.client.PartitionOfHost(a.Lease.URL.Origin().Host()))
	return a.HostState.LostVisitDelay > failoverDelay || h.client.ScriptClock().Until(a.HostState.Due) > failoverDelay
}

// replicateDueTimes waits until replicas have confirmed the due times that acks have set.
func (h *leaseManager) replicateDueTimes(ctx context.Context, acks []*storage.Ack) error {
	batches := h.client.Partitions().Batches(len(acks), func(i int) (string, []string) {
		name, state := acks[i].Lease.URL.Origin().Host(), acks[i].HostState
		return name, []string{name, h.client.ScriptClock().TimeArg(state.Due), client.DurationArg(state.LostVisitDelay)}
	})
	return h.client.SendBatches(ctx, batches, true, lua.ConfirmDue, nil, func(int, byte, bool) error { return nil })
}

// ackArgs returns the arguments of ack.lua for one ack. held is what this process recorded of the
// lease: RobotsFor and Sent come from there, because callers may not change them.
func ackArgs(c *client.ScriptClock, a *storage.Ack, held heldURLLease) []string {
	e := a.Lease.Entry
	if held.Partition != nil {
		e.RobotsFor, e.Sent = held.robotsFor, held.sent
	}
	lane, at, outcome := schedule.LaneOf(&e), "", "done"
	switch {
	case a.Outcome == storage.Requeue:
		outcome, lane = "again", lane.ReturnedLane()
	case a.Outcome == storage.RetryAt:
		outcome, lane, at = "later", lane.DelayedLane(), c.TimeArg(a.NotBefore)
	case a.Outcome == storage.RevisitAt && e.RobotsFor.IsZero():
		outcome, at = "rest", c.TimeArg(a.NotBefore)
	case a.Outcome == storage.Park:
		outcome = "parked"
	}
	args := []string{strconv.FormatUint(a.Lease.Token, 10), e.URL.Origin().String(), outcome,
		strconv.Itoa(int(lane)), at, rankArg(&e), fingerprintArg(e.RequestFingerprint()), encodeEntry(&e)}
	if a.HostState == nil {
		return append(args, "0", "", "0", "0", "0", "") // hasState is 0: the script ignores the rest
	}
	return append(append(args, "1"), hostStateArgs(c, a.HostState)...)
}

// damagedLeaseAckArgs returns the arguments of ack.lua that end the lease of a damaged record
// without keeping it.
func damagedLeaseAckArgs(token uint64, origin string) []string {
	return []string{strconv.FormatUint(token, 10), origin, "done", "0", "", "0", "", "", "0", "", "0", "0", "0", ""}
}

// returnAll returns all leases of this process to their queues, with the last lease first, and lets
// their hosts rest. The caller has begun a call, or closes the client.
func (h *leaseManager) returnAll(ctx context.Context) error {
	tokens := h.held.tokensByPartition()
	partitions := slices.Collect(maps.Keys(tokens))
	return client.InParallel(ctx, partitions, func(p *client.Partition) error {
		for part := range slices.Chunk(tokens[p], client.MaxBatchItems) {
			args := []string{client.DurationArg(h.interruptedDelay)}
			for _, token := range part {
				args = append(args, strconv.FormatUint(token, 10))
			}
			if _, _, err := h.client.RunUpdate(ctx, p, false, lua.ReturnLeases, args...); err != nil {
				return fmt.Errorf("cannot return leases, which end when they expire: %w", err)
			}
		}
		return nil
	})
}
