package crawler_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
)

// A cachedPage is a page with headers about caching, and the time that must pass between its visits.
type cachedPage struct {
	path string
	// headers returns lines of the answer's header, as "Name: value", at a time.
	headers func(at time.Time) []string
	// rest is the time between visits in a crawl that visits pages daily, and caps freshness at 30 days.
	rest time.Duration
}

// always returns the same headers at any time.
func always(lines ...string) func(time.Time) []string {
	return func(time.Time) []string { return lines }
}

// httpDateAt returns the HTTP date of a time, d later.
func httpDateAt(at time.Time, d time.Duration) string { return at.Add(d).UTC().Format(http.TimeFormat) }

// cachedPages are pages of each kind. The times follow from RFC 9111 by hand.
var cachedPages = []cachedPage{
	{"/nothing", always(), day},
	{"/hour", always("Cache-Control: max-age=3600"), day},
	{"/day", always("Cache-Control: max-age=86400"), day},
	{"/week", always("Cache-Control: public, max-age=604800"), 7 * day},
	{"/week-with-age", always("Cache-Control: max-age=604800", "Age: 172800"), 5 * day},
	{"/ten-years", always("Cache-Control: max-age=315360000, immutable"), 30 * day},
	{"/expires", func(at time.Time) []string {
		return []string{"Date: " + httpDateAt(at, 0), "Expires: " + httpDateAt(at, 3*day)}
	}, 3 * day},
	{"/expired", always("Expires: Thu, 19 Nov 1981 08:52:00 GMT"), day},
	{"/expires-in-the-past", always("Expires: 0"), day},
	{"/clock-is-slow", func(at time.Time) []string {
		return []string{"Date: " + httpDateAt(at, -2*day), "Cache-Control: max-age=604800"}
	}, 5 * day},
	{"/clock-is-fast", func(at time.Time) []string {
		return []string{"Date: " + httpDateAt(at, 2*day), "Cache-Control: max-age=604800"}
	}, 7 * day},
	{"/for-shared-caches", always("Cache-Control: s-maxage=604800"), day},
	{"/private", always("Cache-Control: private, max-age=604800"), 7 * day},
	{"/must-revalidate", always("Cache-Control: must-revalidate, max-age=604800"), 7 * day},
	{"/no-cache", always("Cache-Control: no-cache, max-age=604800"), day},
	{"/no-store", always("Cache-Control: no-store, max-age=604800"), day},
	{"/invalid", always("Cache-Control: max-age=1w"), day},
	{"/twice", always("Cache-Control: max-age=864000", "Cache-Control: max-age=604800"), 7 * day},
	{"/old", always("Last-Modified: Mon, 01 Jan 1990 00:00:00 GMT"), day}, // an estimate does not overrule "daily"
	{"/varies", always("Vary: *", "Cache-Control: max-age=604800"), day},  // stands for no later request
}

// cachedSite returns a site of these pages. Each has a validator, so that revisits are answered by 304.
func cachedSite(pages []cachedPage) (s crawltest.Site, seeds []string) {
	s = crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{}}
	for _, p := range pages {
		s.Pages[p.path] = func(r crawltest.PageRequest) crawltest.Response {
			res := crawltest.HTML("x")
			res.Header.Set("ETag", `"1"`)
			for _, line := range p.headers(r.ReceivedAt) {
				name, value, _ := strings.Cut(line, ": ")
				res.Header.Add(name, value)
			}
			return res
		}
		seeds = append(seeds, "http://a.test"+p.path)
	}
	return s, seeds
}

// visitTimes returns when each path of a.test was requested.
func visitTimes(web *crawltest.Web) map[string][]time.Time {
	at := map[string][]time.Time{}
	for _, x := range web.Log() {
		path := strings.TrimPrefix(x.URL, "http://a.test")
		at[path] = append(at[path], x.Start)
	}
	return at
}

