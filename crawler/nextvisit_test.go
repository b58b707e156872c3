package crawler_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
)

// A connectionLog is a Fetcher that records what the crawl says of next visits.
type connectionLog struct {
	crawler.Fetcher
	mu     sync.Mutex                 // guards rests and closed
	rests  map[string][]time.Duration // by host, from the announcement to the visit; -1: there is none
	closed []string                   // the hosts to which CloseConnections wants connections closed
	hosts  []string                   // the hosts that CloseConnections is asked about
}

func (l *connectionLog) SetNextVisit(host string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := time.Duration(-1)
	if !due.IsZero() {
		rest = time.Until(due)
	}
	l.rests[host] = append(l.rests[host], rest)
}

func (l *connectionLog) CloseConnections(wants func(string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, host := range l.hosts {
		if wants(host) {
			l.closed = append(l.closed, host)
		}
	}
}

// TestNextVisitsAreAnnounced: after each lease the Fetcher learns when the next visit to the host is due:
// after its rest, after a hold, or never.
func TestNextVisitsAreAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "pages.test", Fallback: crawltest.StaticPage(crawltest.HTML("page"))},
			crawltest.Site{Host: "closed.test", Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
				Response:     crawltest.Text("User-agent: *\nDisallow: /\n"),
				IsDisallowed: func(string) bool { return true }})})
		c := newCrawl(t, web, newMemoryStore(), "http://pages.test/1", "http://pages.test/2", "http://closed.test/1")
		c.Policy.Delay, c.Policy.AdaptiveFactor = 7*time.Second, -1
		c.Settings.NoSitemaps = true
		log := &connectionLog{Fetcher: c.Fetcher, rests: map[string][]time.Duration{}}
		c.Fetcher = crawler.MultiSchemeFetcher{"http": log}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		rest := c.Policy.Delay
		for host, want := range map[string][]time.Duration{
			"pages.test":  {rest, rest, -1}, // after robots.txt and each page
			"closed.test": {rest, -1},       // after robots.txt, and after the page that it disallows
		} {
			if got := log.rests[host]; !slices.Equal(got, want) {
				t.Errorf("%s: the next visits are after %v, want %v", host, got, want)
			}
		}
	})
}

// TestABrakeClosesConnections: a brake that stops a host closes the connections to it at once.
func TestABrakeClosesConnections(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("page"))})
	c := newCrawl(t, web, newMemoryStore(), "http://a.test/1")
	c.Policy.Delay, c.Policy.AdaptiveFactor = time.Millisecond, -1
	c.Brakes = &politeness.Brakes{}
	log := &connectionLog{Fetcher: c.Fetcher, rests: map[string][]time.Duration{}, hosts: []string{"b.test", "c.test"}}
	c.Fetcher = log
	c.Hooks.Visited = func(*crawler.Visit) {
		if err := c.Brakes.Set(politeness.Brake{Host: "b.test", Stop: true}); err != nil {
			t.Error(err)
		}
		if err := c.Brakes.Set(politeness.Brake{Host: "c.test", Delay: time.Second}); err != nil {
			t.Error(err)
		}
		c.Hooks.Visited = nil
	}
	c.Settings.Workers = 1
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(log.closed, "b.test") || slices.Contains(log.closed, "c.test") {
		t.Errorf("the connections to %v were closed, want those to b.test", log.closed)
	}
}
