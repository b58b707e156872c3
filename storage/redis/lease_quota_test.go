package redis

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// Of two processes that wait for a host, the slower one leaves the next due time to the faster one for
// a moment, and then leases the host if the faster one has not.
func TestSlowerProcessBacksOff(t *testing.T) {
	t.Parallel()
	c, prefix := redistest.StartClusterForTest(t, 1, 0), newPrefix()
	opts := Options{Partitions: 1, Durability: DurabilityNone, PartitionRefreshInterval: 2 * time.Second}
	fast, slow := openServerClock(t, c, prefix, opts), openServerClock(t, c, prefix, opts)
	must1(fast.Add(t.Context(), pageEntries(1, 3), 0))
	if _, next, err := slow.Lease(t.Context(), time.Now(), time.Minute, 0); err != nil ||
		next.RemainingWorkKind != storage.RemainingPending {
		t.Fatal(next, err)
	}
	due := time.Now().Add(time.Second)
	must(t, fast.Ack(t.Context(), []storage.Ack{{Lease: waitForLease(t, fast, time.Minute),
		HostState: &storage.HostState{Due: due}}}))
	leases, later, err := slow.Lease(t.Context(), time.Now(), time.Minute, 1)
	if err != nil || len(leases) > 0 {
		t.Fatal(leases, err)
	}
	_, sooner, err := fast.Lease(t.Context(), time.Now(), time.Minute, 0)
	if err != nil || sooner.Until.Before(due) || !later.Until.After(sooner.Until) {
		t.Errorf("the host is due at %v, the faster process waits until %v, the slower one until %v (%v)", due,
			sooner.Until, later.Until, err)
	}
	waitForLease(t, slow, time.Minute) // the faster process takes nothing
}