// TestMonthsOfFreshness revisits pages daily for 200 days. Each page is visited when it is stale, or after
// the cap, and neither earlier nor later. The same crawl without freshness visits all of them daily.
func TestMonthsOfFreshness(t *testing.T) {
	const slack = 2 * time.Minute // all pages of the host may be due at the same time
	crawl := func(days int, policy frontier.RevisitPolicy, rest func(cachedPage) time.Duration) (requests int) {
		synctest.Test(t, func(t *testing.T) {
			site, seeds := cachedSite(cachedPages)
			web := crawltest.New(site)
			c, _ := newRevisitCrawl(t, web, newMemoryStore(), policy, true, seeds...)
			runFor(t, c, time.Duration(days)*day)
			visits := visitTimes(web)
			for _, p := range cachedPages {
				at, want := visits[p.path], rest(p)
				requests += len(at)
				if minVisits := int(time.Duration(days) * day / (want + slack)); len(at) < minVisits {
					t.Errorf("%s was visited %d times, want at least %d", p.path, len(at), minVisits)
				}
				for i := 1; i < len(at); i++ {
					if gap := at[i].Sub(at[i-1]); gap < want || gap > want+slack {
						t.Errorf("%s: visit %d came after %v, want %v", p.path, i, gap, want)
						break
					}
				}
			}
			checkRevisitsArePolite(t, web)
		})
		return requests
	}
	const days, daysWithoutFreshness = 200, 20
	with := crawl(days, dailyRevisits, func(p cachedPage) time.Duration { return p.rest })
	withoutFreshness := dailyRevisits
	withoutFreshness.MaxFreshness = -1
	without := crawl(daysWithoutFreshness, withoutFreshness, func(cachedPage) time.Duration { return day }) *
		days / daysWithoutFreshness
	if with > without*7/10 {
		t.Errorf("%d requests, %d without freshness: want 30 %% saved", with, without)
	}
}

// checkRevisitsArePolite asks the judge about a crawl with revisits.
func checkRevisitsArePolite(t *testing.T, web *crawltest.Web) {
	t.Helper()
	if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
		AllowRevisits: true}); !r.OK() {
		t.Errorf("the judge says:\n%v", r)
	}
}

// TestHeuristicFreshness: in adaptive mode a page that states no expiration rests for a tenth of the time
// since it was modified, within MaxHeuristicFreshness. All pages change at each visit.
func TestHeuristicFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		modified := func(before time.Duration) func(time.Time) []string {
			return func(at time.Time) []string { return []string{"Last-Modified: " + httpDateAt(at, -before)} }
		}
		pages := []cachedPage{
			{"/new", modified(time.Hour), time.Hour},
			{"/15h", modified(15 * time.Hour), 90 * time.Minute},
			{"/old", modified(365 * day), 3 * time.Hour},
			{"/stale", always("Cache-Control: max-age=0", "Last-Modified: Mon, 01 Jan 1990 00:00:00 GMT"), time.Hour},
			{"/day", always("Cache-Control: max-age=86400", "Last-Modified: Mon, 01 Jan 1990 00:00:00 GMT"), day},
		}
		site, seeds := cachedSite(pages)
		for path, page := range site.Pages {
			site.Pages[path] = func(r crawltest.PageRequest) crawltest.Response {
				res := page(r)
				res.Header.Set("ETag", fmt.Sprintf(`"%d"`, r.NthForURL))
				res.Body = fmt.Sprint("version ", r.NthForURL)
				return res
			}
		}
		web := crawltest.New(site)
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit,
			MinInterval: time.Hour, MaxInterval: 4 * time.Hour, MaxHeuristicFreshness: 3 * time.Hour}, true, seeds...)
		runFor(t, c, 4*day)
		visits := visitTimes(web)
		for _, p := range pages {
			at := visits[p.path]
			if last := at[len(at)-1].Sub(at[len(at)-2]); last < p.rest || last > p.rest+time.Minute {
				t.Errorf("%s: the last visit came after %v, want %v", p.path, last, p.rest)
			}
		}
	})
}

