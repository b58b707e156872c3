package crawler_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestACrawlOfOneWorker: beside a crawl with many workers on the same hosts, a crawl with one
// worker makes as many visits as its worker could alone, and takes no turns that it has no worker
// for.
func TestACrawlOfOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, latency, long = 100, 300 * time.Millisecond, 2 * time.Minute
		sites, _ := onePageSites(hosts, crawltest.Latency{Base: latency})
		web, shared := crawltest.New(sites...), politeness.NewSharedHosts()
		crawl := func(name string, workers int) *crawler.Crawler {
			c := newHostSharingCrawl(t, web, shared, time.Second)
			c.Settings.Workers = workers
			queueURLs(t, c, hosts*100, urlPatterns(hosts, name)...)
			return c
		}
		few, many := crawl("few", 1), crawl("many", 64)
		ctx, stop := context.WithTimeout(t.Context(), long)
		defer stop()
		done := make(chan error)
		go func() { done <- few.Run(ctx) }()
		_ = many.Run(ctx)
		<-done
		f, m := int(few.Stats().Pages+few.Stats().RobotsFetches), int(many.Stats().Pages+many.Stats().RobotsFetches)
		alone := [2]int{int(long / latency), hosts * int(long/(latency+time.Second))}
		if f < alone[0]*90/100 || m < alone[1]*85/100 {
			t.Errorf("%d and %d visits, of %v that they could make alone", f, m, alone)
		}
		t.Logf("%d and %d visits, of %v that they could make alone", f, m, alone)
	})
}

// urlPatterns returns patterns of pages on many hosts, for queueURLs.
func urlPatterns(hosts int, name string) (patterns []string) {
	for i := range hosts {
		patterns = append(patterns, fmt.Sprintf("http://h%d.test/%s/", i, name)+"%d")
	}
	return patterns
}
