package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// visitAll visits all URLs that are left, and returns the number of visits of each. Hosts rest only
// after a failover. It fails the test if URLs are left at until.
func visitAll(t *testing.T, s *Store, until time.Time) map[string]int {
	t.Helper()
	visits := map[string]int{}
	for time.Now().Before(until) {
		leases, next, err := s.Lease(t.Context(), time.Now(), time.Second, 50)
		if err != nil && !errors.Is(err, storage.ErrWriteStalled) {
			t.Fatal(err)
		}
		for _, l := range leases {
			visits[l.URL.String()]++
			if err := s.Ack(t.Context(), []storage.Ack{{Lease: l}}); err != nil &&
				!errors.Is(err, storage.ErrStaleLease) {
				t.Fatal(err)
			}
		}
		switch {
		case err != nil:
			time.Sleep(50 * time.Millisecond)
		case len(leases) == 0 && next.RemainingWorkKind == storage.RemainingNone:
			return visits
		case len(leases) == 0:
			time.Sleep(max(0, min(time.Until(next.Until), time.Until(next.PollAt))))
		}
	}
	t.Fatalf("only %d URLs were visited in time", len(visits))
	return nil
}

// A master is killed while URLs are added. Its replica, which takes over, has all URLs for which Add
// has returned.
func TestFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 3, 1)
	var mu sync.Mutex
	var stalls []bool
	s := openServerClock(t, c, newPrefix(),
		Options{Partitions: 6, Timeout: time.Second, PartitionRefreshInterval: 50 * time.Millisecond,
			PostInterruptionDelay: time.Millisecond,
			OnStallChange: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				stalls = append(stalls, err != nil)
			}})
	all := pageEntries(30, 20)
	for i, part := range slices.Collect(slices.Chunk(all, 10)) {
		if i == 20 {
			c.KillNode(c.Nodes()[0])
		}
		_, err := s.Add(t.Context(), part, 0) // returns after the replica has taken over
		must(t, err)
		if i == 20 {
			c.StartKilledNode(c.Nodes()[0]) // the new master needs a replica
		}
	}
	visits := visitAll(t, s, time.Now().Add(60*time.Second))
	for _, e := range all {
		if visits[e.URL.String()] == 0 {
			t.Errorf("%v was lost", e.URL)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(stalls) < 2 || !stalls[0] || stalls[len(stalls)-1] {
		t.Errorf("OnStallChange got errors: %v, want a stall first and its end last", stalls)
	}
}

// After a failover a partition gives no lease until the longest lease that the server before can have
// given has expired, and then its hosts rest once more.
func TestDelayAfterFailover(t *testing.T) {
	t.Parallel()
	const timeout, ttl, delay = time.Second, time.Second, 700 * time.Millisecond
	c := redistest.StartClusterForTest(t, 1, 0)
	s := openServerClock(t, c, newPrefix(), Options{Partitions: 1, Timeout: timeout, Durability: DurabilityNone,
		PostInterruptionDelay: time.Millisecond})
	_, err := s.Add(t.Context(), pageEntries(1, 2), 0)
	must(t, err)
	first := waitForLease(t, s, ttl)
	must(t, s.Ack(t.Context(), []storage.Ack{{Lease: first,
		HostState: &storage.HostState{Due: time.Now(), LostVisitDelay: delay}}}))
	c.KillNode(c.Nodes()[0])
	c.StartKilledNode(c.Nodes()[0]) // a new process with the data on disk
	c.WaitReady()
	restarted := time.Now()
	waitForLease(t, s, ttl)
	if waited, want := time.Since(restarted), ttl+pingInterval+timeout+delay; waited < want {
		t.Errorf("a host was leased %v after the failover, want at least %v", waited, want)
	}
}

// Add waits for a replica also for a URL that is a duplicate, because another process may have added
// it without a confirmation.
func TestAddOfKnownURLWaitsForReplica(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	prefix, replica := newPrefix(), c.Nodes()[1]
	var stores []*Store
	for range 2 {
		stores = append(stores, openServerClock(t, c, prefix, Options{Partitions: 1, Timeout: 500 * time.Millisecond}))
	}
	must(t, replica.Signal(syscall.SIGSTOP))
	for i, s := range stores {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if results, err := s.Add(ctx, pageEntries(1, 1), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("store %d: %v, %v, though no replica has the URL", i, results, err)
		}
		cancel()
	}
	must(t, replica.Signal(syscall.SIGCONT))
	if results := must1(stores[1].Add(t.Context(), pageEntries(1, 1), 0)); results[0] != storage.Duplicate {
		t.Errorf("the outcome is %v, want Duplicate", results[0])
	}
}

// waitForLease calls Lease until it returns a lease.
func waitForLease(t *testing.T, s *Store, ttl time.Duration) storage.Lease {
	t.Helper()
	for {
		leases, _, err := s.Lease(t.Context(), time.Now(), ttl, 1)
		if err != nil && !errors.Is(err, storage.ErrWriteStalled) {
			t.Fatal(err)
		}
		if len(leases) > 0 {
			return leases[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A script that a server has forgotten is sent to it again.
func TestScriptCacheFlush(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	s := openServerClock(t, c, newPrefix(), Options{Partitions: 1, Durability: DurabilityNone})
	_, err := s.Add(t.Context(), pageEntries(1, 1), 0)
	must(t, err)
	_, err = c.Nodes()[0].Do(t.Context(), "SCRIPT", "FLUSH")
	must(t, err)
	if n := must1(s.Counts(t.Context())).QueuedURLs; n != 1 {
		t.Errorf("%d queued, want 1", n)
	}
	_, err = s.Add(t.Context(), pageEntries(1, 2), 0)
	must(t, err)
}

// A server loses an ack and a link of that page. The page is leased again, and the frontier does not
// take the link for known, so that it is added again.
func TestLostURLIsAddedAgain(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	s := openServerClock(t, c, newPrefix(), Options{Partitions: 2, Timeout: time.Second, Durability: DurabilityNone,
		PostInterruptionDelay: time.Millisecond})
	f := frontier.New(s, frontier.Config{LeaseTTL: time.Second, WaitForRevisitsAndSuspensions: true})
	link := pageEntry("http://b.test/link")
	_, err := f.Discover(t.Context(), pageEntry("http://a.test/page"))
	must(t, err)
	first := must1(f.Next(t.Context()))
	_, err = c.Nodes()[0].Do(t.Context(), "CONFIG", "SET", "appendonly", "no") // later writes will be lost
	must(t, err)
	_, err = f.Discover(t.Context(), link)
	must(t, err)
	must(t, f.Ack(t.Context(), storage.Ack{Lease: first}))
	if !f.WasRecentlyOffered(link.URL) {
		t.Error("the frontier does not know the link that it has just added")
	}
	c.KillNode(c.Nodes()[0])
	c.StartKilledNode(c.Nodes()[0])
	c.WaitReady()
	again := must1(f.Next(t.Context()))
	if again.URL != first.URL || f.WasRecentlyOffered(link.URL) {
		t.Errorf("%v is leased, and the lost link is known: %t; want %v, and an unknown link", again.URL,
			f.WasRecentlyOffered(link.URL), first.URL)
	}
	if added, err := f.Discover(t.Context(), link); err != nil || added != 1 {
		t.Errorf("%d links were added again (%v), want 1", added, err)
	}
}