// TestFreshSitemapsAndFeeds: sitemaps and feeds that are fresh are not asked for again before MaxSitemapFreshness.
// A robots.txt is asked for as its Expires says.
func TestFreshSitemapsAndFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cached := func(res crawltest.Response, seconds string) crawltest.PageFunc {
			res.Header.Set("Cache-Control", "max-age="+seconds)
			return crawltest.StaticPage(res)
		}
		robots := crawltest.Text("User-agent: *\nDisallow:\nSitemap: http://a.test/map.txt\n")
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: func(at time.Time) crawltest.RobotsSpec {
				res := robots
				res.Header = http.Header{"Content-Type": {"text/plain"}, "Expires": {httpDateAt(at, 6*time.Hour)}}
				return crawltest.RobotsSpec{Response: res}
			},
			Pages: map[string]crawltest.PageFunc{
				"/": cached(crawltest.HTML(`<link rel=alternate type=application/rss+xml href=/feed>`), "3600"),
				"/feed": cached(crawltest.ResponseOfType("application/rss+xml",
					"<rss version='2.0'><channel></channel></rss>"), "345600"),
				"/map.txt": cached(crawltest.Text("http://a.test/\n"), "259200"),
			}})
		policy := dailyRevisits
		policy.MaxSitemapFreshness = 30 * day
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), policy, true, "http://a.test/")
		runFor(t, c, 10*day-time.Hour)
		visits := visitTimes(web)
		for path, want := range map[string]int{"/": 10, "/feed": 3, "/map.txt": 4} {
			if got := len(visits[path]); got != want {
				t.Errorf("%s was visited %d times, want %d", path, got, want)
			}
		}
		// The crawl makes visits daily, and needs the file for each.
		if got := len(visits["/robots.txt"]); got != 10 {
			t.Errorf("robots.txt was visited %d times, want 10", got)
		}
		checkRevisitsArePolite(t, web)
	})
}

// TestLongFreshSitemapsAndFeeds: a sitemap or feed that is fresh for a year is asked for again after
// MaxSitemapFreshness, also if its 304s have no content type, and however the crawl has found it. Other pages are not.
func TestLongFreshSitemapsAndFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cached := func(contentType, body string) crawltest.PageFunc {
			return func(r crawltest.PageRequest) crawltest.Response {
				res := crawltest.ResponseOfType(contentType, body)
				if r.NthForURL > 1 {
					res = crawltest.Response{Status: http.StatusNotModified, Header: http.Header{}}
				}
				res.Header.Set("ETag", `"1"`)
				res.Header.Set("Cache-Control", "max-age=31536000")
				return res
			}
		}
		const feed = "<rss version='2.0'><channel></channel></rss>"
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nSitemap: http://a.test/map.txt\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{
				"/": cached("text/html",
					"<link rel=alternate type=application/rss+xml href=/announced><a href=/feed>"),
				"/announced": cached("text/xml", feed), "/feed": cached("application/rss+xml", feed),
				"/map.txt":  cached("text/plain", "http://a.test/\n"),
				"/seed.txt": cached("text/plain", "http://a.test/\n"),
				// Some servers give all files the type of pages.
				"/seed.xml": cached("text/html", `<?xml version="1.0"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.test/</loc></url></urlset>`),
			}})
		policy := dailyRevisits
		policy.MaxSitemapFreshness = 2 * day
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), policy, true, "http://a.test/", "http://a.test/seed.txt",
			"http://a.test/seed.xml")
		runFor(t, c, 10*day-time.Hour)
		for path, want := range map[string]int{"/": 1, "/announced": 5, "/feed": 5, "/map.txt": 5, "/seed.txt": 5,
			"/seed.xml": 5} {
			if got := len(visitTimes(web)[path]); got != want {
				t.Errorf("%s was visited %d times, want %d", path, got, want)
			}
		}
	})
}

// TestSitemapLastmodEndsFreshness: if a sitemap says that a page was modified since its last visit, the
// page is visited although its answer is fresh.
func TestSitemapLastmodEndsFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nSitemap: http://a.test/map.xml\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{
				"/": func(r crawltest.PageRequest) crawltest.Response {
					res := crawltest.HTML(fmt.Sprint(r.ReceivedAt.Sub(begin) > 5*day))
					res.Header.Set("Cache-Control", "max-age=2592000")
					return res
				},
				"/map.xml": func(r crawltest.PageRequest) crawltest.Response {
					modified := begin.Add(-100 * day)
					if r.ReceivedAt.Sub(begin) > 5*day {
						modified = begin.Add(5 * day)
					}
					return crawltest.ResponseOfType("application/xml",
						`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.test/</loc><lastmod>`+
							modified.UTC().Format(time.RFC3339)+`</lastmod></url></urlset>`)
				}}})
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		runFor(t, c, 20*day)
		at := visitTimes(web)["/"]
		if len(at) != 2 || at[1].Sub(begin) < 5*day || at[1].Sub(begin) > 6*day+time.Minute {
			t.Errorf("visits %v, want one at once and one within a day after the sitemap changed", at)
		}
	})
}

