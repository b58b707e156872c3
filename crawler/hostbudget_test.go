package crawler_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// bigSite returns a site of many pages. Its page /busy answers 500 at first.
func bigSite(host string, pages, concurrency int) crawltest.Site {
	links := []string{"/busy"}
	for i := range pages {
		links = append(links, fmt.Sprint("/", i))
	}
	return crawltest.Site{Host: host, Fallback: pageWithLinks(links...), MaxConcurrency: concurrency,
		Latency: crawltest.Latency{Base: 300 * time.Millisecond, Jitter: 700 * time.Millisecond},
		Robots:  robotsText("User-agent: *\nSitemap: http://"+host+"/map.xml\n", 0, nil),
		Pages: map[string]crawltest.PageFunc{
			"/map.xml": sitemapPage("urlset", "http://"+host+"/listed"),
			"/busy": func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL == 1 {
					return crawltest.Status(500)
				}
				return crawltest.HTML("x")
			},
		}}
}

// countPages returns how many different pages of a host were requested.
func countPages(web *crawltest.Web, host string) int {
	pages := map[string]bool{}
	for _, x := range web.Log() {
		if strings.Contains(x.URL, host) && !strings.HasSuffix(x.URL, "/robots.txt") &&
			!strings.HasSuffix(x.URL, "/map.xml") {
			pages[x.URL] = true
		}
	}
	return len(pages)
}

// TestPagesPerHost: a host gets exactly MaxPagesPerHost pages, with one slot or with four, and no
// more in the next run unless the limit is raised. Its other URLs are not leased one by one.
func TestPagesPerHost(t *testing.T) {
	for _, slots := range []int{1, 4} {
		t.Run(fmt.Sprint(slots, " slots"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testPagesPerHost(t, slots) })
		})
	}
}

func testPagesPerHost(t *testing.T, slots int) {
	web := crawltest.New(bigSite("a.test", 500, slots), bigSite("b.test", 5, slots))
	file := filepath.Join(t.TempDir(), "frontier.db")
	for run, budget := range []int{10, 10, 25} {
		store, err := bolt.Open(file, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := newCrawl(t, web, store, "http://a.test/", "http://b.test/")
		c.Settings.MaxPagesPerHost, c.Policy.Concurrency = budget, slots
		var refused atomic.Int64
		c.Settings.Workers = 8
		c.Hooks.VisitRefused = func(_ storage.Lease, d decorum.Decision) {
			if d.Reason == decorum.ReasonHostPages {
				refused.Add(1)
			}
		}
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Errorf("run %d ended with %v, want ErrDormant", run, err)
		}
		if n := countPages(web, "a.test"); n != budget {
			t.Errorf("run %d: %d pages of a.test, want %d", run, n, budget)
		}
		if n := refused.Load(); n > int64(2*slots+2) {
			t.Errorf("run %d: %d URLs were handed out in vain", run, n)
		}
		counts, err := countsOf(c.Frontier.Store())
		if err != nil || counts.QueuedURLs+budget < 500 || counts.SuspendedURLs != counts.QueuedURLs {
			t.Errorf("run %d leaves %+v, %v: want the others queued and suspended", run, counts, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // until the suspended origin is checked again
	}
	if n := countPages(web, "b.test"); n != 8 {
		t.Errorf("%d pages of b.test, want all 8", n)
	}
	checkPoliteness(t, web, time.Second)
}

// TestBytesPerHost: a host gets no new page or sitemap once it has sent its bytes, also not after a
// restart, unless the limit is raised. Another host is not affected.
func TestBytesPerHost(t *testing.T) { synctest.Test(t, testBytesPerHost) }

func testBytesPerHost(t *testing.T) {
	web := crawltest.New(bigSite("a.test", 500, 1), bigSite("b.test", 5, 1))
	file := filepath.Join(t.TempDir(), "frontier.db")
	sent := func() (n int64) {
		for _, x := range web.Log() {
			if strings.HasPrefix(x.URL, "http://a.test/") {
				n += x.BodyBytes
			}
		}
		return n
	}
	const maxPageBytes = 11_000 // bytes of a page, rounded up
	for run, limit := range []int64{100_000, 100_000, 200_000} {
		before := sent()
		store, err := bolt.Open(file, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := newCrawl(t, web, store, "http://a.test/", "http://b.test/")
		c.Settings.MaxBytesPerHost = limit
		why := ""
		c.Hooks.VisitRefused = func(_ storage.Lease, d decorum.Decision) {
			if d.Reason == decorum.ReasonHostBytes {
				why, _, _ = strings.Cut(d.Err().Error(), ";")
			}
		}
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Errorf("run %d ended with %v, want ErrDormant", run, err)
		}
		if n := sent(); run == 1 && n-before > maxPageBytes || n < limit || n > limit+maxPageBytes {
			t.Errorf("run %d: a.test has sent %d bytes, before %d, and may send %d", run, n, before, limit)
		}
		if want := fmt.Sprintf("the host has sent its %d bytes", limit); why != want {
			t.Errorf("run %d: URLs are refused because %q, want %q", run, why, want)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // until the suspended origin is checked again
	}
	if n := countPages(web, "b.test"); n != 8 {
		t.Errorf("%d pages of b.test, want all 8", n)
	}
	checkPoliteness(t, web, time.Second)
}

// TestBudgetLeavesRevisits: pages of a host that has used up its budget are revisited when they are
// due, although hundreds of other URLs wait, seeds among them.
func TestBudgetLeavesRevisits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(bigSite("a.test", 500, 1))
		var seeds []string
		for i := range 200 {
			seeds = append(seeds, fmt.Sprint("http://a.test/", i))
		}
		const every = 10 * time.Minute
		c, _ := newRevisitCrawl(t, web, newMemoryStore(),
			frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: every}, true, seeds...)
		c.Settings.MaxPagesPerHost = 40
		runFor(t, c, 3*time.Hour)
		if n := countPages(web, "a.test"); n != 40 {
			t.Errorf("%d pages, want 40", n)
		}
		last := map[string]time.Time{}
		var maxGap time.Duration
		for _, x := range web.Log() {
			if before, again := last[x.URL]; again {
				maxGap = max(maxGap, x.Start.Sub(before))
			}
			last[x.URL] = x.Start
		}
		for url, at := range last {
			if !strings.HasSuffix(url, "/robots.txt") {
				maxGap = max(maxGap, time.Since(at))
			}
		}
		if maxGap > every+3*time.Minute {
			t.Errorf("a page was not visited again for %v", maxGap)
		}
		if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
			AllowRevisits: true}); !r.OK() {
			t.Errorf("the judge says:\n%v", r)
		}
	})
}

