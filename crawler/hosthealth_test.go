package crawler_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
)

// crawlFailingPages crawls a site of twenty pages below /good and twenty below /bad, which always
// answer status. It returns how long the crawl took, and what it stored about the host.
func crawlFailingPages(t *testing.T, status int, seeds []string) (time.Duration, crawler.HostStats) {
	t.Helper()
	web := crawltest.New(crawltest.Site{Host: "a.test", Latency: crawltest.Latency{Base: 20 * time.Millisecond},
		Fallback: func(r crawltest.PageRequest) crawltest.Response {
			if strings.HasPrefix(r.Path, "/bad/") {
				return crawltest.Status(status)
			}
			return crawltest.HTML("")
		}})
	store := newMemoryStore()
	c := newCrawl(t, web, store, seeds...)
	begin := time.Now()
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkPoliteness(t, web, time.Second)
	if s := c.Stats(); s.Pages < 40 {
		t.Errorf("%d pages answered, want all 40", s.Pages)
	}
	log := web.Log()
	return log[len(log)-1].End.Sub(begin), storedHostStats(t, store, "http://a.test")
}

// TestFailingPagesOfAHealthyHost: twenty pages that always fail, among twenty good ones, take no
// longer than their own attempts.
func TestFailingPagesOfAHealthyHost(t *testing.T) {
	good, bad := numberedSeeds(20, "a.test", "good"), numberedSeeds(20, "a.test", "bad")
	var mixed, pairs []string
	for i := range good {
		mixed = append(mixed, bad[i], good[i])
		if i%2 == 0 {
			pairs = append(pairs, bad[i], bad[i+1], good[i], good[i+1])
		}
	}
	for _, tt := range []struct {
		name   string
		status int
		seeds  []string
		atMost time.Duration
	}{
		{"forty good pages", 200, mixed, 45 * time.Second},
		{"one by one", 403, mixed, 45 * time.Second},
		{"in pairs", 403, pairs, 45 * time.Second},
		{"good pages first", 404, slices.Concat(good, bad), 45 * time.Second},
		// A failing page gets three attempts, so there are 81 requests.
		{"one by one, with attempts", 500, mixed, 95 * time.Second},
		{"in pairs, with attempts", 500, pairs, 95 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took, stats := crawlFailingPages(t, tt.status, tt.seeds)
				t.Logf("took %v for %d requests", took, stats.Requests)
				if took > tt.atMost {
					t.Errorf("took %v for %d requests, want at most %v", took, stats.Requests, tt.atMost)
				}
				failed := 0
				for _, page := range stats.Health.FailedPages {
					if page != (politeness.FailedPage{}) {
						failed++
					}
				}
				if want := tt.status >= 500 || tt.status == 403; (failed == politeness.MaxFailedPages) != want {
					t.Errorf("%d failed pages are named", failed)
				}
			})
		})
	}
}

// TestFailingHost: a host whose pages all fail rests longer with each further page, also if it
// refuses them.
func TestFailingHost(t *testing.T) {
	for _, status := range []int{500, 403} {
		synctest.Test(t, func(t *testing.T) {
			seeds := slices.Concat(numberedSeeds(20, "a.test", "bad"), numberedSeeds(20, "a.test", "bad2"))
			web := crawltest.New(crawltest.Site{Host: "a.test",
				Fallback: crawltest.StaticPage(crawltest.Status(status))})
			store := newMemoryStore()
			c := newCrawl(t, web, store, seeds...)
			time.AfterFunc(time.Hour, c.Halt)
			if err := c.Run(t.Context()); err == nil {
				t.Error("the crawl ended by itself")
			}
			// After robots.txt and three pages, the rest doubles from 5 s on with each further page. A second
			// attempt at a page does not double it.
			log := web.Log()
			if n := len(log); n < 10 || n > 35 {
				t.Errorf("%d requests in an hour to a host that answers %d", n, status)
			}
			if last := log[len(log)-1].Start.Sub(log[len(log)-2].End); last < 10*time.Minute {
				t.Errorf("a rest of %v at last", last)
			}
			if stored := storedHost(t, store, "http://a.test"); stored.ConsecutiveFailures < 8 {
				t.Errorf("step %d of the back-off, want 8 or more", stored.ConsecutiveFailures)
			}
		})
	}
}