// TestNoStore: nothing of an answer with no-store is kept to be used again: the next request is not
// conditional, and the page is due as if it had no freshness. That the body is unchanged is still seen. If
// a later 304 says no-store, what was kept before is dropped.
func TestNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		respond := func(cacheControl func(nth int) string) crawltest.PageFunc {
			return func(r crawltest.PageRequest) crawltest.Response {
				res := crawltest.HTML("x")
				res.Header.Set("ETag", `"1"`)
				res.Header.Set("Last-Modified", "Sat, 01 Jan 2000 00:00:00 GMT")
				res.Header.Set("Cache-Control", cacheControl(r.NthForURL))
				return res
			}
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/never": respond(func(int) string { return "no-store, max-age=604800" }),
			"/later": respond(func(nth int) string {
				return []string{"no-cache", "no-cache", "no-store", ""}[min(nth, 3)]
			}),
		}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/never",
			"http://a.test/later")
		runFor(t, c, 4*day-time.Hour)
		wantLines(t, j.lines, "200 seed /never", "200 seed /later", "200 revisit /never", "304 revisit /later",
			"200 revisit /never", "200 revisit /later", "200 revisit /never", "304 revisit /later")
		if s := c.Stats(); s.Unchanged != 6 {
			t.Errorf("%d of 6 revisits found the page unchanged", s.Unchanged)
		}
	})
}

// Test304KeepsFreshness: a 304 without the headers of the answer that it confirms does not end the effect of
// these: the page is fresh again for as long.
func Test304KeepsFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		respond := func(name string, value func(at time.Time) string) crawltest.PageFunc {
			return func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL > 1 {
					return crawltest.Response{Status: http.StatusNotModified}
				}
				res := crawltest.HTML("x")
				res.Header.Set("ETag", `"1"`)
				res.Header.Set(name, value(r.ReceivedAt))
				return res
			}
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/no-cache": respond("Cache-Control", func(time.Time) string { return "no-cache" }),
			"/max-age":  respond("Cache-Control", func(time.Time) string { return "max-age=259200" }),
			"/expires":  respond("Expires", func(at time.Time) string { return httpDateAt(at, 3*day) }), // past by then
		}})
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/max-age",
			"http://a.test/expires", "http://a.test/no-cache")
		runFor(t, c, 7*day-time.Hour)
		for path, want := range map[string][]int{"/max-age": {0, 3, 6}, "/expires": {0, 3, 4, 5, 6},
			"/no-cache": {0, 1, 2, 3, 4, 5, 6}} {
			var days []int
			for _, at := range visitTimes(web)[path] {
				days = append(days, int(at.Sub(begin)/day))
			}
			if fmt.Sprint(days) != fmt.Sprint(want) {
				t.Errorf("%s was visited on days %v, want %v", path, days, want)
			}
		}
	})
}

// TestNoEstimateBy304: a 304 with Last-Modified alone does not make a page fresh by an estimate whose answer
// said no-cache or max-age=0.
func TestNoEstimateBy304(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		respond := func(cacheControl string) crawltest.PageFunc {
			return func(r crawltest.PageRequest) crawltest.Response {
				res := crawltest.HTML("x")
				if r.NthForURL > 1 {
					res = crawltest.Response{Status: http.StatusNotModified, Header: http.Header{}}
				} else if cacheControl != "" {
					res.Header.Set("Cache-Control", cacheControl)
				}
				res.Header.Set("Last-Modified", "Mon, 01 Jan 1990 00:00:00 GMT")
				return res
			}
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/no-cache": respond("no-cache"), "/stale": respond("max-age=0"), "/nothing": respond("")}})
		c, _ := newRevisitCrawl(t, web, newMemoryStore(), frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit,
			MinInterval: time.Hour, MaxInterval: day}, true, "http://a.test/no-cache", "http://a.test/stale",
			"http://a.test/nothing")
		runFor(t, c, 20*time.Hour)
		// A page that does not change is visited after 5 and then after 10 hours.
		for path, want := range map[string]int{"/no-cache": 3, "/stale": 3, "/nothing": 1} {
			if got := len(visitTimes(web)[path]); got != want {
				t.Errorf("%s was visited %d times, want %d", path, got, want)
			}
		}
	})
}

