package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A faultyStore is a Store whose Add, Ack or Renew can be made to fail.
type faultyStore struct {
	storage.Store
	add   func([]storage.Entry) error
	ack   func([]storage.Ack) []storage.Ack
	renew func() error
}

func (f *faultyStore) Add(ctx context.Context, es []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if f.add != nil {
		if err := f.add(es); err != nil {
			return nil, err
		}
	}
	return f.Store.Add(ctx, es, maxPerOrigin)
}

func (f *faultyStore) Ack(ctx context.Context, acks []storage.Ack) error {
	if f.ack != nil {
		acks = f.ack(slices.Clone(acks))
	}
	return f.Store.Ack(ctx, acks)
}

func (f *faultyStore) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if f.renew != nil {
		return f.renew()
	}
	return f.Store.Renew(ctx, l, now, ttl)
}

func newMemoryStore() storage.Store { return memory.New(memory.Config{}) }

// pageWithLinks returns a page with links.
func pageWithLinks(links ...string) crawltest.PageFunc {
	var b strings.Builder
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=%q>x</a>", l)
	}
	return crawltest.StaticPage(crawltest.HTML(b.String()))
}

// sitemapPage returns a sitemap of pages, or, with root sitemapindex, of sitemaps.
func sitemapPage(root string, urls ...string) crawltest.PageFunc {
	entry := map[string]string{"urlset": "url", "sitemapindex": "sitemap"}[root]
	var b strings.Builder
	for _, u := range urls {
		fmt.Fprintf(&b, "<%s><loc>%s</loc></%s>", entry, u, entry)
	}
	return crawltest.StaticPage(crawltest.ResponseOfType("application/xml",
		"<"+root+` xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`+b.String()+"</"+root+">"))
}

// checkPoliteness fails the test if the judge finds a violation.
func checkPoliteness(t *testing.T, web *crawltest.Web, minDelay time.Duration) {
	t.Helper()
	if r := web.Judge(crawltest.JudgeOptions{MinDelay: minDelay, RequiredProductToken: "testbot"}); !r.OK() {
		t.Errorf("the judge says:\n%v", r)
	}
}

// TestSitemapsMayBeWantedLater: a run without sitemaps does not keep a later run from reading them.
func TestSitemapsMayBeWantedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nSitemap: http://a.test/map.xml\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{"/": pageWithLinks(), "/2": pageWithLinks(),
				"/listed": pageWithLinks(), "/map.xml": sitemapPage("urlset", "http://a.test/listed")}})
		store := newMemoryStore()
		for _, tt := range []struct {
			seed   string
			no     bool
			listed int
		}{{"http://a.test/", true, 0}, {"http://a.test/2", false, 1}} {
			c := newCrawl(t, web, store, tt.seed)
			c.Settings.NoSitemaps = tt.no
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, times := countRequests(web.Log()); times["http://a.test/listed"] != tt.listed {
				t.Errorf("with NoSitemaps %v: requests %v", tt.no, times)
			}
		}
	})
}

// TestOriginsOfAHostShareItsPace: http asks for 10 s and https for nothing; both are one server,
// which gets 10 s.
func TestOriginsOfAHostShareItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var links []string
		for i := range 8 {
			links = append(links, fmt.Sprintf("https://a.test/s%d", i), fmt.Sprintf("http://a.test/p%d", i))
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", MaxConcurrency: 4, Fallback: pageWithLinks(links...),
			Latency: crawltest.Latency{Base: 500 * time.Millisecond},
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < 5*time.Second { // http comes first
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nCrawl-delay: 10\n"),
						CrawlDelay: 10 * time.Second}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow:\n")}
			}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Policy.Concurrency = 4
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(web.Log()); n != 19 {
			t.Errorf("%d requests, want 17 pages and two robots.txt", n)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestMaxCrawlDelayIsLookedAtAgain: a suspended host is visited after its robots.txt shortens the
// delay.
func TestMaxCrawlDelayIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < time.Hour {
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nCrawl-delay: 7200\n"),
						CrawlDelay: 2 * time.Hour}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow:\n")}
			}})
		store := newMemoryStore()
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); !errors.Is(err,
			frontier.ErrOnlySuspendedLeft) {
			t.Errorf("the first run ended with %v, want ErrDormant", err)
		}
		time.Sleep(25 * time.Hour)
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Errorf("the second run ended with %v", err)
		}
		if _, times := countRequests(web.Log()); times["http://a.test/"] != 1 {
			t.Errorf("requests %v, want the page", times)
		}
	})
}

