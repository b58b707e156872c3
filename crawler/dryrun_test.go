package crawler_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestDryRun: a dry run visits robots.txt files and sitemaps, and reports the pages that a crawl
// would visit: not the disallowed ones, nor those of a host that asks for too long a delay.
func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := func(path string) bool { return path == "/closed" }
		web := crawltest.New(
			crawltest.Site{Host: "a.test",
				Robots: robotsText("User-agent: *\nDisallow: /closed\nSitemap: http://a.test/map.txt\n", 0, closed),
				Pages: map[string]crawltest.PageFunc{"/map.txt": crawltest.StaticPage(
					crawltest.Text("http://a.test/1\nhttp://a.test/closed\nhttp://a.test/2\n"))}},
			crawltest.Site{Host: "slow.test",
				Robots: robotsText("User-agent: *\nCrawl-delay: 7200\n", 2*time.Hour, nil)},
		)
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/",
			"http://a.test/closed", "http://slow.test/")
		c.Settings.DryRun = true
		var mu sync.Mutex
		var skipped []string
		c.Hooks.SkippedInDryRun = func(_ storage.Lease, cl gate.Clearance) {
			mu.Lock()
			defer mu.Unlock()
			skipped = append(skipped, cl.URL().String())
		}
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Fatalf("it ended with %v", err)
		}
		slices.Sort(skipped)
		if want := []string{"http://a.test/", "http://a.test/1", "http://a.test/2"}; !slices.Equal(skipped, want) {
			t.Errorf("passed by %v, want %v", skipped, want)
		}
		urls, _ := countRequests(web.Log())
		slices.Sort(urls)
		if want := []string{"http://a.test/map.txt", "http://a.test/robots.txt",
			"http://slow.test/robots.txt"}; !slices.Equal(urls, want) {
			t.Errorf("visited %v, want %v", urls, want)
		}
	})
}
