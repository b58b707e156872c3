package redis

import (
	"context"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// fullRefreshFactor is the time between two refreshes of all summaries, as a multiple of
// Options.PartitionRefreshInterval. Unchanged versions do not prove that nothing has changed: a
// replica that took over may count changes otherwise than the master did.
const fullRefreshFactor = 20

// summaryRefresher refreshes the summaries of partitions that may be out of date.
type summaryRefresher struct {
	client           *client.Client
	interval         time.Duration // Options.PartitionRefreshInterval
	interruptedDelay time.Duration // how long a host rests at least after a visit that was cut short

	mu              sync.Mutex // guards lastCheck and lastFullRefresh
	lastCheck       time.Time  // when the versions of all partitions were last compared
	lastFullRefresh time.Time  // when all summaries were last refreshed
}

// refreshChanged refreshes the summaries of the partitions that have changed, unless the last check
// is less than an interval ago. Reading the version of a partition costs a server a small part of
// what its summary costs.
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

// refreshAll refreshes the summaries of all partitions.
func (r *summaryRefresher) refreshAll(ctx context.Context) error {
	start := time.Now()
	err := r.refresh(ctx, r.client.Partitions())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastCheck, r.lastFullRefresh = start, start
	return err
}

// refreshExpired refreshes the summaries of partitions in which a lease or a hold has ended by now,
// so that its URLs can be leased.
func (r *summaryRefresher) refreshExpired(ctx context.Context, now time.Time) error {
	for {
		var overdue []*client.Partition
		for _, p := range r.client.Partitions() {
			if sum, up := p.LastSummary(); up &&
				sum.HasExpiredLeaseOrHold(r.client.ScriptClock().CallerOrLocalMicros(now)) {
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

// refresh calls lease.lua without tokens on partitions, once. The script ends expired leases and
// holds, gives no lease, and returns a summary.
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
