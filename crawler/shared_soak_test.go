package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestCrawlsShareHostsAndAddresses: three crawls with different policies and numbers of workers
// visit the same hosts at a few addresses, while servers fail and send Retry-After, brakes come and
// go, and crawls are paused. Together they keep every limit that each would have to keep alone, and
// no URL is lost.
func TestCrawlsShareHostsAndAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, pages, addresses = 20, 8, 3
		rng := rand.New(rand.NewPCG(*randomSeed, 7))
		web := crawltest.New(failingSites(hosts, rng)...)
		addrOf := func(host string) netip.Addr {
			var i int
			fmt.Sscanf(host, "h%d.test", &i)
			return netip.AddrFrom4([4]byte{93, 184, 216, byte(i % addresses)})
		}
		shared, brakes := politeness.NewSharedHosts(), &politeness.Brakes{}
		var running sync.WaitGroup
		var crawls []*crawler.Crawler
		for i, cfg := range []politeness.LimiterConfig{{IPConcurrency: 2, IPDelay: time.Second}, {IPConcurrency: 3},
			{IPConcurrency: 4, CrawlRequestsPerSecond: 5}} {
			c := newCrawl(t, web, newMemoryStore())
			c.Fetcher, c.Limiter, c.Brakes = newFetcher(t, addressedWeb{web, addrOf}), shared.NewLimiter(cfg), brakes
			c.Frontier = frontier.New(newMemoryStore(),
				frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true})
			c.Policy.Delay = time.Duration(1+i) * time.Second
			c.Settings = crawler.Settings{ProductToken: "testbot", Workers: []int{1, 8, 64}[i],
				MaxAttempts: 50, GracePeriod: time.Minute}
			for h := range hosts {
				addSeeds(t, c, numberedSeeds(pages, fmt.Sprintf("h%d.test", h), fmt.Sprint(i))...)
			}
			crawls = append(crawls, c)
			pauses := rand.New(rand.NewPCG(*randomSeed, uint64(i)))
			running.Go(func() { runWithPauses(t, c, pauses) })
		}
		stopped := brakeAtRandom(t, brakes, hosts, rng)
		running.Wait()
		for i, c := range crawls {
			if s := c.Stats(); s.Pages < hosts*pages || s.GivenUp > 0 {
				t.Errorf("crawl %d: %+v", i, s)
			}
		}
		checkSharedLog(t, web.Log(), addrOf, stopped)
		t.Logf("%d requests", len(web.Log()))
	})
}

// failingSites returns sites some of whose answers fail, or have a Retry-After.
func failingSites(n int, rng *rand.Rand) (sites []crawltest.Site) {
	for i := range n {
		fails := rng.IntN(10)
		sites = append(sites, crawltest.Site{Host: fmt.Sprintf("h%d.test", i),
			Latency: crawltest.Latency{Base: 50 * time.Millisecond, Jitter: time.Second, Seed: rng.Uint64()},
			Fallback: func(r crawltest.PageRequest) crawltest.Response {
				switch (len(r.Path) + int(r.Path[len(r.Path)-1]) + r.NthForURL) % 10 * r.NthForURL {
				case fails:
					busy := crawltest.Status(503)
					busy.Header.Set("Retry-After", "90")
					return busy
				case fails + 1:
					return crawltest.Response{Fault: crawltest.Reset}
				}
				return crawltest.HTML("a page")
			}})
	}
	return sites
}

// runWithPauses runs a crawl to its end, and pauses it now and then.
func runWithPauses(t *testing.T, c *crawler.Crawler, rng *rand.Rand) {
	paused := errors.New("paused")
	for range 5 {
		ctx, pause := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Duration(rng.IntN(200))*time.Second, func() { pause(paused) })
		err := c.Run(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, paused) {
			t.Error(err)
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Second)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// A brakePeriod is a time in which a brake stopped a host.
type brakePeriod struct {
	host     string
	from, to time.Time
}

// brakeAtRandom stops one host after the other for a while.
func brakeAtRandom(t *testing.T, brakes *politeness.Brakes, hosts int, rng *rand.Rand) (stops []brakePeriod) {
	for range 30 {
		s := brakePeriod{host: fmt.Sprintf("h%d.test", rng.IntN(hosts)), from: time.Now()}
		if err := brakes.Set(politeness.Brake{Host: s.host, Stop: true}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(1+rng.IntN(30)) * time.Second)
		s.to = time.Now()
		brakes.Remove(s.host)
		stops = append(stops, s)
	}
	return stops
}

// checkSharedLog checks the log against the rests of hosts and addresses, and the brakes.
func checkSharedLog(t *testing.T, log []crawltest.Exchange, addrOf func(string) netip.Addr, stops []brakePeriod) {
	t.Helper()
	byHost, byAddress := map[string][]crawltest.Exchange{}, map[netip.Addr][]crawltest.Exchange{}
	slices.SortStableFunc(log, func(a, b crawltest.Exchange) int { return a.Start.Compare(b.Start) })
	for _, x := range log {
		host := strings.Split(x.URL, "/")[2]
		byHost[host] = append(byHost[host], x)
		byAddress[addrOf(host)] = append(byAddress[addrOf(host)], x)
		for _, s := range stops {
			if s.host == host && x.Start.After(s.from) && x.Start.Before(s.to) {
				t.Errorf("%s was visited %v after its host was stopped", x.URL, x.Start.Sub(s.from))
			}
		}
	}
	for _, visits := range byHost {
		checkGaps(t, visits, time.Second)
		for i, x := range visits[1:] {
			if retryAfter := visits[i].RetryAfter; x.Start.Sub(visits[i].End) < retryAfter {
				t.Errorf("%s came %v after a Retry-After of %v", x.URL, x.Start.Sub(visits[i].End), retryAfter)
			}
		}
	}
	for addr, visits := range byAddress {
		if maxConcurrent, _, _ := measureConcurrency(visits); maxConcurrent > 4 {
			t.Errorf("%v: %d visits at a time", addr, maxConcurrent)
		}
	}
}
