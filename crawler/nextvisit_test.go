package crawler_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
)

// A connectionLog is a Fetcher that records what the crawl says of next visits.
type connectionLog struct {
	crawler.Fetcher
	mu     sync.Mutex                 // guards rests and closed
	rests  map[string][]time.Duration // by host, from the announcement to the visit; -1: there is none
	closed []string                   // the hosts to which CloseConnections wants connections closed
	hosts  []string                   // the hosts that CloseConnections is asked about
	asked  func()                     // CloseConnections calls it at its end
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
	l.asked()
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
		log := &connectionLog{Fetcher: c.Fetcher, rests: map[string][]time.Duration{}, asked: func() {}}
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

// TestABrakeClosesConnections: a brake that stops a host closes the connections to it, while the brakes can be
// changed.
func TestABrakeClosesConnections(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("page"))})
	c := newCrawl(t, web, newMemoryStore(), "http://a.test/1")
	c.Policy.Delay, c.Policy.AdaptiveFactor = time.Millisecond, -1
	c.Brakes = &politeness.Brakes{}
	asked := make(chan struct{}, 10)
	log := &connectionLog{Fetcher: c.Fetcher, rests: map[string][]time.Duration{}, hosts: []string{"b.test", "c.test"},
		asked: func() {
			c.Brakes.NotifyOnChange(func() {})() // takes the lock of the brakes
			asked <- struct{}{}
		}}
	c.Fetcher = log
	c.Hooks.Visited = func(*crawler.Visit) {
		c.Hooks.Visited = nil
		for _, b := range []politeness.Brake{{Host: "c.test", Delay: time.Second}, {Host: "b.test", Stop: true}} {
			if err := c.Brakes.Set(b); err != nil {
				t.Error(err)
			}
			<-asked
		}
	}
	c.Settings.Workers = 1
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(log.closed, []string{"b.test"}) {
		t.Errorf("the connections to %v were closed, want those to b.test", log.closed)
	}
}

// TestBrakedHostHasNoNextVisit: if a brake stops a host during a visit, no next visit is announced.
func TestBrakedHostHasNoNextVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("page"))})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/1", "http://a.test/2")
		c.Policy.Delay, c.Policy.AdaptiveFactor = time.Second, -1
		c.Settings.NoSitemaps = true
		c.Brakes = &politeness.Brakes{}
		log := &connectionLog{Fetcher: c.Fetcher, rests: map[string][]time.Duration{}, asked: func() {}}
		c.Fetcher = log
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.Kind.IsPage() {
				c.Hooks.Visited = nil
				until := time.Now().Add(time.Minute)
				if err := c.Brakes.Set(politeness.Brake{Host: "a.test", Stop: true, Until: until}); err != nil {
					t.Error(err)
				}
			}
		}
		c.Settings.Workers = 1
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Fatal(err)
		}
		// The first announcement follows robots.txt, the second the page.
		if rests := log.rests["a.test"]; len(rests) < 2 || rests[1] != -1 {
			t.Errorf("the next visits are after %v, want none after the second", rests)
		}
	})
}