// TestVaryCookie: a page that depends on cookies is requested in full when they have changed since its last
// visit.
func TestVaryCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, seeds := cachedSite([]cachedPage{{"/", func(at time.Time) []string {
			// The cookie is the same from the third day on.
			return []string{"Vary: Cookie", fmt.Sprint("Set-Cookie: day=", min(at.Sub(bubbleStart)/day, 2))}
		}, day}})
		web, store := crawltest.New(site), newMemoryStore()
		c, j := newRevisitCrawl(t, web, store, dailyRevisits, true, seeds...)
		fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)",
			Transport: web, Cookies: httpfetch.NewCookies(store)})
		if err != nil {
			t.Fatal(err)
		}
		c.Fetcher = fetcher
		runFor(t, c, 6*day-time.Hour)
		wantLines(t, j.lines, "200 seed /", "200 revisit /", "200 revisit /", "200 revisit /", "304 revisit /",
			"304 revisit /")
	})
}

// TestFreshnessAfterRestart: after a restart a page is visited no earlier than before. It is requested
// conditionally, unless the crawl now sends another header that the page depends on. A page that depends on
// anything is visited daily.
func TestFreshnessAfterRestart(t *testing.T) {
	for name, tt := range map[string]struct {
		headers http.Header // of the second run
		want    []string
	}{
		"the same headers": {http.Header{"Accept-Language": {"en"}}, []string{"200 revisit /any", "200 revisit /any",
			"304 revisit /both", "304 revisit /fixed", "304 revisit /language", "304 revisit /plain",
			"200 revisit /any"}},
		"another language": {http.Header{"Accept-Language": {"de"}}, []string{"200 revisit /any", "200 revisit /any",
			"200 revisit /both", "304 revisit /fixed", "200 revisit /language", "304 revisit /plain",
			"200 revisit /any"}},
		"no language": {nil, []string{"200 revisit /any", "200 revisit /any",
			"200 revisit /both", "304 revisit /fixed", "200 revisit /language", "304 revisit /plain",
			"200 revisit /any"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				vary := func(names string) func(time.Time) []string {
					return always("Vary: "+names, "Cache-Control: max-age=259200")
				}
				site, seeds := cachedSite([]cachedPage{
					{"/both", vary("User-Agent, Accept-Language"), 0},
					{"/fixed", vary("User-Agent, Accept-Encoding"), 0},
					{"/language", vary("accept-language"), 0}, {"/plain", always("Cache-Control: max-age=259200"), 0},
					{"/any", vary("*"), 0}})
				web := crawltest.New(site)
				file := filepath.Join(t.TempDir(), "frontier.db")
				run := func(headers http.Header, days time.Duration, seeds ...string) []string {
					store := openBolt(t, file)
					c, j := newRevisitCrawl(t, web, store, dailyRevisits, true, seeds...)
					fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)",
						Transport: web, Headers: headers})
					if err != nil {
						t.Fatal(err)
					}
					c.Fetcher = fetcher
					runFor(t, c, days*day)
					if err := store.Close(); err != nil {
						t.Fatal(err)
					}
					return j.lines
				}
				if got := run(http.Header{"Accept-Language": {"en"}}, 1, seeds...); len(got) != 5 {
					t.Fatalf("visits %q", got)
				}
				wantLines(t, run(tt.headers, 3), tt.want...)
				for path, at := range visitTimes(web) {
					if path != "/robots.txt" && path != "/any" && (len(at) != 2 || at[1].Sub(begin) < 3*day) {
						t.Errorf("%s was visited at %v, want again after 3 days", path, at)
					}
				}
			})
		})
	}
}

// TestETagOfEveryVersion: an ETag that means every version in a conditional request is not sent, so that the change of
// the page is seen. Within quotes a star means nothing.
func TestETagOfEveryVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions := func(etag string) crawltest.PageFunc {
			return func(r crawltest.PageRequest) crawltest.Response {
				res := crawltest.HTML(fmt.Sprint("version ", r.NthForURL))
				res.Header.Set("ETag", etag)
				return res
			}
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/any": versions("*"), "/list": versions(`"1", *`), "/quoted": versions(`W/"*"`)}})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true,
			"http://a.test/any", "http://a.test/list", "http://a.test/quoted")
		runFor(t, c, 2*day-time.Hour)
		wantLines(t, j.lines, "200 seed /any", "200 seed /list", "200 seed /quoted",
			"200 revisit /any", "200 revisit /list", "304 revisit /quoted")
	})
}
