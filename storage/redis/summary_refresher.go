package redis

import (
	"context"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// fullRefreshFactor is how often all partitions are asked, though nothing seems to have
// changed, in multiples of Options.PartitionRefreshInterval: a replica that took over may count changes
// otherwise than the master did.
const fullRefreshFactor = 20

// summaryRefresher asks partitions what there is, when what is known may be old.
type summaryRefresher struct {
	client           *client.Client
	interval         time.Duration // Options.PartitionRefreshInterval
	interruptedDelay time.Duration // how long a host rests at least whose visit was cut short

	mu              sync.Mutex // guards the fields below
	lastCheck       time.Time  // when all partitions were looked at
	lastFullRefresh time.Time  // when all were asked
}

// refreshChanged asks those partitions what there is that have changed, if that was not
// looked at lately: to read the number of changes takes a server a small part of what it
// takes to say what there is.
func (r *summaryRefresher) refreshChanged(ctx context.Context) error {
	r.mu.Lock()
	checkIsDue := time.Since(r.lastCheck) >= r.interval
	fullIsDue := time.Since(r.lastFullRefresh) >= fullRefreshFactor*r.interval
	r.mu.Unlock()
	switch {
	case !checkIsDue:
		return nil
	case fullIsDue:
		return r.refreshAll(ctx)
	}
	start := time.Now()
	err := r.refresh(ctx, r.client.ChangedOrUnreachablePartitions(ctx))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastCheck = start
	return err
}

// refreshAll asks all partitions what there is.
func (r *summaryRefresher) refreshAll(ctx context.Context) error {
	start := time.Now()
	err := r.refresh(ctx, r.client.Partitions())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastCheck, r.lastFullRefresh = start, start
	return err
}

// refreshExpired has the partitions deal with what has run out by now.
func (r *summaryRefresher) refreshExpired(ctx context.Context, now time.Time) error {
	for {
		var overdue []*client.Partition
		for _, p := range r.client.Partitions() {
			if sum, up := p.LastSummary(); up && sum.HasExpiredLeaseOrHold(r.client.ScriptClock().CallerOrLocalMicros(now)) {
				overdue = append(overdue, p)
			}
		}
		if len(overdue) == 0 {
			return nil
		}
		if err := r.refresh(ctx, overdue); err != nil || !r.client.ScriptClock().UsesCallerTime() {
			return err // by the server's clock it may not have run out yet
		}
	}
}

// refresh asks partitions what there is, once, and has them deal with what has run out: it
// asks for no lease.
func (r *summaryRefresher) refresh(ctx context.Context, partitions []*client.Partition) error {
	args := leaseArgs(r.client.ScriptClock(), 0, 0, r.interruptedDelay, 0)
	for i, reply := range r.client.TryUpdates(ctx, false, lua.Lease, client.CallsTo(partitions, args...)) {
		if reply.Err == nil {
			continue
		}
		if err := ignoreTransient(ctx, r.client, partitions[i], reply.Err); err != nil {
			return err
		}
	}
	return nil
}

// A server that takes over may know none of the leases that the one before has given out.
// It waits for their end, whatever they are, if it knows how long they may run: so that is
// noted, and confirmed by a replica, before the first of them is given.
