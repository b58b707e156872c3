package crawler_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
)

// A lastmodSite is a site of pages that change, with a sitemap that dates the changes.
type lastmodSite struct {
	pages int
	// changeCount returns how often page i has changed by a time, and says returns the date that
	// the sitemap gives for its last change.
	changeCount func(i int, at time.Time) int
	lastmod     func(i int, at time.Time) time.Time
}

// newSite returns the site. Its pages have no validators: each visit is counted by whether the
// content differs from that of the last visit.
func (l lastmodSite) newSite() crawltest.Site {
	s := crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{},
		Robots: robotsText("User-agent: *\nSitemap: http://a.test/map.xml\n", 0, nil)}
	for i := range l.pages {
		s.Pages[fmt.Sprint("/", i)] = func(r crawltest.PageRequest) crawltest.Response {
			return crawltest.HTML(fmt.Sprint("version ", l.changeCount(i, r.ReceivedAt)))
		}
	}
	s.Pages["/map.xml"] = func(r crawltest.PageRequest) crawltest.Response {
		var b strings.Builder
		b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for i := range l.pages {
			fmt.Fprintf(&b, "<url><loc>http://a.test/%d</loc><lastmod>%s</lastmod></url>", i,
				l.lastmod(i, r.ReceivedAt).UTC().Format(time.RFC3339))
		}
		b.WriteString("</urlset>")
		return crawltest.ResponseOfType("application/xml", b.String())
	}
	return s
}

// A lastmodResult is the result of crawling a lastmodSite for some time.
type lastmodResult struct {
	visits, sitemapReads int           // visits to pages; visits to the sitemap
	rescheduled          int           // pages
	meanWait             time.Duration // from a change to the next visit, on average
}

// crawl crawls the site, and expects page i to change at changes[i].
func (l lastmodSite) crawl(t *testing.T, d time.Duration, changes []time.Time) (got lastmodResult) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(l.newSite())
		c, _ := newRevisitCrawl(t, web, newMemoryStore(),
			frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit, MinInterval: 6 * time.Hour, MaxInterval: 365 * day},
			true, "http://a.test/0")
		runFor(t, c, d)
		got.rescheduled = int(c.Stats().RescheduledBySitemap)
		var seen int
		next := map[string]time.Time{}
		for i, at := range changes {
			next[fmt.Sprint("http://a.test/", i)] = at
		}
		for _, x := range web.Log() {
			switch at, waits := next[x.URL]; {
			case strings.HasSuffix(x.URL, "map.xml"):
				got.sitemapReads++
			case strings.HasSuffix(x.URL, "robots.txt"):
			case waits && x.Start.After(at):
				got.meanWait += x.Start.Sub(at)
				seen++
				delete(next, x.URL)
				fallthrough
			default:
				got.visits++
			}
		}
		got.meanWait /= time.Duration(max(seen, 1))
		if len(changes) != seen {
			t.Errorf("%d of %d changes were seen", seen, len(changes))
		}
		if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
			AllowRevisits: true}); !r.OK() {
			t.Errorf("the judge says:\n%v", r)
		}
	})
	t.Logf("%+v", got)
	return got
}

// bubbleStart is when time begins in a bubble.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func neverChanges(int, time.Time) int { return 0 }

// TestHonestLastmod: pages that change once, one a day, are visited when the sitemap says so, far
// sooner than without dates.
func TestHonestLastmod(t *testing.T) {
	var changes []time.Time
	for i := range 60 {
		changes = append(changes, bubbleStart.Add(time.Duration(i)*day+time.Hour))
	}
	changed := func(i int, at time.Time) int {
		if at.Before(changes[i]) {
			return 0
		}
		return 1
	}
	silent := lastmodSite{60, changed, func(int, time.Time) time.Time { return bubbleStart.Add(-100 * day) }}
	telling := lastmodSite{60, changed, func(i int, at time.Time) time.Time {
		if at.Before(changes[i]) {
			return bubbleStart.Add(-100 * day)
		}
		return changes[i]
	}}
	without, with := silent.crawl(t, 200*day, changes), telling.crawl(t, 200*day, changes)
	if without.rescheduled != 0 || with.rescheduled < 40 || with.meanWait > without.meanWait/3 {
		t.Errorf("changes waited %v with dates in the sitemap (%d pages rescheduled), %v without",
			with.meanWait, with.rescheduled, without.meanWait)
	}
}

// TestLyingLastmod: if a sitemap claims changes of pages that never change, a few pages are visited
// for it, then one for each reading. If it claims that all changed at once, or will change, none
// is.
func TestLyingLastmod(t *testing.T) {
	for _, tt := range []struct {
		name    string
		lastmod func(i int, at time.Time) time.Time
		probe   int // pages rescheduled by each reading, beyond the first three
	}{
		{"lately", func(i int, at time.Time) time.Time { return at.Add(-time.Duration(i) * time.Hour / 10) }, 1},
		{"right now", func(_ int, at time.Time) time.Time { return at }, 0},
		{"just now, each a little later", func(i int, at time.Time) time.Time {
			return at.Add(time.Duration(i-60) * time.Second)
		}, 0},
		{"today", func(_ int, at time.Time) time.Time { return at.Truncate(day) }, 0},
		{"tomorrow, or long ago", func(i int, at time.Time) time.Time {
			return at.Add(time.Duration(i%2*101-100) * day)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := lastmodSite{60, neverChanges, tt.lastmod}.crawl(t, 60*day, nil)
			if got.sitemapReads < 5 {
				t.Errorf("the sitemap was read %d times", got.sitemapReads)
			}
			if maxRescheduled := tt.probe * (3 + got.sitemapReads); got.rescheduled > maxRescheduled ||
				got.rescheduled < tt.probe*got.sitemapReads/2 {
				t.Errorf("%d pages recalled in %d readings, want %d at most", got.rescheduled,
					got.sitemapReads, maxRescheduled)
			}
		})
	}
}

// TestPriorities: the seed goes first, then the sitemap's entries by priority, then links by depth.
func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
			<url><loc>http://a.test/low</loc><priority>0.1</priority></url>
			<url><loc>http://a.test/usual</loc></url>
			<url><loc>http://a.test/high</loc><priority>0.9</priority></url></urlset>`
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nSitemap: http://a.test/map.xml\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{
				"/": pageWithLinks("/near"), "/high": pageWithLinks("/deep"), "/near": pageWithLinks("/deeper"),
				"/low": pageWithLinks(), "/usual": pageWithLinks(), "/deep": pageWithLinks(),
				"/deeper":  pageWithLinks(),
				"/map.xml": crawltest.StaticPage(crawltest.ResponseOfType("application/xml", list))}})
		if err := newCrawl(t, web, newMemoryStore(), "http://a.test/").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		urls, _ := countRequests(web.Log())
		for i, u := range urls {
			urls[i] = strings.TrimPrefix(u, "http://a.test")
		}
		if got, want := strings.Join(urls,
			" "), "/robots.txt / /map.xml /high /usual /low /near /deep /deeper"; got != want {
			t.Errorf("went %s, want %s", got, want)
		}
	})
}