// TestStoreRemembersPace: a new process with the same store keeps a Retry-After.
func TestStoreRemembersPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", "3600")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/busy": crawltest.StaticPage(busy), "/other": pageWithLinks()}})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/busy")
		ctx, stop := context.WithCancel(t.Context())
		c.Hooks.Acked = func(a storage.Ack) {
			if a.Outcome == storage.RetryAt {
				stop()
			}
		}
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		again := newCrawl(t, web, store, "http://a.test/other")
		again.Settings.MaxAttempts = 2
		if err := again.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if gap := log[2].Start.Sub(log[1].End); gap != time.Hour {
			t.Errorf("the next process came after %v, want 1h", gap)
		}
	})
}

// TestLimiterDoesNotTrustTheStore: the limiter keeps hosts' rests if the store forgets the hosts'
// clocks. The robots.txt of the https origin is refused at first, and fetched when it is due.
func TestLimiterDoesNotTrustTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1", "/2", "https://a.test/3"),
			Robots: robotsText("User-agent: *\nCrawl-delay: 10\n", 10*time.Second, nil)})
		store := &faultyStore{Store: newMemoryStore(), ack: func(acks []storage.Ack) []storage.Ack {
			for i := range acks {
				if h := acks[i].HostState; h != nil && acks[i].Outcome == storage.Done {
					acks[i].HostState = &storage.HostState{LostVisitDelay: h.LostVisitDelay}
				}
			}
			return acks
		}}
		begin := time.Now()
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 90*time.Second {
			t.Errorf("took %v for 8 requests, 10 s apart", took)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestHaltOfARobotsLookup: a cancelled lookup says nothing about the server; the next run fetches
// the file at once.
func TestHaltOfARobotsLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
			Latency: crawltest.Latency{Base: 2 * time.Second}})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		time.AfterFunc(time.Second, c.Halt)
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("the next run took %v, want some seconds", took)
		}
	})
}

// TestLeasesThatRunOut: renewals fail, and a visit outlasts its lease. The store leases the URL
// again, but the host gets no two visits at a time.
func TestLeasesThatRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
			Latency: crawltest.Latency{Base: 10 * time.Second}})
		store := &faultyStore{Store: newMemoryStore(), renew: func() error { return errors.New("disk busy") }}
		c := newCrawl(t, web, store, "http://a.test/")
		c.Policy.AdaptiveFactor = -1
		c.Frontier = frontier.New(store, frontier.Config{LeaseTTL: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = c.Run(ctx) // Run may not end by itself: every lease expires
		if n := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second}).CountViolationsOfRule(
			crawltest.Overlap); n != 0 {
			t.Errorf("%d requests came while another was under way", n)
		}
	})
}

// TestSlowHandlerKeepsItsLease: the lease of a page is renewed while a handler takes longer than
// its TTL.
func TestSlowHandlerKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		c.Frontier = frontier.New(store, frontier.Config{LeaseTTL: time.Minute})
		c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) {
			time.Sleep(time.Hour)
			return nil, nil
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(web.Log()); n != 2 {
			t.Errorf("%d requests, want robots.txt and the page", n)
		}
	})
}

func TestRunRefusesAPolicyThatMakesNoSense(t *testing.T) {
	c := newCrawl(t, crawltest.New(), newMemoryStore())
	c.Policy.Delay = -5 * time.Second
	if err := c.Run(t.Context()); err == nil {
		t.Error("a negative delay is taken")
	}
}

