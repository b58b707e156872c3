package crawler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestIncompleteCrawler: Run of a crawl without a required part, or with an invalid setting,
// returns an error; it neither panics nor ends as if it were done.
func TestIncompleteCrawler(t *testing.T) {
	for want, spoil := range map[string]func(*crawler.Crawler){
		"Frontier is nil":                func(c *crawler.Crawler) { c.Frontier = nil },
		"Gate is nil":                    func(c *crawler.Crawler) { c.Gate = nil },
		"Limiter is nil":                 func(c *crawler.Crawler) { c.Limiter = nil },
		"Fetcher is nil":                 func(c *crawler.Crawler) { c.Fetcher = nil },
		"delay must not be negative":     func(c *crawler.Crawler) { c.Policy.Delay = -time.Minute },
		"numbers must not be negative":   func(c *crawler.Crawler) { c.Settings.Workers = -1 },
		"durations must not be negative": func(c *crawler.Crawler) { c.Settings.GracePeriod = -1 },
	} {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("a"))}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		spoil(c)
		if err := c.Run(t.Context()); !errors.Is(err, decorum.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Run returns %v, want %s", err, want)
		}
		if n := len(web.Log()); n != 0 {
			t.Errorf("%s: %d requests were sent", want, n)
		}
	}
	if err := new(crawler.Crawler).Run(t.Context()); !errors.Is(err, decorum.Invalid) {
		t.Errorf("Run of nothing returns %v", err)
	}
}
