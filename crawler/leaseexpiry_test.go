package crawler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// A delayedFetcher is a Fetcher that is delayed before it sends anything.
type delayedFetcher struct {
	crawler.Fetcher
	delay time.Duration
}

func (l delayedFetcher) Fetch(_ context.Context, t crawler.Ticket) (*decorum.Response, error) {
	time.Sleep(l.delay)
	return l.Fetcher.Fetch(context.Background(), t) // even if the visit was cancelled
}

// TestNothingIsSentAfterTheLease: a process that is stopped past the end of its lease sends no
// request when it continues: another process may be visiting the host.
func TestNothingIsSentAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		store := &faultyStore{Store: newMemoryStore(), renew: func() error {
			return errors.New("the store is unreachable")
		}}
		c := newCrawl(t, web, store, "http://a.test/")
		c.Fetcher = delayedFetcher{c.Fetcher, 10 * time.Second}
		c.Frontier = frontier.New(store, frontier.Config{LeaseTTL: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = c.Run(ctx) // Run never ends by itself: every lease expires
		if n := len(web.Log()); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
	})
}

// TestALeaseThatRunsOutEndsNoCrawl: the store is unavailable while a lease expires, and takes no
// links. The page is visited again, its links are queued, and the visit that was lost does not count
// against MaxPages.
func TestALeaseThatRunsOutEndsNoCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": pageWithLinks("/linked"), "/linked": pageWithLinks(),
		}})
		storeErr := errors.New("the store is unreachable")
		store := &faultyStore{Store: newMemoryStore()}
		store.add = func(es []storage.Entry) error {
			if storeErr == nil || len(es) == 0 || es[0].Source != storage.SourceLink {
				return nil
			}
			time.Sleep(10 * time.Second)
			err := storeErr
			storeErr = nil
			return err
		}
		store.renew = func() error { return errors.New("the store is unreachable") }
		c := newCrawl(t, web, store, "http://a.test/")
		c.Frontier = frontier.New(store, frontier.Config{LeaseTTL: 5 * time.Second})
		c.Settings.MaxPages = 2
		if err := c.Run(t.Context()); err != nil {
			t.Errorf("the crawl ended with %v", err)
		}
		if n := len(web.Log()); n != 4 { // robots.txt, the page twice, and its link
			t.Errorf("%d requests, want 4:\n%v", n, web.Log())
		}
	})
}