// TestHaltEndsTheRun: Halt ends the run and returns the leased URL to its queue.
func TestHaltEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
			Latency: crawltest.Latency{Base: 2 * time.Second}})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		time.AfterFunc(5*time.Second, c.Halt)
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Errorf("Run returned %v, want ErrHalted", err)
		}
		leases, _, err := store.Lease(t.Context(), time.Now().Add(time.Hour), time.Minute, 9)
		if err != nil || len(leases) != 1 || leases[0].HostState.ConsecutiveFailures != 0 {
			t.Errorf("left %+v, %v: want the page, and no strike for what we broke off", leases, err)
		}
	})
}

// TestGraceEnds: a visit that exceeds the grace period after a stop is cancelled.
func TestGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Fallback: crawltest.StaticPage(crawltest.Response{HeaderDelay: 20 * time.Second})})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Settings.GracePeriod = 3 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 8*time.Second {
			t.Errorf("Run returned %v after %v, want the deadline after 8s", err, time.Since(begin))
		}
	})
}

// A recordCounter counts the records of each page.
type recordCounter map[string]int

func (r recordCounter) Record(_ context.Context, v *crawler.Visit) error {
	r[v.URL().String()]++
	return nil
}

// TestHaltKeepsWhatWasRead: a page that was answered, handled and recorded when Halt is called is
// done, and its links are stored.
func TestHaltKeepsWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/next")})
		store, records := newMemoryStore(), recordCounter{}
		c := newCrawl(t, web, store, "http://a.test/")
		c.PageRecorder = records
		c.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
			c.Halt()
			return c.LinksToFollow(ctx, v)
		}
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Fatal(err)
		}
		second := newCrawl(t, web, store)
		second.PageRecorder = records
		if err := second.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if records["http://a.test/"] != 1 || records["http://a.test/next"] != 1 {
			t.Errorf("records %v, want each page once", records)
		}
	})
}

// TestBadLinksOfAHandler: invalid links are skipped, and the crawl continues.
func TestBadLinksOfAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		good, err := decorum.ParseURL("http://a.test/good")
		if err != nil {
			t.Fatal(err)
		}
		c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) {
			return []crawler.LinkToVisit{{}, {URL: good, CallbackData: make([]byte, storage.MaxCallbackDataBytes+1)},
				{URL: good}}, nil
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, times := countRequests(web.Log()); times["http://a.test/good"] != 1 {
			t.Errorf("requests %v, want the good link", times)
		}
	})
}

// TestOddURLs: unusual URLs are requested unchanged.
func TestOddURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		c := newCrawl(t, web, newMemoryStore())
		var want []string
		for _, odd := range []string{"/a|b", "/a'b", "/a%2fb", "/a//b", "/!$&'()*+,;=", "/é", "/%E9", "/?q=100%",
			"/a:b@c", "/%00", "/[x]", "/{y}", "/a%5Eb"} {
			u, err := decorum.ParseURL("http://a.test" + odd)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, u.String())
			if _, err := c.Frontier.Discover(t.Context(), storage.Entry{URL: u}); err != nil {
				t.Fatal(err)
			}
		}
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.Err != nil {
				t.Errorf("%s: %v", v.URL(), v.Err)
			}
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := c.Stats().Pages; int(n) != len(want) {
			t.Errorf("%d pages, want %d", n, len(want))
		}
	})
}

// TestBudgetCountsRequests: MaxPages counts requests, not URLs that are refused.
func TestBudgetCountsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var links []string
		for i := range 1000 {
			links = append(links, fmt.Sprintf("/private/%d", i))
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(links...),
			Robots: robotsText("User-agent: *\nDisallow: /private/\n", 0, nil)})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		c.Limiter = politeness.NewLimiter(politeness.LimiterConfig{CrawlRequestsPerSecond: 1})
		c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter})
		begin := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("2 requests at 1 a second took %v", took)
		}
	})
}

// TestBackoffGrows: the back-off of a host that fails altogether grows with each page from the third
// on.
func TestBackoffGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.Status(500))})
		c := newCrawl(t, web, newMemoryStore(), numberedSeeds(6, "a.test", "x")...)
		c.Settings.MaxAttempts = 1
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var gaps []time.Duration
		log := web.Log()
		for i := 2; i < len(log); i++ {
			gaps = append(gaps, log[i].Start.Sub(log[i-1].End))
		}
		if want := []time.Duration{time.Second, time.Second, 5 * time.Second, 10 * time.Second,
			20 * time.Second}; !slices.Equal(gaps, want) {
			t.Errorf("rests %v, want %v", gaps, want)
		}
	})
}

