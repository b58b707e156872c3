package crawler_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // makes the time zones of the tests available on any machine

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

func parseWindow(t *testing.T, hours, zone string) politeness.Window {
	t.Helper()
	w, err := politeness.ParseWindow(hours, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sleepUntil sleeps until a time with an offset.
func sleepUntil(t *testing.T, s string) {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05 -07", s)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(at))
}

// numberedPaths returns links to n pages.
func numberedPaths(n int) []string {
	links := make([]string, n)
	for i := range links {
		links[i] = fmt.Sprintf("/%d", i)
	}
	return links
}

// TestWindowInMidCrawl: over midnight and through both changes of the clocks, the host gets no
// request outside its hours, not even for robots.txt, a sitemap or a retry; a visit in flight when
// they end is finished; and the crawl continues as soon as they begin.
func TestWindowInMidCrawl(t *testing.T) {
	for _, tt := range []struct{ name, hours, zone, begin, first, last string }{
		{"over midnight", "23:59-00:01", "Europe/Prague", "2026-01-10 12:00:00 +01", "2026-01-10 23:59:00 +01",
			"2026-01-11 23:59:00 +01"},
		{"Prague, spring", "02:30-03:02", "Europe/Prague", "2026-03-29 00:00:00 +01", "2026-03-29 03:00:00 +02",
			"2026-03-30 02:30:00 +02"},
		{"Prague, autumn", "02:58-03:00", "Europe/Prague", "2026-10-25 00:00:00 +02", "2026-10-25 02:58:00 +02",
			"2026-10-25 02:58:00 +01"},
		{"New York, spring", "01:58-02:30", "America/New_York", "2026-03-08 00:00:00 -05", "2026-03-08 01:58:00 -05",
			"2026-03-09 01:58:00 -04"},
		{"New York, autumn", "01:58-02:00", "America/New_York", "2026-11-01 00:00:00 -04", "2026-11-01 01:58:00 -04",
			"2026-11-01 01:58:00 -05"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				testWindow(t, parseWindow(t, tt.hours, tt.zone), tt.begin, tt.first, tt.last)
			})
		})
	}
}

// testWindow crawls 12 pages, ten seconds apart, one of them retried, in two minutes of one day and
// the rest on the next.
func testWindow(t *testing.T, w politeness.Window, begin, first, last string) {
	sleepUntil(t, begin)
	started := time.Now()
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(numberedPaths(10)...),
		Robots:  robotsText("User-agent: *\nCrawl-delay: 10\nSitemap: http://a.test/map.xml\n", 10*time.Second, nil),
		Latency: crawltest.Latency{Base: 4 * time.Second},
		Pages: map[string]crawltest.PageFunc{
			"/map.xml": sitemapPage("urlset", "http://a.test/listed"),
			"/3": func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL == 1 {
					return crawltest.Status(503)
				}
				return crawltest.HTML("")
			},
		}})
	c := newCrawl(t, web, newMemoryStore(), "http://a.test/0")
	c.Policy.VisitWindow = w
	var refusals atomic.Int64
	c.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) { refusals.Add(1) }
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := web.Log()
	if _, times := countRequests(log); len(times) != 13 || times["http://a.test/3"] != 2 {
		t.Errorf("%v, want robots.txt, a sitemap, 11 pages, and a retry of /3", times)
	}
	firstOfDay := func(i int, want string) {
		if at, err := time.Parse("2006-01-02 15:04:05 -07", want); err != nil || !log[i].Start.Equal(at) {
			t.Errorf("request %d came at %v, want %s", i, log[i].Start, want)
		}
	}
	firstOfDay(0, first)
	day := slices.IndexFunc(log, func(x crawltest.Exchange) bool { return x.Start.Sub(log[0].Start) > 10*time.Minute })
	if day < 0 {
		t.Fatal("all was visited in the first window")
	}
	firstOfDay(day, last)
	for _, x := range log {
		if !w.IsOpen(x.Start) {
			t.Errorf("%s was requested at %v, outside %v", x.URL, x.Start, w)
		}
		if x.Status == 0 {
			t.Errorf("%s was broken off", x.URL)
		}
	}
	if maxRefusals := int(time.Since(started)/(10*time.Minute)) + 5; refusals.Load() > int64(maxRefusals) {
		t.Errorf("looked %d times in vain, want at most %d", refusals.Load(), maxRefusals)
	}
	checkPoliteness(t, web, time.Second)
}

