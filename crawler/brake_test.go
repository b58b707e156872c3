package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
)

// newBrakedCrawl returns a crawl like newDirectCrawl's with Brakes, which also waits for hosts that
// a brake stops.
func newBrakedCrawl(t *testing.T, web *crawltest.Web, seeds ...string) *crawler.Crawler {
	t.Helper()
	store := newMemoryStore()
	c := newDirectCrawl(t, web, store)
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true})
	c.Brakes = &politeness.Brakes{}
	c.Policy.AdaptiveFactor = -1
	addSeeds(t, c, seeds...)
	return c
}

// setBrake sets a brake.
func setBrake(t *testing.T, c *crawler.Crawler, b politeness.Brake) {
	t.Helper()
	if err := c.Brakes.Set(b); err != nil {
		t.Error(err)
	}
}

// countStarted counts the exchanges with hosts of a domain that began from one time until before
// another, and returns when the first began.
func countStarted(log []crawltest.Exchange, domain string, from, to time.Time) (n int, first time.Time) {
	for _, x := range log {
		host := strings.Split(x.URL, "/")[2]
		if (host == domain || strings.HasSuffix(host, "."+domain)) && !x.Start.Before(from) && x.Start.Before(to) {
			if n++; n == 1 {
				first = x.Start
			}
		}
	}
	return n, first
}

// TestABrakeStopsADomainAtOnce: requests in flight are cancelled, no new one is made, other domains
// are visited as before, and no failure is counted. When the brake is lifted or expires, the crawl
// continues where it stopped.
func TestABrakeStopsADomainAtOnce(t *testing.T) {
	for _, lifted := range []bool{true, false} {
		t.Run(fmt.Sprintf("lifted: %t", lifted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const pages = 10
				var sites []crawltest.Site
				var seeds []string
				hosts := []string{"a.test", "www.a.test", "b.test"}
				for _, host := range hosts {
					sites = append(sites, crawltest.Site{Host: host, Fallback: pageWithLinks(),
						Latency: crawltest.Latency{Base: 10 * time.Second}})
					seeds = append(seeds, numberedSeeds(pages, host, "x")...)
				}
				web, begin := crawltest.New(sites...), time.Now()
				c := newBrakedCrawl(t, web, seeds...)
				stop, end := begin.Add(25*time.Second), begin.Add(time.Hour)
				time.AfterFunc(25*time.Second, func() {
					b := politeness.Brake{Host: "a.test", IncludesSubdomains: true, Stop: true}
					if !lifted {
						b.Until = end
					}
					if n := len(c.ListActiveVisits()); n != len(hosts) {
						t.Errorf("%d visits are in flight", n)
					}
					setBrake(t, c, b)
					synctest.Wait()
					for _, h := range c.ListActiveVisits() {
						if h.Host != "b.test" || !h.LeasedAt.Equal(begin.Add(22*time.Second)) ||
							!h.RequestedAt.Equal(h.LeasedAt) || !strings.HasPrefix(h.URL.String(), "http://b.test/x/") {
							t.Errorf("in flight: %+v", h)
						}
					}
				})
				if lifted {
					time.AfterFunc(time.Hour, func() { c.Brakes.Remove("a.test") })
				}
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				log := web.Log()
				if n, _ := countStarted(log, "a.test", stop, end); n > 0 {
					t.Errorf("%d requests were made while the brake was on", n)
				}
				if _, first := countStarted(log, "a.test", end, end.Add(time.Hour)); !first.Equal(end) {
					t.Errorf("the first request came %v after the brake", first.Sub(end))
				}
				if n, _ := countStarted(log, "b.test", stop, end); n != pages-2 {
					t.Errorf("%d requests were made to a neighbour", n)
				}
				_, times := countRequests(log)
				if len(times) != 3*(pages+1) || len(log) != 3*(pages+1)+2 {
					t.Errorf("%d requests to %d URLs", len(log), len(times))
				}
				if s := c.Stats(); s.Pages != 3*pages || s.Errors != 0 || s.Retries != 0 || s.GivenUp != 0 {
					t.Errorf("%+v", s)
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}

// TestABrakeThatWasOn: a brake set before the crawl keeps every request from a host: for
// robots.txt, for redirect targets of other hosts, and for sitemaps. A foreground crawl does not
// wait.
func TestABrakeThatWasOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: pageWithLinks()},
			crawltest.Site{Host: "b.test",
				Fallback: crawltest.StaticPage(crawltest.Redirect(301, "http://a.test/target")),
				Robots:   robotsText("User-agent: *\nSitemap: http://a.test/map.xml\n", 0, nil)},
			crawltest.Site{Host: "c.test", Fallback: pageWithLinks(),
				Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(302,
					"http://a.test/robots.txt")})})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/", "http://b.test/", "http://c.test/")
		c.Brakes = &politeness.Brakes{}
		setBrake(t, c, politeness.Brake{Host: "a.test", Stop: true})
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if err := c.Run(ctx); !errors.Is(err, frontier.ErrOnlySuspendedLeft) &&
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		if n := len(hostLog(web.Log(), "a.test")); n > 0 {
			t.Errorf("%d requests to a host that was stopped", n)
		}
		c.Brakes.Remove("a.test")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		for _, u := range []string{"http://a.test/", "http://a.test/target",
			"http://a.test/map.xml", "http://c.test/"} {
			if times[u] != 1 {
				t.Errorf("%s was visited %d times", u, times[u])
			}
		}
	})
}

