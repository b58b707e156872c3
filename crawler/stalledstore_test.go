package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage"
)

// A stallingStore is a Store that cannot write for a while: it hands out no leases, and writes
// wait.
type stallingStore struct {
	storage.Store
	stalled atomic.Bool
}

func (s *stallingStore) Lease(ctx context.Context, now time.Time, ttl time.Duration,
	max int) ([]storage.Lease, storage.Wait, error) {
	if s.stalled.Load() {
		return nil, storage.Wait{}, fmt.Errorf("cannot write: no space left on device: %w", storage.ErrWriteStalled)
	}
	return s.Store.Lease(ctx, now, ttl, max)
}

func (s *stallingStore) Ack(ctx context.Context, acks []storage.Ack) error {
	for s.stalled.Load() {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.Ack(ctx, acks)
}

// TestStalledStorePausesTheCrawl: the crawl resumes by itself, and nothing is lost or visited
// twice.
func TestStalledStorePausesTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1", "/2", "/3")})
		store := &stallingStore{Store: newMemoryStore()}
		c := newCrawl(t, web, store, "http://a.test/")
		const outage = time.Hour
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.URL().PathAndQuery() == "/1" {
				store.stalled.Store(true)
				time.AfterFunc(outage, func() { store.stalled.Store(false) })
			}
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		for _, url := range []string{"http://a.test/", "http://a.test/1", "http://a.test/2", "http://a.test/3"} {
			if times[url] != 1 {
				t.Errorf("%s was visited %d times, want once", url, times[url])
			}
		}
		if paused := maxGap(web.Log()); paused < outage {
			t.Errorf("the longest pause was %v, want at least %v", paused, outage)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// maxGap returns the longest time without a request.
func maxGap(log []crawltest.Exchange) (gap time.Duration) {
	for i := range log[1:] {
		gap = max(gap, log[i+1].Start.Sub(log[i].End))
	}
	return gap
}

// TestStalledStoreDoesNotKeepTheCrawl: a crawl that is halted while its store cannot write ends
// soon.
func TestStalledStoreDoesNotKeepTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1")})
		store := &stallingStore{Store: newMemoryStore()}
		c := newCrawl(t, web, store, "http://a.test/")
		var halted time.Time
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.URL().PathAndQuery() == "/" {
				store.stalled.Store(true)
				time.AfterFunc(time.Minute, func() { halted = time.Now(); c.Halt() })
			}
		}
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Errorf("error %v, want ErrHalted", err)
		}
		if took := time.Since(halted); halted.IsZero() || took > 10*time.Second {
			t.Errorf("ended %v after it was halted", took)
		}
	})
}

// A fullDiskRecorder is a Recorder whose disk is full for a while.
type fullDiskRecorder struct{ until time.Time }

func (f fullDiskRecorder) Record(ctx context.Context, _ *crawler.Visit) error {
	select {
	case <-time.After(time.Until(f.until)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestRecorderOnFullDisk: a page that waits to be recorded when the crawl is halted goes back to
// the frontier, and is visited again.
func TestRecorderOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		c.PageRecorder = fullDiskRecorder{until: time.Now().Add(time.Hour)}
		time.AfterFunc(time.Minute, c.Halt)
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Errorf("error %v, want ErrHalted", err)
		}
		if n, err := countsOf(store); err != nil || n.QueuedURLs != 1 {
			t.Errorf("%d URLs queued (%v), want the page", n.QueuedURLs, err)
		}
		second := newCrawl(t, web, store)
		second.PageRecorder = fullDiskRecorder{until: time.Now().Add(time.Hour)}
		if err := second.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if _, times := countRequests(web.Log()); times["http://a.test/"] != 2 {
			t.Errorf("visits %v, want two of the page", times)
		}
	})
}
