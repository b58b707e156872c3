package frontier

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// parseURL returns the URL of s.
func parseURL(t *testing.T, s string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// newDispatcherConfig returns a Config with the defaults that newDispatcher requires.
func newDispatcherConfig() Config { return Config{LeaseTTL: time.Hour, Now: time.Now} }

// addURLs queues URLs in store as seeds.
func addURLs(t *testing.T, store storage.Store, urls ...string) {
	t.Helper()
	for _, u := range urls {
		if _, err := store.Add(t.Context(), []storage.Entry{{URL: parseURL(t, u)}}, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReturnUnusedLeases: leases that were made for workers that have ended are queued again.
func TestReturnUnusedLeases(t *testing.T) {
	store := memory.New(memory.Config{})
	addURLs(t, store, "http://a.test/", "http://b.test/")
	d := newDispatcher(store, newDispatcherConfig())
	var err error
	if d.readyLeases, _, err = store.Lease(t.Context(), time.Now(), time.Hour, 2); err != nil ||
		len(d.readyLeases) != 2 {
		t.Fatalf("%d leases, %v", len(d.readyLeases), err)
	}
	if err := d.returnUnusedLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Counts(t.Context()); err != nil || n.LeasedURLs != 0 || n.QueuedURLs != 2 {
		t.Errorf("%+v, %v: want two queued", n, err)
	}
}

// A lossyQueue is a queue whose servers have restarted a given number of times.
type lossyQueue struct {
	storage.Queue
	restarts uint64
}

func (q *lossyQueue) Lease(ctx context.Context, now time.Time, ttl time.Duration,
	n int) ([]storage.Lease, storage.Wait, error) {
	leases, wait, err := q.Queue.Lease(ctx, now, ttl, n)
	wait.LossGeneration = q.restarts
	return leases, wait, err
}

// TestDispatcher: URLs are leased until the queue is empty. The caches are reset when the store has
// lost data, and only then.
func TestDispatcher(t *testing.T) {
	store := memory.New(memory.Config{})
	addURLs(t, store, "http://a.test/", "http://b.test/", "http://c.test/")
	queue, cache := &lossyQueue{Queue: store}, newBoundedTextSet(8)
	d := newDispatcher(queue, newDispatcherConfig(), &cache)
	for _, restarts := range []uint64{0, 1, 1} {
		cache.add("x")
		lost := restarts != queue.restarts
		queue.restarts = restarts
		l, err := d.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cache.contains("x") == lost {
			t.Errorf("restart %d: the cache remembers: %v", restarts, !lost)
		}
		if err := store.Ack(t.Context(), []storage.Ack{{Lease: l}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.next(t.Context()); !errors.Is(err, ErrEmpty) {
		t.Errorf("next returns %v of an empty queue", err)
	}
}

// TestDispatcherWake: a worker that waits for a held origin gets its URL when the hold is ended
// early, not when it would have ended.
func TestDispatcherWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, begin := memory.New(memory.Config{}), time.Now()
		addURLs(t, store, "http://a.test/")
		origin := parseURL(t, "http://a.test/").Origin()
		if err := store.Hold(t.Context(), origin, begin.Add(time.Hour), false); err != nil {
			t.Fatal(err)
		}
		d := newDispatcher(store, newDispatcherConfig())
		result := make(chan error)
		go func() {
			_, err := d.next(t.Context())
			result <- err
		}()
		synctest.Wait()
		if err := store.Hold(t.Context(), origin, time.Time{}, false); err != nil {
			t.Fatal(err)
		}
		d.wakeNext()
		if err := <-result; err != nil || time.Since(begin) > 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}
