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

// newFailingResolver returns a resolver whose name server is unreachable. It counts the attempts.
func newFailingResolver(ttl time.Duration, wait time.Duration, count *int) *cachingResolver {
	var mu sync.Mutex
	return newCachingResolver(&net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
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

// TestFailedLookups: a failed lookup is not cached.
func TestFailedLookups(t *testing.T) {
	count := 0
	n := newFailingResolver(time.Minute, 0, &count)
	for range 2 {
		before := count
		if _, err := n.lookup(t.Context(), "a.test"); err == nil {
			t.Error("no error")
		}
		if count == before {
			t.Error("the name server got no second question")
		}
	}
}

// TestAbandonedLookup: if the caller that started a lookup gives up, a waiting caller looks up the
// host instead.
func TestAbandonedLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		n := newFailingResolver(time.Minute, time.Hour, &count)
		hasty, cancel := context.WithCancel(t.Context())
		patient, cancelPatient := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := n.lookup(hasty, "a.test"); err == nil {
				t.Error("the caller that gave up got an answer")
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := n.lookup(patient, "a.test"); err == nil {
				t.Error("the waiting caller got an answer")
			}
		})
		synctest.Wait()
		before := count
		cancel()
		synctest.Wait()
		if count == before {
			t.Error("the waiting caller did not look up the host")
		}
		cancelPatient()
		wg.Wait()
	})
}

// TestResolverCacheIsBounded: the cache holds at most maxCachedHosts names, and entries expire.
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
			t.Errorf("%d names are cached, want at most %d", len(n.entries), maxCachedHosts)
		}
		if last := fmt.Sprint("host", 2*maxCachedHosts-1); add(last) {
			t.Error("the last name is not cached")
		} else if time.Sleep(time.Minute); !add(last) {
			t.Error("the last name is cached for too long")
		}
	})
}
