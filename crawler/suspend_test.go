package crawler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
)

// longDelaySites are sites that ask for a longer rest than a crawl waits for.
var longDelaySites = map[string]crawltest.Site{
	"Retry-After": {Host: "a.test", Fallback: func() crawltest.PageFunc {
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", "172800")
		return crawltest.StaticPage(busy)
	}()},
	"Crawl-delay": {Host: "a.test", Fallback: pageWithLinks(),
		Robots: robotsText("User-agent: *\nCrawl-delay: 36000\n", 36000*time.Second, nil)},
}

// TestWholeHostIsSuspended: all origins of a host share the rest that it asks for. This run and the
// next do not wait for any of them, and the run after the rest visits them again.
func TestWholeHostIsSuspended(t *testing.T) {
	for name, site := range longDelaySites {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, store := crawltest.New(site), newMemoryStore()
				run := func(seeds ...string) (requests int) {
					c := newCrawl(t, web, store, seeds...)
					if err := c.Frontier.EndSuspensionsExcept(t.Context(), c.ShouldStaySuspended); err != nil {
						t.Fatal(err)
					}
					ctx, stop := context.WithTimeout(t.Context(), 30*24*time.Hour)
					defer stop()
					before, begin := len(web.Log()), time.Now()
					if err := c.Run(ctx); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
						t.Error(err)
					}
					if took := time.Since(begin); took > time.Minute {
						t.Errorf("the run took %v", took)
					}
					return len(web.Log()) - before
				}
				if n := run("http://a.test/", "https://a.test/2"); n == 0 {
					t.Error("the first run made no request")
				}
				if n := run("https://a.test/3"); n != 0 {
					t.Errorf("the second run made %d requests to a host that rests", n)
				}
				time.Sleep(48 * time.Hour)
				if n := run(); n == 0 {
					t.Error("the host was not asked again when its rest was over")
				}
			})
		})
	}
}

// TestARunMayWaitLonger: a run with a longer limit waits for a host that the run before suspended.
func TestARunMayWaitLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, store := crawltest.New(longDelaySites["Crawl-delay"]), newMemoryStore()
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); !errors.Is(err,
			frontier.ErrOnlySuspendedLeft) {
			t.Fatal(err)
		}
		c := newCrawl(t, web, store)
		c.Policy.MaxCrawlDelay = 12 * time.Hour
		if err := c.Frontier.EndSuspensionsExcept(t.Context(), c.ShouldStaySuspended); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		checkPoliteness(t, web, time.Second)
	})
}