// TestBackoffOutlivesAHalt: a cancelled visit says nothing about the server, so the host's back-off
// stays.
func TestBackoffOutlivesAHalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := func(r crawltest.PageRequest) crawltest.Response {
			if r.Path == "/x/5" {
				return crawltest.Response{HeaderDelay: 20 * time.Second}
			}
			return crawltest.Status(500)
		}
		web, store := crawltest.New(crawltest.Site{Host: "a.test", Fallback: failing}), newMemoryStore()
		c := newCrawl(t, web, store, numberedSeeds(6, "a.test", "x")...)
		c.Settings.MaxAttempts = 1
		time.AfterFunc(40*time.Second, c.Halt) // after 5 visits, with rests of 1, 1, 1, 5, 10 and 20 s
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Fatal(err)
		}
		if n := len(web.Log()); n != 7 {
			t.Fatalf("%d requests, want for robots.txt and six pages", n)
		}
		u, _ := decorum.ParseURL("http://a.test/")
		info, _, err := store.(storage.Inspector).Origin(t.Context(), u.Origin())
		if err != nil || info.HostState.ConsecutiveFailures != 3 || info.HostState.LostVisitDelay != 20*time.Second {
			t.Errorf("%d consecutive failures and a rest of %v (%v), want the earlier 3 and 20 s",
				info.HostState.ConsecutiveFailures, info.HostState.LostVisitDelay, err)
		}
	})
}

// TestBlockedRobotsRedirect: a robots.txt that redirects to a URL which that host's rules disallow
// counts as none (FETCH-05).
func TestBlockedRobotsRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
				Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(302,
					"http://b.test/private/r.txt")})},
			crawltest.Site{Host: "b.test", Fallback: pageWithLinks("http://a.test/"),
				Robots: robotsText("User-agent: *\nDisallow: /private/\n", 0,
					func(p string) bool { return strings.HasPrefix(p, "/private/") })})
		c := newCrawl(t, web, newMemoryStore(), "http://b.test/")
		begin := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("took %v: the origin stayed closed", took)
		}
		_, times := countRequests(web.Log())
		if times["http://b.test/private/r.txt"] != 0 || times["http://a.test/"] != 1 {
			t.Errorf("requests %v: want a's page, and not the redirect", times)
		}
	})
}

// TestRulesChange: a page that a robots.txt disallows is parked, and visited when a later file
// allows it.
func TestRulesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/closed"),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < 20*time.Hour {
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /closed\n"),
						IsDisallowed: func(p string) bool { return p == "/closed" }}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /other\n")}
			}})
		store := newMemoryStore()
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := countsOf(store); err != nil || n.ParkedURLs != 1 {
			t.Fatalf("%+v, %v: want one URL parked", n, err)
		}
		time.Sleep(25 * time.Hour)
		if err := newCrawl(t, web, store, "http://a.test/new").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, times := countRequests(web.Log()); times["http://a.test/closed"] != 1 {
			t.Errorf("requests %v: want the page that is open now", times)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestRobotsRedirectVisitedEarly: the worker that queues the target of a robots.txt redirect is
// delayed, and the target is visited in the meantime. The origin does not stay held.
func TestRobotsRedirectVisitedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
				Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(301,
					"http://b.test/r.txt")})},
			crawltest.Site{Host: "b.test",
				Fallback: crawltest.StaticPage(crawltest.Text("User-agent: *\nDisallow:\n"))})
		store := &slowAddStore{newMemoryStore()}
		begin := time.Now()
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("took %v, want some seconds", took)
		}
	})
}

// A slowAddStore is slow to add the target of a robots.txt redirect.
type slowAddStore struct{ storage.Store }

func (s *slowAddStore) Add(ctx context.Context, es []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	results, err := s.Store.Add(ctx, es, maxPerOrigin)
	if !es[0].RobotsFor.IsZero() {
		time.Sleep(50 * time.Millisecond)
	}
	return results, err
}
