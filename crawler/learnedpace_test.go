package crawler_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
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
				learned := storedHostStats(t, store, "http://a.test").Health.LearnedPace.Delay
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

// TestLearnedPaceIsKept: after the first 429, the pace that a crawl has learned holds for the crawl
// itself after a kill, and for a later crawl of the host in the same process, in the next process,
// and in one that resumes after a kill.
func TestLearnedPaceIsKept(t *testing.T) {
	for _, next := range []string{"itself, killed", "same process", "stopped", "killed"} {
		t.Run(next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := &rateLimit{limit: 20, window: time.Minute, retryAfter: "5"}
				web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: limit.answer})
				dir, hosts := t.TempDir(), politeness.NewSharedHosts()
				own, shared := filepath.Join(dir, "first.db"), filepath.Join(dir, "robots.db")
				notes := openNotes(t, shared)
				hostDue := &crawler.HostDueStore{Store: notes}
				first := newStoreSharingCrawl(t, web, own, hosts, hostDue, numberedSeeds(40, "a.test", "x")...)
				// Copy the files at the moment of a kill: when the refusal is acked.
				ctx, stop := context.WithCancel(t.Context())
				acked := make(chan [2]string, 1)
				first.Hooks.Acked = func(a storage.Ack) {
					if a.Outcome == storage.RetryAt {
						acked <- [2]string{copyStoreFile(t, own), copyStoreFile(t, shared)}
						stop()
					}
				}
				if err := first.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				copies := <-acked
				refusal := web.Log()[len(web.Log())-1]
				second := filepath.Join(dir, "second.db")
				switch next {
				case "itself, killed":
					hosts, second = politeness.NewSharedHosts(), copies[0]
					hostDue = &crawler.HostDueStore{Store: newMemoryStore()}
				case "stopped":
					if err := notes.Close(); err != nil {
						t.Fatal(err)
					}
					hosts, hostDue = politeness.NewSharedHosts(), &crawler.HostDueStore{Store: openNotes(t, shared)}
				case "killed":
					hosts, hostDue = politeness.NewSharedHosts(), &crawler.HostDueStore{Store: openNotes(t, copies[1])}
				}
				time.Sleep(time.Hour) // the host may be visited, and no window is left
				c := newStoreSharingCrawl(t, web, second, hosts, hostDue, numberedSeeds(10, "a.test", "y")...)
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				// After the Retry-After of 5 s, 21 requests have taken 26 s, so the pace is 1.5 s at first.
				var gaps []time.Duration
				log := web.Log()
				for i := 1; i < len(log); i++ {
					if log[i-1].Start.After(refusal.End) && !strings.HasSuffix(log[i-1].URL, "/robots.txt") {
						gaps = append(gaps, log[i].Start.Sub(log[i-1].End))
					}
				}
				if len(gaps) < 7 {
					t.Fatalf("%d rests after the refusal", len(gaps))
				}
				for _, gap := range gaps[:7] {
					if gap != 1500*time.Millisecond {
						t.Errorf("rests %v, want the learned 1.5s", gaps[:7])
						break
					}
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}

// TestLearnedPaceOfTwoProcesses: two crawlers of one store, each with a Limiter of its own, learn one
// pace, because each lease brings what the other has learned.
func TestLearnedPaceOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := &rateLimit{limit: 20, window: time.Minute, retryAfter: "5", countRefused: true}
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: limit.answer})
		store := newMemoryStore()
		crawls := []*crawler.Crawler{newCrawl(t, web, store, numberedSeeds(600, "a.test", "x")...),
			newCrawl(t, web, store)}
		begin := time.Now()
		ended := make(chan error)
		for _, c := range crawls {
			go func() { ended <- c.Run(t.Context()) }()
		}
		for range crawls {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		visits, refused := 0, 0
		for _, x := range web.Log() {
			if x.Start.Sub(begin) > 5*time.Minute {
				visits++
				if x.Status == http.StatusTooManyRequests {
					refused++
				}
			}
		}
		for i, c := range crawls {
			if n := c.Stats().Pages; n < 100 {
				t.Errorf("crawler %d visited %d pages: the test has lost its point", i, n)
			}
		}
		t.Logf("%d of %d visits after 5 minutes were refused, in %v", refused, visits, time.Since(begin))
		if refused*20 > visits {
			t.Errorf("%d of %d visits after 5 minutes were refused", refused, visits)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestLearnedPaceOfOverlappingVisits: two processes make a visit to one host each at a time. The pace that
// one of them learns from a 429 holds for both, although a visit of the other began before the 429, and is
// acked after it.
func TestLearnedPaceOfOverlappingVisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refusedAt time.Time
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/slow": func(crawltest.PageRequest) crawltest.Response {
				res := crawltest.HTML("slow")
				res.HeaderDelay = 20 * time.Second
				return res
			},
			"/x/7": func(crawltest.PageRequest) crawltest.Response {
				if refusedAt.IsZero() {
					refusedAt = time.Now()
					return crawltest.Status(http.StatusTooManyRequests)
				}
				return crawltest.HTML("")
			},
		}, Fallback: crawltest.StaticPage(crawltest.HTML(""))})
		store, notes := newMemoryStore(), newMemoryStore()
		seeds := append([]string{"http://a.test/slow"}, numberedSeeds(40, "a.test", "x")...)
		ended := make(chan error)
		for range 2 {
			c := newStoreSharingCrawlOn(t, web, store, politeness.NewSharedHosts(),
				&crawler.HostDueStore{Store: notes}, seeds...)
			c.Settings.Workers, c.Policy.Concurrency = 1, 2
			c.Coordinator = unreachableCoordinator{}
			go func() { ended <- c.Run(t.Context()) }()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		visits, overlaps, last := 0, false, refusedAt
		for _, x := range web.Log() {
			if !x.Start.After(refusedAt) {
				overlaps = overlaps || x.End.After(refusedAt)
				continue
			}
			// The delay of 1 s is 1.5 s after the refusal, and shrinks by a 32nd after ten answers each.
			if gap := x.Start.Sub(last); gap < 1300*time.Millisecond {
				t.Errorf("%s was visited %v after the visit before", x.URL, gap)
			}
			last = x.Start
			visits++
		}
		if visits < 30 || !overlaps {
			t.Errorf("%d visits after the refusal, overlap: %v; the test has lost its point", visits, overlaps)
		}
	})
}