// TestABrakeOfAProcessThatDied: if a process dies after it put off an origin because of a brake,
// lifting the brake does not release the origin, but the origin is checked again soon.
func TestABrakeOfAProcessThatDied(t *testing.T) {
	for name, b := range map[string]politeness.Brake{
		"stop":  {Host: "a.test", Stop: true},
		"until": {Host: "a.test", Stop: true, Until: time.Now().AddDate(100, 0, 0)},
		"slow":  {Host: "a.test", Delay: 300 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, store := newOneHostWeb(0), newMemoryStore()
				deadProcess := newDirectCrawl(t, web, store, numberedSeeds(2, "a.test", "x")...)
				deadProcess.Brakes = &politeness.Brakes{}
				if err := deadProcess.Prepare(); err != nil {
					t.Fatal(err)
				}
				for i := range 3 { // robots.txt, a page, and one that is put off
					if i == 2 {
						setBrake(t, deadProcess, b)
					}
					if err := deadProcess.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				other := newDirectCrawl(t, web, store)
				other.Frontier = frontier.New(store, frontier.Config{WaitForRevisitsAndSuspensions: true})
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				if err := other.Run(ctx); err != nil || len(web.Log()) != 3 {
					t.Errorf("%d requests in an hour, want 3 (%v)", len(web.Log()), err)
				}
			})
		})
	}
}

// TestABrakeSlows: the delay of a brake counts from the end of the last visit, so it extends a rest
// that has begun; it allows one visit at a time, and ends when the brake is lifted.
func TestABrakeSlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, begin := newOneHostWeb(100*time.Millisecond), time.Now()
		c := newBrakedCrawl(t, web, numberedSeeds(200, "a.test", "x")...)
		c.Policy.Concurrency = 3
		on, off := begin.Add(20*time.Second+500*time.Millisecond), begin.Add(20*time.Minute)
		time.AfterFunc(on.Sub(begin), func() { setBrake(t, c, politeness.Brake{Host: "a.test", Delay: time.Minute}) })
		time.AfterFunc(off.Sub(begin), func() { c.Brakes.Remove("a.test") })
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var last time.Time // end of a visit that began before off
		n := 0
		for _, x := range web.Log() {
			if !x.Start.Before(on) && x.Start.Before(off) {
				if n++; x.Start.Sub(last) < time.Minute {
					t.Errorf("a visit began %v after the end of the last one", x.Start.Sub(last))
				}
			}
			if x.Start.Before(off) {
				last = x.End
			}
		}
		if n < 18 || n > 20 {
			t.Errorf("%d visits in the twenty minutes that the brake was on", n)
		}
		if _, first := countStarted(web.Log(), "a.test", off, off.Add(time.Hour)); !first.Equal(off) &&
			!first.Equal(last.Add(time.Second)) {
			t.Errorf("the first visit came %v after the brake was lifted", first.Sub(off))
		}
	})
}

// TestABrakeSlowsAfterARestart: the delay of a brake counts from a visit of an earlier process.
func TestABrakeSlowsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, store := newOneHostWeb(0), newMemoryStore()
		c := newDirectCrawl(t, web, store, numberedSeeds(3, "a.test", "x")...)
		c.Settings.MaxPages = 1
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrPages) {
			t.Fatal(err)
		}
		c = newDirectCrawl(t, web, store)
		c.Brakes = &politeness.Brakes{}
		setBrake(t, c, politeness.Brake{Host: "a.test", Delay: 10 * time.Minute})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		checkGaps(t, log[1:], 10*time.Minute)
		if len(log) != 4 {
			t.Errorf("%d requests", len(log))
		}
	})
}

// TestABrakeBeforeTheConnection: a brake that is set when a request has its ticket and is about to
// be sent prevents the request.
func TestABrakeBeforeTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, begin := newOneHostWeb(time.Second), time.Now()
		c := newBrakedCrawl(t, web, numberedSeeds(3, "a.test", "x")...)
		var visits atomic.Int64
		c.Hooks.Visited = func(*crawler.Visit) { visits.Add(1) }
		var isSet bool
		c.Fetcher = newFetcher(t, addressedWeb{web, func(string) netip.Addr {
			if !isSet && time.Since(begin) > time.Minute {
				t.Error("no request was to be sent so late")
			}
			if n := len(web.Log()); n == 2 && !isSet { // robots.txt, and a page
				isSet = true
				if err := c.Brakes.Set(politeness.Brake{Host: "a.test", Stop: true}); err != nil {
					t.Error(err)
				}
				time.AfterFunc(time.Hour, func() { c.Brakes.Remove("a.test") })
			}
			return oneAddress("")
		}})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if len(log) != 4 || visits.Load() != 4 || log[2].Start.Sub(begin) < time.Hour {
			t.Errorf("%d requests, %d visits, the third after %v", len(log), visits.Load(), log[2].Start.Sub(begin))
		}
		if s := c.Stats(); s.Pages != 3 || s.Errors != 0 || s.Retries != 0 {
			t.Errorf("%+v", s)
		}
	})
}