// TestWindowOfARobotsRedirect: a robots.txt that redirects to a host outside its hours is fetched
// when they begin.
func TestWindowOfARobotsRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
				Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(301,
					"http://b.test/rules")})},
			crawltest.Site{Host: "b.test",
				Pages: map[string]crawltest.PageFunc{"/rules": crawltest.StaticPage(
					crawltest.Text("User-agent: *\nDisallow:\n"))}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		w := parseWindow(t, "00:10-00:20", "") // the bubble begins at midnight
		c.Policy.HostOverrides = map[string]politeness.HostOverride{"b.test": {VisitWindow: &w}}
		var refusals atomic.Int64
		c.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) { refusals.Add(1) }
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		urls, _ := countRequests(web.Log())
		if want := []string{"http://a.test/robots.txt", "http://b.test/rules",
			"http://a.test/"}; !slices.Equal(urls, want) {
			t.Errorf("requests %q, want %q", urls, want)
		}
		if at := web.Log()[1].Start; !w.IsOpen(at) {
			t.Errorf("b.test was asked at %v", at)
		}
		if refusals.Load() > 300 {
			t.Errorf("looked %d times in ten minutes", refusals.Load())
		}
	})
}

// TestWindowOfARobotsRedirectOnOneHost: the hours end between a robots.txt and its redirect on the
// same origin, which no hold stops; the redirect waits for the hours all the same.
func TestWindowOfARobotsRedirectOnOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleepUntil(t, "2000-01-01 00:00:59 +00")
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(301,
				"http://a.test/rules")}),
			Pages: map[string]crawltest.PageFunc{"/rules": crawltest.StaticPage(
				crawltest.Text("User-agent: *\nDisallow:\n"))}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Policy.VisitWindow = parseWindow(t, "00:00-00:01,00:10-00:20", "")
		var refusals atomic.Int64
		c.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) {
			if refusals.Add(1) == 1000 {
				c.Halt()
			}
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if len(log) != 3 || log[1].URL != "http://a.test/rules" ||
			log[1].Start.UTC().Format(time.TimeOnly) > "00:10:10" || !c.Policy.VisitWindow.IsOpen(log[1].Start) {
			t.Errorf("requests %+v", log)
		}
		if refusals.Load() > 300 {
			t.Errorf("looked %d times in nine minutes", refusals.Load())
		}
	})
}

// TestVisitTime: Visit-time in robots.txt applies to every request after it.
func TestVisitTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: pageWithLinks(numberedPaths(40)...),
				Latency: crawltest.Latency{Base: time.Second},
				Robots:  robotsText("User-agent: *\nVisit-time: 0600-0601\nCrawl-delay: 5\n", 5*time.Second, nil)},
			crawltest.Site{Host: "b.test", Fallback: pageWithLinks(numberedPaths(3)...)})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/", "http://b.test/")
		begin := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, x := range web.Log() {
			switch at := x.Start.UTC(); {
			case strings.HasPrefix(x.URL, "http://b.test/"):
				if x.Start.Sub(begin) > time.Minute {
					t.Errorf("%s waited for another host until %v", x.URL, at)
				}
			case x.URL == "http://a.test/robots.txt" && n == 0: // before it no rules are known
			case at.Hour() != 6 || at.Minute() != 0:
				t.Errorf("%s was requested at %v", x.URL, at)
			default:
				n++
			}
		}
		if days := 4; time.Since(begin) > time.Duration(days+1)*24*time.Hour || n < 41 {
			t.Errorf("%d requests in %v, want 41 pages in about %d days", n, time.Since(begin), days)
		}
		checkPoliteness(t, web, time.Second)
	})
}