// TestMaxBytes: a crawl ends after MaxReceivedBytes, and its next run receives as much again.
func TestMaxBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := crawltest.HTML("<a href=x>" + strings.Repeat("x", 990))
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			a := page
			a.Body = strings.Replace(a.Body, "=x", "="+r.Path+"x", 1)
			return a
		}})
		store := newMemoryStore()
		for run, want := range []int{4, 8} {
			c := newCrawl(t, web, store, "http://a.test/")
			c.Settings.MaxReceivedBytes = 3500
			if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrBytes) {
				t.Errorf("run %d ended with %v, want ErrBytes", run, err)
			}
			if n := countPages(web, "a.test"); n != want {
				t.Errorf("%d pages after run %d, want %d", n, run, want)
			}
			if counts, err := countsOf(c.Frontier.Store()); err != nil || counts.QueuedURLs != 1 {
				t.Errorf("%+v, %v: want one URL left", counts, err)
			}
		}
	})
}

// TestRevisitsOverARestart: what is known of a page outlives the process.
func TestRevisitsOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := crawltest.ChangingPage{ResponseAfterChanges: func(int) crawltest.Response {
			return crawltest.HTML("<a href=/1>x</a>")
		}, SendETag: true}
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: page.Respond})
		file := filepath.Join(t.TempDir(), "frontier.db")
		var lines []string
		for range 3 {
			store, err := bolt.Open(file, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c, j := newRevisitCrawl(t, web, store, adaptiveRevisits, false, "http://a.test/")
			var awaiting *frontier.OnlyRevisitsLeftError
			if err := c.Run(t.Context()); !errors.As(err, &awaiting) {
				t.Fatalf("Run returned %v, want ErrResting", err)
			}
			lines = append(lines, j.lines...)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(awaiting.FirstRevisit.Add(time.Minute)))
		}
		want := []string{"200 seed /", "200 link /1", "304 revisit /", "304 revisit /1",
			"304 revisit /", "304 revisit /1"}
		wantLines(t, lines, want...)
		var starts []time.Time
		for _, x := range web.Log() {
			if x.URL == "http://a.test/" {
				starts = append(starts, x.Start)
			}
		}
		if len(starts) != 3 || starts[2].Sub(starts[1]) < 3*starts[1].Sub(starts[0])/2 {
			t.Errorf("visits at %v: want the page to rest longer each time", starts)
		}
	})
}
