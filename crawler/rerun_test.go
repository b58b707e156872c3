package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestRunAgain: a crawl is stopped ten times, during visits and while it waits for an address, and
// each time continues at the host's pace.
func TestRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts, pages = 4, 30
		sites, _ := onePageSites(hosts, crawltest.Latency{Base: 300 * time.Millisecond})
		web := crawltest.New(sites...)
		var seeds []string
		for i := range hosts {
			seeds = append(seeds, numberedSeeds(pages, fmt.Sprintf("h%d.test", i), "x")...)
		}
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, newMemoryStore(),
			politeness.LimiterConfig{IPConcurrency: 1, IPDelay: time.Second}, seeds...)
		paused := errors.New("paused")
		for i := range 10 {
			ctx, pause := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Duration(5000+i*70)*time.Millisecond, func() { pause(paused) })
			before := c.Stats().Pages
			if err := c.Run(ctx); !errors.Is(err, paused) {
				t.Fatalf("run %d ended with %v", i, err)
			}
			if c.Stats().Pages < before {
				t.Errorf("run %d counts from zero", i)
			}
			if n := len(c.ListActiveVisits()); n > 0 {
				t.Errorf("%d visits are in flight after run %d", n, i)
			}
			time.Sleep(time.Duration(i%3) * time.Minute)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		urls, times := countRequests(web.Log())
		if len(urls) != len(times) || len(times) != hosts*(pages+1) {
			t.Errorf("%d requests to %d URLs, want %d", len(urls), len(times), hosts*(pages+1))
		}
		if got := c.Stats(); got.Pages != hosts*pages || got.RobotsFetches != hosts || got.Errors != 0 {
			t.Errorf("%+v", got)
		}
		if maxConcurrent, minGap, _ := measureConcurrency(web.Log()); maxConcurrent > 1 || minGap < time.Second {
			t.Errorf("%d at a time, %v apart", maxConcurrent, minGap)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestAPausedCrawlSlowsNobody: while one crawl is paused, another has the host to itself.
func TestAPausedCrawlSlowsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, hosts := newOneHostWeb(100*time.Millisecond), politeness.NewSharedHosts()
		fast := newHostSharingCrawl(t, web, hosts, time.Second, numberedSeeds(60, "a.test", "fast")...)
		slow := newHostSharingCrawl(t, web, hosts, time.Minute, numberedSeeds(10, "a.test", "slow")...)
		ctx, pause := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Minute, pause)
		paused := make(chan time.Time, 1)
		go func() {
			_ = slow.Run(ctx)
			paused <- time.Now()
		}()
		runTogether(t, fast)
		ended := <-paused
		all, _ := exchangesByCrawl(web.Log(), "a.test")
		first := slices.IndexFunc(all, func(x crawltest.Exchange) bool { return !x.Start.Before(ended) })
		if first < 9 || len(all)-first < 40 {
			t.Fatalf("%d visits before the pause, %d after it", first, len(all)-first)
		}
		checkGaps(t, all[2:first], time.Minute) // each crawl has fetched robots.txt before
		checkGaps(t, all[first:], time.Second)
		if took := all[len(all)-1].End.Sub(ended); took > time.Minute+time.Duration(
			len(all)-first)*1200*time.Millisecond {
			t.Errorf("%d visits took %v after the slow one was paused", len(all)-first, took)
		}
	})
}

// TestIdle: a crawl with an empty frontier that waits visits URLs that are queued later.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOneHostWeb(time.Second)
		c := newCrawl(t, web, newMemoryStore())
		c.Frontier = frontier.New(newMemoryStore(),
			frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true, WaitWhenEmpty: true})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		for i := range 3 {
			time.Sleep(time.Hour)
			synctest.Wait()
			addSeeds(t, c, numberedSeeds(i+1, "a.test", "x")...)
		}
		time.Sleep(time.Minute)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) || c.Stats().Pages != 3 {
			t.Errorf("%d pages, ended with %v", c.Stats().Pages, err)
		}
	})
}
