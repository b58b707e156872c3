package collyfetch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A fullDiskStore is a store whose disk is full: adding waits.
type fullDiskStore struct {
	*memory.Store
	full atomic.Bool
}

func (s *fullDiskStore) Add(ctx context.Context, entries []storage.Entry,
	maxPerOrigin int) ([]storage.AddOutcome, error) {
	if s.full.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Add(ctx, entries, maxPerOrigin)
}

// TestFullDiskDoesNotBlockHalt: a crawl can be halted while a callback waits for disk space to queue a
// link. The page is visited again, and none of its links is lost.
func TestFullDiskDoesNotBlockHalt(t *testing.T) {
	for name, visit := range visitFuncs {
		t.Run(name, func(t *testing.T) { testFullDiskDoesNotBlockHalt(t, visit) })
	}
}

func testFullDiskDoesNotBlockHalt(t *testing.T, visit visitFunc) {
	synctest.Test(t, func(t *testing.T) {
		const links, each = 200, 30_000 // more than maxLinkBytes
		var page strings.Builder
		for i := range links {
			fmt.Fprintf(&page, "<a href=/%d>x</a>", i)
		}
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML(page.String()))}})
		store := &fullDiskStore{Store: memory.New(memory.Config{})}
		crawl, c := newCrawlWithStore(t, store, httpfetch.Config{Transport: web})
		crawl.Settings.MaxAttempts = 1
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			e.Request.Ctx.Put("text", strings.Repeat("x", each))
			_ = visit(e.Request, e.Attr("href")) // as most programs do
		})
		must(t, c.Visit("http://a.test/"))
		store.full.Store(true)
		time.AfterFunc(time.Minute, crawl.Halt)
		if err := crawl.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Fatal(err)
		}
		store.full.Store(false)
		crawl.Settings.MaxPages = 1
		_ = crawl.Run(t.Context()) // ErrPages
		counts, err := store.Counts(t.Context())
		must(t, err)
		if counts.QueuedURLs != links {
			t.Errorf("%d URLs are queued, want %d", counts.QueuedURLs, links)
		}
	})
}
