package crawler_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A rateLimit refuses requests with 429 as a proxy does.
type rateLimit struct {
	limit        int           // requests in any window
	window       time.Duration // length of the window
	retryAfter   string
	countRefused bool // refused requests use the limit up, too, as in haproxy's http_req_rate

	mu       sync.Mutex // guards requests
	requests []time.Time
}

// answer answers a page, or refuses it.
func (l *rateLimit) answer(crawltest.PageRequest) crawltest.Response {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.requests = slices.DeleteFunc(l.requests, func(t time.Time) bool { return now.Sub(t) >= l.window })
	refused := len(l.requests) >= l.limit
	if !refused || l.countRefused {
		l.requests = append(l.requests, now)
	}
	if !refused {
		return crawltest.HTML("")
	}
	res := crawltest.Status(http.StatusTooManyRequests)
	if l.retryAfter != "" {
		res.Header.Set("Retry-After", l.retryAfter)
	}
	return res
}

// TestLearnedPace crawls sites with a rate limit, and counts the refusals.
func TestLearnedPace(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limit    *rateLimit
		pages    int
		required time.Duration // the shortest pace that the site accepts
	}{
		{"haproxy", &rateLimit{limit: 20, window: time.Minute, retryAfter: "5", countRefused: true}, 600,
			3 * time.Second},
		{"sliding window", &rateLimit{limit: 20, window: time.Minute, retryAfter: "5"}, 600, 3 * time.Second},
		{"exact Retry-After", &rateLimit{limit: 20, window: time.Minute, retryAfter: "40"}, 600, 3 * time.Second},
		{"no Retry-After", &rateLimit{limit: 30, window: time.Minute}, 600, 2 * time.Second},
		{"strict", &rateLimit{limit: 6, window: time.Minute, retryAfter: "10"}, 300, 10 * time.Second},
		{"one at a time", &rateLimit{limit: 1, window: 4 * time.Second}, 300, 4 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: tt.limit.answer,
					Latency: crawltest.Latency{Base: 20 * time.Millisecond}})
				store := newMemoryStore()
				c := newCrawl(t, web, store, numberedSeeds(tt.pages, "a.test", "x")...)
				begin := time.Now()
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				early, late, lateVisits := 0, 0, 0
				for _, x := range web.Log() {
					refused := x.Status == http.StatusTooManyRequests
					switch {
					case x.Start.Sub(begin) > 5*time.Minute:
						lateVisits++
						if refused {
							late++
						}
					case refused:
						early++
					}
				}
				took := time.Since(begin)
				learned := crawler.DecodeHostStats(storedHost(t, store, "http://a.test").EncodedStats).Health.LearnedPace.Delay
				t.Logf("%d visits in %v: %d of the first refused, %d of the later %d; learned %v", len(web.Log()), took,
					early, late, lateVisits, learned)
				if late*20 > lateVisits {
					t.Errorf("%d of %d visits after 5 minutes were refused", late, lateVisits)
				}
				if best := time.Duration(tt.pages) * tt.required; took > best*8/5 {
					t.Errorf("took %v, with the best pace %v", took, best)
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}
