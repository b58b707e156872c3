package crawler_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// An unreachableCoordinator cannot be reached between two times.
type unreachableCoordinator struct{ from, to time.Time }

func (a unreachableCoordinator) CheckVisit(now time.Time) decorum.Decision {
	if now.Before(a.from) || !now.Before(a.to) {
		return decorum.Decision{}
	}
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses, Detail: "what others say",
		Until: now.Add(time.Second)}
}

func (unreachableCoordinator) AcquireCrawlPageBudget() (d decorum.Decision) { return d }
func (unreachableCoordinator) ReleaseCrawlPageBudget()                      {}
func (unreachableCoordinator) AddBodyBytes(int64)                           {}

// TestUnreachableCoordinator: while the Coordinator is unavailable, a crawl begins no visit,
// finishes those in flight, and charges no host; then it continues.
func TestUnreachableCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 10
		sites := []crawltest.Site{}
		for _, host := range []string{"a.test", "b.test"} {
			sites = append(sites, crawltest.Site{Host: host, Fallback: pageWithLinks(),
				Latency: crawltest.Latency{Base: 3 * time.Second}})
		}
		web, begin := crawltest.New(sites...), time.Now()
		c := newBrakedCrawl(t, web, append(numberedSeeds(pages, "a.test", "x"),
			numberedSeeds(pages, "b.test", "x")...)...)
		unreachable := unreachableCoordinator{begin.Add(20 * time.Second), begin.Add(time.Hour)}
		c.Coordinator = unreachable
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		visits := map[string]int{}
		for _, x := range web.Log() {
			if !x.Start.Before(unreachable.from) && x.Start.Before(unreachable.to) {
				t.Errorf("%s was requested %v after the beginning", x.URL, x.Start.Sub(begin))
			}
			if x.Incomplete {
				t.Errorf("%s was broken off", x.URL)
			}
			if strings.Contains(x.URL, "/x/") {
				visits[x.URL]++
			}
		}
		if len(visits) != 2*pages {
			t.Errorf("%d pages were visited, want %d", len(visits), 2*pages)
		}
		for u, n := range visits {
			if n != 1 {
				t.Errorf("%s was visited %d times", u, n)
			}
		}
	})
}
