package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A leaseTTLRecorder has partitions note how long leases may run.
type leaseTTLRecorder struct {
	client  *client.Client
	timeout time.Duration // Options.Timeout

	mu       sync.Mutex // guards recorded
	recorded map[*client.Partition]time.Duration
}

func newLeaseTTLRecorder(c *client.Client, timeout time.Duration) *leaseTTLRecorder {
	return &leaseTTLRecorder{client: c, timeout: timeout, recorded: make(map[*client.Partition]time.Duration)}
}

// maxTTL returns how long leases may run, as far as p is known to have noted; 0 if it is not.
func (r *leaseTTLRecorder) maxTTL(p *client.Partition) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded[p]
}

// raise remembers that p, and a replica of it, has noted that leases may run for ttl.
func (r *leaseTTLRecorder) raise(p *client.Partition, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded[p] = max(r.recorded[p], ttl)
}

// tryRecord calls those partitions once that are not known to have noted that leases may
// run for ttl. Servers that do not answer are passed over. It changes partitions.
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

// record calls p until it has noted that leases may run for ttl, if it is not known to have.
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

// A connection that is silent is asked for a sign of life after pingInterval at the latest,
// and is lost after Options.Timeout.
const pingInterval = 2 * time.Second

// arg returns the argument of record_lease_ttl.lua. A master that was stopped, or cut off,
// may give leases yet when it has been replaced: when it goes on it may answer who has asked
// by a connection that is not lost. So for that long a server that takes over waits, too.
func (r *leaseTTLRecorder) arg(ttl time.Duration) string {
	return client.DurationArg(ttl + pingInterval + r.timeout)
}
