package crawler_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// TestFailedStoreEndsTheCrawl: if a visit's result cannot be written to disk, the crawl ends with
// the reason, although no visit is in flight and every worker waits: for a host that is not due for
// an hour, or for any URL.
func TestFailedStoreEndsTheCrawl(t *testing.T) {
	for name, cfg := range map[string]frontier.Config{"not due": {}, "daemon": {WaitForRevisitsAndSuspensions: true},
		"idle": {WaitWhenEmpty: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFailedStore(t, cfg) })
		})
	}
}

func testFailedStore(t *testing.T, cfg frontier.Config) {
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1", "/2"),
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nCrawl-delay: 3600\n"), CrawlDelay: time.Hour,
		})})
	var broken atomic.Bool
	file := filepath.Join(t.TempDir(), "frontier.db")
	store, err := bolt.Open(file, bolt.Options{FlushEvery: time.Minute, BeforeWrite: func() error {
		if broken.Load() {
			return syscall.EIO
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := newDirectCrawl(t, web, store)
	cfg.Budget = c.Limiter
	c.Frontier = frontier.New(store, cfg)
	addSeeds(t, c, "http://a.test/")
	// The next visit is after two hours; its result is written within a minute.
	time.AfterFunc(time.Hour+30*time.Minute, func() { broken.Store(true) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
	defer cancel()
	begin := time.Now()
	if err := c.Run(ctx); !errors.Is(err, storage.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("the crawl ended with %v, want %v because of %v", err, storage.ErrFailed, syscall.EIO)
	}
	if took := time.Since(begin); took > 150*time.Minute {
		t.Errorf("it took %v", took)
	}
	_ = store.Close() // returns the same error again
	pages := len(pageTimes(web.Log(), "a.test"))
	reopened := openBolt(t, file)
	n, err := countsOf(reopened)
	if err != nil || n.SeenURLs != 3 || n.QueuedURLs+pages < 3 {
		t.Errorf("%+v (%v) after %d pages, want all three URLs known and none lost", n, err, pages)
	}
}
