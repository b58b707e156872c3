package crawler_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// newHostSharingCrawl returns a crawl like newCrawl's that shares hosts with others.
func newHostSharingCrawl(t *testing.T, web *crawltest.Web, hosts *politeness.SharedHosts, delay time.Duration,
	seeds ...string) *crawler.Crawler {
	t.Helper()
	store := newMemoryStore()
	c := newDirectCrawl(t, web, store)
	c.Limiter = hosts.NewLimiter(politeness.LimiterConfig{})
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter})
	c.Policy.Delay, c.Policy.AdaptiveFactor = delay, -1
	c.Settings.NoSitemaps = true
	addSeeds(t, c, seeds...)
	return c
}

// runTogether runs the crawls at the same time.
func runTogether(t *testing.T, crawls ...*crawler.Crawler) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range crawls {
		wg.Go(func() {
			if err := c.Run(t.Context()); err != nil {
				t.Errorf("a crawl ended with %v", err)
			}
		})
	}
	wg.Wait()
}

// numberedSeeds returns n seeds on a host, for the crawl with that name.
func numberedSeeds(n int, host, name string) (seeds []string) {
	for i := range n {
		seeds = append(seeds, fmt.Sprintf("http://%s/%s/%d", host, name, i))
	}
	return seeds
}

// exchangesByCrawl returns the exchanges with a host, in order, and by crawl those that are pages
// of its seeds.
func exchangesByCrawl(
	log []crawltest.Exchange, host string,
) (all []crawltest.Exchange, own map[string][]crawltest.Exchange) {
	own = map[string][]crawltest.Exchange{}
	for _, x := range log {
		if path, ok := strings.CutPrefix(x.URL, "http://"+host+"/"); ok {
			all = append(all, x)
			if name, _, ok := strings.Cut(path, "/"); ok {
				own[name] = append(own[name], x)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b crawltest.Exchange) int { return a.Start.Compare(b.Start) })
	return all, own
}

// checkGaps fails the test if two exchanges were less than gap apart, or overlap.
func checkGaps(t *testing.T, log []crawltest.Exchange, gap time.Duration) {
	t.Helper()
	for i := 1; i < len(log); i++ {
		if rest := log[i].Start.Sub(log[i-1].End); rest < gap {
			t.Errorf("%s began %v after the end of %s, want at least %v", log[i].URL, rest, log[i-1].URL, gap)
		}
	}
}

func newOneHostWeb(latency time.Duration) *crawltest.Web {
	return crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
		Latency: crawltest.Latency{Base: latency}})
}

// TestCrawlsShareAHost: three crawls of the same pace together visit a host at that pace, without
// extra pauses, and each makes a third of the visits.
func TestCrawlsShareAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, latency = 100, 300 * time.Millisecond
		web, hosts := newOneHostWeb(latency), politeness.NewSharedHosts()
		var crawls []*crawler.Crawler
		var leases atomic.Int64
		for _, name := range []string{"x", "y", "z"} {
			c := newHostSharingCrawl(t, web, hosts, time.Second, numberedSeeds(pages, "a.test", name)...)
			c.Hooks.Acked = func(storage.Ack) { leases.Add(1) }
			crawls = append(crawls, c)
		}
		begin := time.Now()
		runTogether(t, crawls...)
		all, own := exchangesByCrawl(web.Log(), "a.test")
		checkGaps(t, all, time.Second)
		checkPoliteness(t, web, time.Second)
		half := all[len(all)/2].Start
		for name, log := range own {
			n := slices.IndexFunc(log, func(x crawltest.Exchange) bool { return x.Start.After(half) })
			if len(log) != pages || n < pages*45/100 || n > pages*55/100 {
				t.Errorf("%s has made %d visits at half time, and %d in all, want %d", name, n, len(log), pages)
			}
		}
		minTime := time.Duration(len(all)) * (latency + time.Second)
		if took := time.Since(begin); took > minTime*102/100 {
			t.Errorf("took %v for %d visits, possible were %v", took, len(all), minTime)
		}
		t.Logf("%d visits, %d leases, %v of %v", len(all), leases.Load(), time.Since(begin), minTime)
	})
}

