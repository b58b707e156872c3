package crawler_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// TestRobotsIsAskedForWhole: a robots.txt is requested by an unconditional GET, whatever validators
// its last answer had (LOC-13), and every request names the product token (FETCH-30); the pages are
// requested conditionally.
func TestRobotsIsAskedForWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := crawltest.Text("User-agent: *\nDisallow: /closed\n")
		file.Header.Set("ETag", `"1"`)
		file.Header.Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
		page := crawltest.HTML("<a href=/closed>x</a>")
		page.Header.Set("ETag", `"2"`)
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(page),
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: file, IsDisallowed: func(p string) bool {
				return p == "/closed"
			}})})
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		runFor(t, c, 3*day+time.Hour)
		robotsAsked, conditional := 0, 0
		for _, x := range web.Log() {
			if !strings.HasPrefix(x.UserAgent, "testbot/") {
				t.Errorf("%s was requested by %q", x.URL, x.UserAgent)
			}
			switch {
			case !strings.HasSuffix(x.URL, "/robots.txt"):
				if x.Conditional {
					conditional++
				}
			case x.Conditional || x.Method != http.MethodGet:
				t.Errorf("%s was requested by %s, conditionally %t", x.URL, x.Method, x.Conditional)
			default:
				robotsAsked++
			}
		}
		if robotsAsked < 3 || conditional < 3 {
			t.Errorf("in three days %d requests for robots.txt, and %d conditional ones for the page; want 3 of each",
				robotsAsked, conditional)
		}
	})
}

// TestBlockedIsAnEvent: Hooks.VisitRefused gets each URL that robots.txt disallows, with the rule;
// no handler sees the URL, and nothing is sent (INT-06, EXC-02, EXC-07, MATCH-27).
func TestBlockedIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Fallback: crawltest.StaticPage(crawltest.HTML("<a href=/closed/1>x</a><a href=/open>x</a>")),
			Robots: robotsText("User-agent: *\nDisallow: /closed\n", 0, func(p string) bool {
				return strings.HasPrefix(p, "/closed")
			})})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/", "http://a.test/closed/2")
		var mu sync.Mutex
		rules, handled := map[string]string{}, map[string]bool{}
		c.Hooks.VisitRefused = func(l storage.Lease, d decorum.Decision) {
			mu.Lock()
			defer mu.Unlock()
			if r, ok := errors.AsType[*gate.Refusal](d.Err()); ok &&
				errors.Is(d.Err(), decorum.Disallowed) && d.Line == r.Verdict.Line {
				rules[l.URL.PathAndQuery()] = d.Rule
			}
		}
		c.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
			mu.Lock()
			defer mu.Unlock()
			handled[v.URL().PathAndQuery()] = true
			return c.LinksToFollow(ctx, v)
		}
		runCrawl(t, c)
		for path, want := range map[string]string{"/closed/1": "disallow: /closed",
			"/closed/2": "disallow: /closed", "/open": "", "/": ""} {
			if rules[path] != want || handled[path] != (want == "") {
				t.Errorf("%s: refused by %q, want %q; handled %t", path, rules[path], want, handled[path])
			}
		}
		checkPoliteness(t, web, time.Second)
	})
}
