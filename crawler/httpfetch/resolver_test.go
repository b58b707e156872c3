package httpfetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errNameServerDown = errors.New("the name server is away")

// newFailingResolver returns names whose name server cannot be reached, and counts how
// often that is tried.
func newFailingResolver(ttl time.Duration, wait time.Duration, count *int) *cachingResolver {
	var mu sync.Mutex
	return newCachingResolver(&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		mu.Lock()
		*count++
		mu.Unlock()
		select {
		case <-time.After(wait):
			return nil, errNameServerDown
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}, ttl)
}

// TestFailedLookups are not remembered.
func TestFailedLookups(t *testing.T) {
	count := 0
	n := newFailingResolver(time.Minute, 0, &count)
	for range 2 {
		before := count
		if _, err := n.lookup(t.Context(), "a.test"); err == nil {
			t.Error("no error")
		}
		if count == before {
			t.Error("the name server was not asked again")
		}
	}
}

// TestAbandonedLookup: where the first that asked goes away, another asks on.
func TestAbandonedLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		n := newFailingResolver(time.Minute, time.Hour, &count)
		hasty, cancel := context.WithCancel(t.Context())
		patient, cancelPatient := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := n.lookup(hasty, "a.test"); err == nil {
				t.Error("the hasty one got an answer")
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := n.lookup(patient, "a.test"); err == nil {
				t.Error("the patient one got an answer")
			}
		})
		synctest.Wait()
		before := count
		cancel()
		synctest.Wait()
		if count == before {
			t.Error("nobody asks on")
		}
		cancelPatient()
		wg.Wait()
	})
}

// TestResolverCacheIsBounded, and what is remembered is forgotten in time.
func TestResolverCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newCachingResolver(nil, time.Minute)
		add := func(host string) bool {
			a, created := n.getOrCreate(host)
			if created {
				a.expires = time.Now().Add(n.ttl)
				close(a.done)
			}
			return created
		}
		for i := range 2 * maxCachedHosts {
			add(fmt.Sprint("host", i))
		}
		if len(n.entries) > maxCachedHosts {
			t.Errorf("%d names are remembered, want at most %d", len(n.entries), maxCachedHosts)
		}
		if last := fmt.Sprint("host", 2*maxCachedHosts-1); add(last) {
			t.Error("the last name is not remembered")
		} else if time.Sleep(time.Minute); !add(last) {
			t.Error("the last name is remembered for too long")
		}
	})
}
