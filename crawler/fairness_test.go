package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A timedRequest is one request: when its host was due, and when it began.
type timedRequest struct {
	host       string
	due, start time.Time
}

// timedRequests returns the requests of a log of hosts that rest for as long as an answer took, but
// at least a second. All hosts are due at first.
func timedRequests(log []crawltest.Exchange, begin time.Time) (ts []timedRequest) {
	due := map[string]time.Time{}
	for _, x := range log {
		host := strings.Split(x.URL, "/")[2]
		t := timedRequest{host: host, due: begin, start: x.Start}
		if d, ok := due[host]; ok {
			t.due = d
		}
		ts = append(ts, t)
		due[host] = x.End.Add(max(time.Second, x.End.Sub(x.Start)))
	}
	return ts
}

// hostsAhead returns, for each request, how many hosts had been due at least as long when its host
// became due, and were still waiting.
func hostsAhead(ts []timedRequest) []int {
	var dues, starts []time.Time
	for _, t := range ts {
		dues, starts = append(dues, t.due), append(starts, t.start)
	}
	slices.SortFunc(dues, time.Time.Compare)
	slices.SortFunc(starts, time.Time.Compare)
	counts := make([]int, len(ts))
	for i, t := range ts {
		due, _ := slices.BinarySearchFunc(dues, t.due.Add(1), time.Time.Compare) // due then or before
		begun, _ := slices.BinarySearchFunc(starts, t.due, time.Time.Compare)    // begun before
		counts[i] = due - begun - 1                                              // without itself
	}
	return counts
}

// TestFairness: an origin with a hundred thousand or a million URLs is crawled beside a thousand
// origins with ten, by far fewer workers than could be kept busy. Every visit begins within the
// bound that the frontier's documentation states, and every small origin ends within the time that
// follows from it.
func TestFairness(t *testing.T) {
	const small, each, workers, maxLatency = 1000, 10, 16, 500 * time.Millisecond
	big := 100_000
	if *fullSize {
		big = 1_000_000
	}
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(*randomSeed, 2))
		page := crawltest.StaticPage(crawltest.HTML("a page"))
		sites := []crawltest.Site{{Host: "big.test", Fallback: page, Latency: crawltest.Latency{Base: maxLatency}}}
		patterns := make([]string, small)
		for i := range patterns {
			host := fmt.Sprintf("s%d.test", i)
			patterns[i] = "http://" + host + "/%d"
			sites = append(sites, crawltest.Site{Host: host, Fallback: page,
				Latency: crawltest.Latency{Base: maxLatency * 8 / 10, Jitter: maxLatency * 2 / 10, Seed: rng.Uint64()}})
		}
		web := crawltest.New(sites...)
		c := newDirectCrawl(t, web, newMemoryStore())
		c.Settings.Workers = workers
		queueURLs(t, c, big, "http://big.test/%d")
		queueURLs(t, c, small*each, patterns...)
		begin := time.Now()
		ended := crawlUntil(t, c, func(v *crawler.Visit) bool {
			return v.URL().Origin().Host() != "big.test" && !v.Clearance.IsForRobots()
		}, small*each)
		checkPoliteness(t, web, time.Second)

		bound := func(ahead int) time.Duration { return time.Duration(ahead/workers+1) * maxLatency }
		var maxWait time.Duration // longest wait
		var maxBoundUsed float64  // largest part of its bound that a wait used
		ts := timedRequests(web.Log(), begin)
		for i, n := range hostsAhead(ts) {
			wait := ts[i].start.Sub(ts[i].due)
			maxWait, maxBoundUsed = max(maxWait, wait), max(maxBoundUsed, float64(wait)/float64(bound(n)))
			if wait < 0 || wait > bound(n) {
				t.Fatalf("%s waited %v with %d hosts ahead of it, want at most %v", ts[i].host, wait, n, bound(n))
			}
		}
		if maxWait < bound(small)/2 {
			t.Errorf("no host waited for longer than %v: this shows nothing", maxWait)
		}
		if all := (each + 1) * (bound(small) + maxLatency + time.Second); ended > all {
			t.Errorf("the small origins ended after %v, want at most %v", ended, all)
		}
		t.Logf("%d requests; the small origins ended after %v; the longest wait for a worker was %v, and the "+
			"fullest bound %.3f", len(ts), ended, maxWait, maxBoundUsed)
	})
}

// crawlUntil crawls until n counted visits have been made, and returns how long it took.
func crawlUntil(t *testing.T, c *crawler.Crawler, isCounted func(*crawler.Visit) bool, n int) (took time.Duration) {
	t.Helper()
	enough := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	begin, seen := time.Now(), make(chan struct{}, n)
	c.Hooks.Visited = func(v *crawler.Visit) {
		if !isCounted(v) || len(seen) == n {
			return
		}
		if seen <- struct{}{}; len(seen) == n {
			took = time.Since(begin)
			stop(enough)
		}
	}
	if err := c.Run(ctx); !errors.Is(err, enough) && err != nil || len(seen) < n {
		t.Fatalf("%d visits of %d: %v", len(seen), n, err)
	}
	return took
}

// TestHostsThatNeverAnswer: ten hosts that never answer, each holding a worker until the timeout,
// do not slow the other hosts, whether these wait for their rests or, with few workers, for a
// worker.
func TestHostsThatNeverAnswer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers int
		latency time.Duration
		pages   int // per host
	}{
		{"delays rule", 64, 100 * time.Millisecond, 50},
		{"workers rule", 32, 5 * time.Second, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if raceEnabled && tt.workers < 64 {
				t.Skip("40,000 visits take too long")
			}
			var took [2]time.Duration
			for i, hanging := range []int{0, 10} {
				synctest.Test(t, func(t *testing.T) {
					took[i] = crawlBesideHanging(t, hanging, tt.workers, tt.pages, tt.latency)
				})
			}
			slower := float64(took[1])/float64(took[0]) - 1
			t.Logf("%d pages: %v, and beside ten hosts that never answer %v: %.2f %% slower", 200*tt.pages,
				took[0], took[1], 100*slower)
			if slower > 0.05 {
				t.Errorf("%.1f %% slower, want at most 5 %%", 100*slower)
			}
		})
	}
}

// crawlBesideHanging crawls 200 hosts beside others that never answer, and returns how long the 200
// took.
func crawlBesideHanging(t *testing.T, hanging, workers, pages int, latency time.Duration) time.Duration {
	t.Helper()
	const hosts = 200
	var sites []crawltest.Site
	var good, bad []string
	for i := range hosts {
		host := fmt.Sprintf("h%d.test", i)
		good = append(good, "http://"+host+"/%d")
		sites = append(sites, crawltest.Site{Host: host, Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Latency: crawltest.Latency{Base: latency}})
	}
	for i := range hanging {
		host := fmt.Sprintf("never%d.test", i)
		bad = append(bad, "http://"+host+"/%d")
		sites = append(sites, crawltest.Site{Host: host,
			Fallback: crawltest.StaticPage(crawltest.Response{Fault: crawltest.Hang}),
			Robots:   robotsText("", 0, nil)})
	}
	web := crawltest.New(sites...)
	c := newDirectCrawl(t, web, newMemoryStore())
	c.Settings.Workers = workers
	if hanging > 0 {
		queueURLs(t, c, 100*hanging, bad...)
	}
	queueURLs(t, c, hosts*pages, good...)
	took := crawlUntil(t, c, func(v *crawler.Visit) bool { return v.OK() && !v.Clearance.IsForRobots() }, hosts*pages)
	checkPoliteness(t, web, time.Second)
	return took
}
