package crawler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A failingFetcher fails the first visits to each URL, before or after it sends the request, with
// an error that wraps err.
type failingFetcher struct {
	crawler.Fetcher
	err   error
	times int
	sends bool // fails after the request was sent

	mu    sync.Mutex
	tries map[string]int // by URL; guarded by mu
}

func (f *failingFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	f.mu.Lock()
	if f.tries == nil {
		f.tries = map[string]int{}
	}
	f.tries[t.URL().String()]++
	fails := f.tries[t.URL().String()] <= f.times
	f.mu.Unlock()
	if !fails {
		return f.Fetcher.Fetch(ctx, t)
	}
	if f.sends {
		if _, err := f.Fetcher.Fetch(ctx, t); err != nil {
			return nil, err
		}
	}
	return nil, crawler.NewFetchError(t, f.err)
}

// TestLocalErrorsAreNotCharged: visits that fail with an error of Kind LocalFailure are repeated
// without limit. They count neither as attempts, nor as failures of the host, nor as outages of its
// robots.txt. A host that received a request has its usual rest.
func TestLocalErrorsAreNotCharged(t *testing.T) {
	for name, sends := range map[string]bool{"before the request is sent": false, "after it was sent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := crawltest.StaticPage(crawltest.HTML("a page"))
				web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: page,
					Robots: func(time.Time) crawltest.RobotsSpec {
						return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /x\n"),
							IsDisallowed: hasPrefixFunc("/x")}
					}})
				c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/1", "http://a.test/2")
				const times = 12 // more attempts than any failure class allows
				c.Fetcher = &failingFetcher{Fetcher: c.Fetcher, times: times, sends: sends,
					err: &decorum.Error{Op: "read", Kind: decorum.LocalFailure,
						Err: errors.New("no room for the body")}}
				c.Settings.MaxPages = 2
				var attempts []int
				c.Hooks.Visited = func(v *crawler.Visit) { attempts = append(attempts, v.Lease.FailedAttempts) }
				begin := time.Now()
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				st := c.Stats()
				if st.Pages != 2 || st.Retries != 0 || st.GivenUp != 0 || st.Errors != 0 || st.LocalFaults != 3*times {
					t.Errorf("%d pages, %d retries, %d given up, %d errors, %d local; want 2, 0, 0, 0, %d",
						st.Pages, st.Retries, st.GivenUp, st.Errors, st.LocalFaults, 3*times)
				}
				if slices.Max(attempts) != 0 {
					t.Errorf("attempts are %v, want none beyond the first", attempts)
				}
				rests := 2 // between three visits
				if sends {
					rests = 3*times + 2
				}
				if took := time.Since(begin); took != time.Duration(rests)*time.Second {
					t.Errorf("the crawl took %v, want %d rests of 1 s", took, rests)
				}
			})
		})
	}
}