// TestTheSlowestSetsThePace: the slowest crawl of a host sets the pace of all while it visits the
// host, and no longer.
func TestTheSlowestSetsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, hosts := newOneHostWeb(100*time.Millisecond), politeness.NewSharedHosts()
		fast := newHostSharingCrawl(t, web, hosts, time.Second, numberedSeeds(100, "a.test", "fast")...)
		slow := newHostSharingCrawl(t, web, hosts, 5*time.Second, numberedSeeds(20, "a.test", "slow")...)
		runTogether(t, fast, slow)
		all, own := exchangesByCrawl(web.Log(), "a.test")
		last := slices.IndexFunc(all, func(x crawltest.Exchange) bool { return x.URL == own["slow"][19].URL })
		checkGaps(t, all[:last+1], 5*time.Second)
		checkGaps(t, all, time.Second)
		among := 0 // visits of the fast crawl between those of the slow one
		for _, x := range all[:last] {
			if strings.Contains(x.URL, "/fast/") {
				among++
			}
		}
		if among < 18 || among > 22 {
			t.Errorf("the fast crawl made %d visits while the slow one made 20", among)
		}
		if rest := all[len(all)-1].Start.Sub(all[last].End); rest > time.Duration(100-among)*1200*time.Millisecond {
			t.Errorf("the fast crawl was slowed for %v by one that is over", rest)
		}
	})
}

// TestCrawlsShareAnAddress: the stricter limits apply to both crawls as long as the stricter crawl
// runs, and the address is kept busy.
func TestCrawlsShareAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, latency, rest = 20, 300 * time.Millisecond, 2 * time.Second
		sites, _ := onePageSites(2*hosts, crawltest.Latency{Base: latency})
		web, shared := crawltest.New(sites...), politeness.NewSharedHosts()
		var crawls []*crawler.Crawler
		for i, cfg := range []politeness.LimiterConfig{{IPConcurrency: 2, IPDelay: rest}, {IPConcurrency: 5}} {
			c := newHostSharingCrawl(t, web, shared, time.Second)
			c.Fetcher, c.Limiter = newFetcher(t, addressedWeb{web, oneAddress}), shared.NewLimiter(cfg)
			for h := range hosts {
				addSeeds(t, c, numberedSeeds(2, fmt.Sprintf("h%d.test", 2*h+i), "x")...)
			}
			crawls = append(crawls, c)
		}
		begin := time.Now()
		runTogether(t, crawls...)
		log := web.Log()
		ended := begin
		for _, x := range log {
			if host := 0; strings.HasPrefix(x.URL, "http://h") {
				if fmt.Sscanf(x.URL, "http://h%d.", &host); host%2 == 0 && x.End.After(ended) {
					ended = x.End
				}
			}
		}
		during := slices.DeleteFunc(slices.Clone(log), func(x crawltest.Exchange) bool {
			return x.Start.Equal(begin) || x.End.After(ended) // one of the two came first
		})
		if maxConcurrent, minGap, _ := measureConcurrency(during); maxConcurrent > 2 || minGap < rest {
			t.Errorf("%d at a time, %v apart", maxConcurrent, minGap)
		}
		if minTime := time.Duration(len(during)) * (latency + rest) / 2; ended.Sub(begin) > minTime*105/100 {
			t.Errorf("%d visits took %v, possible were %v", len(during), ended.Sub(begin), minTime)
		}
		if len(log) != 2*hosts*3 {
			t.Errorf("%d requests, want %d", len(log), 2*hosts*3)
		}
		t.Logf("%d of %d visits in %v", len(during), len(log), ended.Sub(begin))
	})
}
