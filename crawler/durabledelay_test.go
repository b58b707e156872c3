package crawler_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage"
)

// TestLongDelayIsDurableAtOnce: a process is killed right after a host has demanded an
// hour's rest, long before the store would flush. The next process still keeps the rest.
func TestLongDelayIsDurableAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", "3600")
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			if r.NthForURL == 1 {
				return busy
			}
			return crawltest.HTML("a page")
		}})
		file := filepath.Join(t.TempDir(), "frontier.db")
		c := newCrawl(t, web, openBolt(t, file), "http://a.test/")
		var copied string
		c.Hooks.Acked = func(a storage.Ack) {
			if a.Outcome == storage.RetryAt {
				copied = copyStoreFile(t, file)
				go c.Halt()
			}
		}
		_ = c.Run(t.Context()) // the crawl is halted
		began := time.Now()
		if err := newCrawl(t, web, openBolt(t, copied)).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if last := log[len(log)-1]; len(log) != 3 || last.Start.Sub(began) != time.Hour {
			t.Errorf("%d requests, the last one %v after the restart; want 3, and an hour",
				len(log), last.Start.Sub(began))
		}
	})
}
