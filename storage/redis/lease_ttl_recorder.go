package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A leaseTTLRecorder records in partitions how long leases may run, and remembers what they have
// recorded.
//
// A replica that takes over may lack all leases that the master has given. It waits until they must
// have expired, which it can if it knows how long they run. The longest lease is therefore recorded,
// and confirmed by a replica, before the first such lease is given.
type leaseTTLRecorder struct {
	client  *client.Client
	timeout time.Duration // Options.Timeout

	mu       sync.Mutex                          // guards recorded
	recorded map[*client.Partition]time.Duration // the longest lease that a partition has recorded
}

func newLeaseTTLRecorder(c *client.Client, timeout time.Duration) *leaseTTLRecorder {
	return &leaseTTLRecorder{client: c, timeout: timeout, recorded: make(map[*client.Partition]time.Duration)}
}

// maxTTL returns the longest lease that p is known to have recorded, or 0.
func (r *leaseTTLRecorder) maxTTL(p *client.Partition) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded[p]
}

// raise remembers that p and a replica have recorded ttl.
func (r *leaseTTLRecorder) raise(p *client.Partition, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded[p] = max(r.recorded[p], ttl)
}

// tryRecord records ttl in those partitions that are not known to have recorded it. It calls each
// once, and skips servers that do not answer. It modifies the slice partitions.
func (r *leaseTTLRecorder) tryRecord(ctx context.Context, partitions []*client.Partition, ttl time.Duration) error {
	partitions = slices.DeleteFunc(partitions, func(p *client.Partition) bool { return r.maxTTL(p) >= ttl })
	if len(partitions) == 0 {
		return nil
	}
	for i, reply := range r.client.TryUpdates(ctx, true, lua.RecordLeaseTTL, client.CallsTo(partitions, r.arg(ttl))) {
		if _, err := reply.Text(); err == nil {
			r.raise(partitions[i], ttl)
		} else if err := ignoreTransient(ctx, r.client, partitions[i], err); err != nil {
			return err
		}
	}
	return nil
}

// record records ttl in p, unless p is known to have recorded it. It repeats the call until it
// succeeds.
func (r *leaseTTLRecorder) record(ctx context.Context, p *client.Partition, ttl time.Duration) error {
	if r.maxTTL(p) >= ttl {
		return nil
	}
	_, _, err := r.client.RunUpdate(ctx, p, true, lua.RecordLeaseTTL, r.arg(ttl))
	if err == nil {
		r.raise(p, ttl)
	}
	return err
}

// pingInterval is the longest time after which a silent connection is pinged. The connection is lost
// if the server does not answer for Options.Timeout.
const pingInterval = 2 * time.Second

// arg returns the argument of record_lease_ttl.lua: ttl, pingInterval and the timeout. A master that
// was paused or cut off may give leases after it was replaced: when it resumes, it may answer calls
// on a connection that is not lost yet. A replica that takes over waits for that time, too.
func (r *leaseTTLRecorder) arg(ttl time.Duration) string {
	return client.DurationArg(ttl + pingInterval + r.timeout)
}
