package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// newCrawl returns a seeded crawl of web with its state in store, ready to Run. It uses the real
// fetcher over the web's transport.
func newCrawl(t *testing.T, web *crawltest.Web, store storage.Store, seeds ...string) *crawler.Crawler {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	limiter := politeness.NewLimiter(politeness.LimiterConfig{})
	c := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{Budget: limiter}),
		Gate:     gate.New(gate.Config{Agent: agent}, store),
		Policy:   politeness.Policy{JitterFunc: func() float64 { return 0 }},
		Limiter:  limiter,
		Fetcher:  newFetcher(t, web),
		Settings: crawler.Settings{ProductToken: "testbot"},
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	addSeeds(t, c, seeds...)
	return c
}

// countsOf returns the counts of a store that is a storage.Inspector, too.
func countsOf(store storage.Store) (storage.Counts, error) {
	return store.(storage.Inspector).Counts(context.Background())
}

// newFetcher returns a fetcher that sends its requests over transport.
func newFetcher(t *testing.T, transport http.RoundTripper) *httpfetch.Fetcher {
	t.Helper()
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)", Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return fetcher
}

// addSeeds queues the seeds.
func addSeeds(t *testing.T, c *crawler.Crawler, seeds ...string) {
	t.Helper()
	for _, s := range seeds {
		u, err := decorum.ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Frontier.Discover(t.Context(),
			storage.Entry{URL: u, SeedOrigin: u.Origin(), PriorityClass: storage.ClassEarly}); err != nil {
			t.Fatal(err)
		}
	}
}

// robotsText returns a robots.txt that never changes.
func robotsText(text string, delay time.Duration, disallow func(string) bool) func(time.Time) crawltest.RobotsSpec {
	return crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(text),
		CrawlDelay: delay, IsDisallowed: disallow})
}

// countRequests returns the URLs of the log in order, and how often each occurs.
func countRequests(log []crawltest.Exchange) (urls []string, times map[string]int) {
	times = map[string]int{}
	for _, x := range log {
		urls = append(urls, x.URL)
		times[x.URL]++
	}
	return urls, times
}

// minHostGap returns the shortest time between the end of one exchange with a host and the start of
// the next.
func minHostGap(log []crawltest.Exchange, host string) time.Duration {
	minGap := time.Duration(1<<63 - 1)
	var end time.Time
	for _, x := range log {
		if !strings.HasPrefix(x.URL, "http://"+host) {
			continue
		}
		if !end.IsZero() {
			minGap = min(minGap, x.Start.Sub(end))
		}
		end = x.End
	}
	return minGap
}

func TestCrawlDelayIsHeldExactly(t *testing.T) {
	for _, workers := range []int{1, 3, 8} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testCrawlDelay(t, workers) })
		})
	}
}

// testCrawlDelay crawls three hosts of 50 pages that ask for a rest of ten seconds.
func testCrawlDelay(t *testing.T, workers int) {
	const pages, delay = 50, 10 * time.Second
	hosts := []string{"a.test", "b.test", "c.test"}
	var links strings.Builder
	for _, h := range hosts {
		for i := range pages {
			fmt.Fprintf(&links, "<a href=http://%s/%d>page</a> ", h, i)
		}
		fmt.Fprintf(&links, "<a href=http://%s/secret>secret</a> ", h)
	}
	var sites []crawltest.Site
	for _, h := range hosts {
		sites = append(sites, crawltest.Site{
			Host: h, Fallback: crawltest.StaticPage(crawltest.HTML(links.String())),
			Robots: robotsText("User-agent: *\nCrawl-delay: 10\nDisallow: /secret\n", delay,
				func(path string) bool { return strings.HasPrefix(path, "/secret") }),
			Latency: crawltest.Latency{Base: 300 * time.Millisecond},
		})
	}
	web := crawltest.New(sites...)
	c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/0")
	c.Settings.Workers = workers
	begin := time.Now()
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := web.Log()
	for _, h := range hosts {
		if gap := minHostGap(log, h); gap != delay {
			t.Errorf("least gap on %s is %v, want exactly %v", h, gap, delay)
		}
	}
	urls, times := countRequests(log)
	if want := len(hosts) * (pages + 1); len(urls) != want || len(times) != want {
		t.Errorf("%d requests of %d URLs, want %d of each", len(urls), len(times), want)
	}
	for _, h := range hosts {
		if first := slices.IndexFunc(urls, func(u string) bool {
			return strings.Contains(u, h)
		}); !strings.HasSuffix(urls[first], "/robots.txt") {
			t.Errorf("the first request to %s is %s", h, urls[first])
		}
		if times["http://"+h+"/secret"] > 0 {
			t.Errorf("visited http://%s/secret", h)
		}
	}
	// No host waits for another: b and c begin when a's first page is read. The last turn of each
	// host is for the disallowed page, which makes no visit.
	const visit = delay + 300*time.Millisecond
	if took, want := time.Since(begin), visit+time.Second+(pages+1)*visit; took > want {
		t.Errorf("took %v of virtual time, want at most %v", took, want)
	}
}

func TestRetryAfterIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := crawltest.Status(http.StatusTooManyRequests)
		busy.Header.Set("Retry-After", "3600")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<a href=/busy>busy</a> <a href=/other>other</a>")),
			"/busy": func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL == 1 {
					return busy
				}
				return crawltest.HTML("well now")
			},
			"/other": crawltest.StaticPage(crawltest.HTML("other")),
		}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var end time.Time
		for _, x := range web.Log() {
			if !end.IsZero() {
				if rest := x.Start.Sub(end); rest != time.Hour {
					t.Errorf("the request after Retry-After: 3600 came after %v", rest)
				}
				break
			}
			if x.Status == http.StatusTooManyRequests {
				end = x.End
			}
		}
		if _, times := countRequests(web.Log()); times["http://a.test/busy"] != 2 || times["http://a.test/other"] != 1 {
			t.Errorf("visits: %v", times)
		}
	})
}

// TestRobotsThatCannotBeHad: without its robots.txt a host gets no visit; the file is requested
// again at the times of Q-21, and the crawl does not wait forever.
func TestRobotsThatCannotBeHad(t *testing.T) {
	for _, fault := range []struct {
		name   string
		answer crawltest.Response
	}{
		{"FETCH-09 503", crawltest.Status(503)},
		{"FETCH-10 429", crawltest.Status(429)},
		{"FETCH-18 hangs", crawltest.Response{Fault: crawltest.Hang}},
		{"FETCH-18 reset", crawltest.Response{Fault: crawltest.Reset}},
		{"FETCH-19 incomplete", crawltest.Response{Body: "User-agent: *\nAllow: /\n", Fault: crawltest.ShortBody}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := crawltest.StaticPage(crawltest.HTML("<a href=http://shut.test/page>shut</a>"))
				web := crawltest.New(
					crawltest.Site{Host: "open.test", Fallback: page},
					crawltest.Site{Host: "shut.test", Fallback: page,
						Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: fault.answer})})
				c := newCrawl(t, web, memory.New(memory.Config{}), "http://open.test/", "http://shut.test/")
				if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
					t.Errorf("Run returned %v, want ErrDormant", err)
				}
				_, times := countRequests(web.Log())
				if times["http://shut.test/"]+times["http://shut.test/page"] > 0 {
					t.Error("a page was visited although robots.txt failed")
				}
				if n := times["http://shut.test/robots.txt"]; n != 3 {
					t.Errorf("robots.txt was requested %d times, want 3", n)
				}
				if times["http://open.test/"] != 1 {
					t.Error("the other host was not crawled")
				}
				counts, err := countsOf(c.Frontier.Store())
				if err != nil || counts.QueuedURLs != 2 {
					t.Errorf("%d URLs are left (%v), want 2: they are not lost", counts.QueuedURLs, err)
				}
			})
		})
	}
}

func TestRobotsReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{
			Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("hello")),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < 2*time.Minute {
					return crawltest.RobotsSpec{Response: crawltest.Status(503)}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /x\n")}
			}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/", "http://a.test/x")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		urls, _ := countRequests(web.Log())
		want := []string{"http://a.test/robots.txt", "http://a.test/robots.txt",
			"http://a.test/robots.txt", "http://a.test/"}
		if !slices.Equal(urls, want) {
			t.Errorf("requests %v, want %v", urls, want)
		}
	})
}

// TestRobotsRedirect: redirects of a robots.txt are visits at the pace of their own host, and the
// rules belong to the origin that was requested first (FETCH-04).
func TestRobotsRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := func(host string, robots crawltest.Response) crawltest.Site {
			return crawltest.Site{Host: host, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: robots}),
				Pages: map[string]crawltest.PageFunc{
					"/": crawltest.StaticPage(
						crawltest.HTML("<a href=/closed>closed</a> <a href=/open>open</a>")),
					"/closed": crawltest.StaticPage(crawltest.HTML("closed")),
					"/open":   crawltest.StaticPage(crawltest.HTML("open")),
					"/r.txt":  crawltest.StaticPage(crawltest.Text("User-agent: *\nDisallow: /closed\n")),
				}}
		}
		web := crawltest.New(
			site("a.test", crawltest.Redirect(301, "http://b.test/r.txt")),
			site("b.test", crawltest.Redirect(302, "/r.txt")),
			site("c.test", crawltest.Redirect(302, "http://c.test/robots.txt?again")))
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/", "http://b.test/", "http://c.test/")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		for url, want := range map[string]int{
			"http://a.test/robots.txt": 1, "http://a.test/": 1, "http://a.test/open": 1, "http://a.test/closed": 0,
			"http://b.test/robots.txt": 1, "http://b.test/r.txt": 2, "http://b.test/open": 1, "http://b.test/closed": 0,
			// an endless chain counts as no robots.txt (FETCH-03)
			"http://c.test/robots.txt": 1, "http://c.test/": 1, "http://c.test/closed": 1,
		} {
			if times[url] != want {
				t.Errorf("%s: %d requests, want %d", url, times[url], want)
			}
		}
		for _, host := range []string{"a.test", "b.test", "c.test"} {
			if gap := minHostGap(web.Log(), host); gap < time.Second {
				t.Errorf("least gap on %s is %v, want 1s", host, gap)
			}
		}
	})
}

func TestRedirectsAreDiscoveredNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
				"/": crawltest.StaticPage(crawltest.HTML("<a href=/shut>1</a> <a href=/loop>2</a> <a " +
					"href=/moved>3</a>")),
				"/shut":  crawltest.StaticPage(crawltest.Redirect(302, "http://b.test/private/x")),
				"/loop":  crawltest.StaticPage(crawltest.Redirect(302, "/pool")),
				"/pool":  crawltest.StaticPage(crawltest.Redirect(302, "/loop")),
				"/moved": crawltest.StaticPage(crawltest.Redirect(301, "http://b.test/public")),
			}},
			crawltest.Site{Host: "b.test", Fallback: crawltest.StaticPage(crawltest.HTML("b")),
				Robots: robotsText("User-agent: *\nDisallow: /private/\n", 0, func(p string) bool {
					return strings.HasPrefix(p, "/private/")
				})})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		urls, times := countRequests(web.Log())
		if times["http://b.test/private/x"] != 0 || times["http://b.test/public"] != 1 {
			t.Errorf("requests: %v", times)
		}
		for url, n := range times {
			if n != 1 {
				t.Errorf("%s was visited %d times", url, n)
			}
		}
		if slices.Index(urls, "http://b.test/robots.txt") > slices.Index(urls, "http://b.test/public") {
			t.Error("robots.txt of the redirect's host came after the page")
		}
	})
}

func TestPanicIsCaughtAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("x"))})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/1", "http://a.test/2")
		c.Handler = func(_ context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
			if strings.HasSuffix(v.URL().String(), "/1") {
				panic("oh no")
			}
			return nil, nil
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Panics != 1 || s.Pages != 2 {
			t.Errorf("stats %+v, want 1 panic and 2 pages", s)
		}
	})
}

// TestGoexitIsNoEnd: a callback that ends its goroutine, as t.FailNow does, ends a worker; the run
// does not end as if every URL had been visited.
func TestGoexitIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("x"))})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/1", "http://a.test/2")
		c.Settings.Workers = 1
		c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) {
			runtime.Goexit()
			return nil, nil
		}
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("Run returned %v, want an error that names Goexit", err)
		}
	})
}

// A goexitFetcher ends its goroutine after a page has answered.
type goexitFetcher struct{ crawler.Fetcher }

func (f goexitFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	res, err := f.Fetcher.Fetch(ctx, t)
	if t.Kind().IsPage() {
		runtime.Goexit()
	}
	return res, err
}

// TestHostRestsAfterALostWorker: if a worker is lost during its request, its host rests, for other
// crawls as well: the permit must not be returned as unused.
func TestHostRestsAfterALostWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 2 * time.Second
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("x"))})
		shared := politeness.NewSharedHosts()
		var crawls []*crawler.Crawler
		for range 2 {
			c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/1")
			c.Limiter, c.Policy.Delay, c.Settings.Workers = shared.NewLimiter(politeness.LimiterConfig{}), delay, 1
			crawls = append(crawls, c)
		}
		crawls[0].Fetcher = goexitFetcher{crawls[0].Fetcher}
		if err := crawls[0].Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Goexit") {
			t.Fatalf("Run returned %v, want an error that names Goexit", err)
		}
		if err := crawls[1].Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		for i := 1; i < len(log); i++ {
			if gap := log[i].Start.Sub(log[i-1].End); gap < delay {
				t.Errorf("%s came %v after %s, want %v", log[i].URL, gap, log[i-1].URL, delay)
			}
		}
		if len(log) != 4 {
			t.Errorf("%d requests, want robots.txt and a page by each crawl", len(log))
		}
	})
}

// TestVerdicts: each error of a handler has its effect on the URL.
func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict error
		visits  int
		gap     time.Duration // between the first two visits; the page has a latency of 0
	}{
		{"nil is done", nil, 1, 0},
		{"drop", decorum.Drop("dull"), 1, 0},
		{"retry after", decorum.RetryAfter(time.Hour), 3, time.Hour},
		{"anything else backs off", errors.New("cannot reach my database"), 3, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{Host: "a.test",
					Fallback: crawltest.StaticPage(crawltest.HTML("x"))})
				c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
				c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit,
					error) {
					return nil, tt.verdict
				}
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				var pages []crawltest.Exchange
				for _, x := range web.Log() {
					if !strings.HasSuffix(x.URL, "/robots.txt") {
						pages = append(pages, x)
					}
				}
				if len(pages) != tt.visits {
					t.Fatalf("%d visits, want %d", len(pages), tt.visits)
				}
				if tt.visits > 1 && pages[1].Start.Sub(pages[0].End) != tt.gap {
					t.Errorf("second visit after %v, want %v", pages[1].Start.Sub(pages[0].End), tt.gap)
				}
			})
		})
	}
}

func TestMaxPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			return crawltest.HTML("<a href=" + r.Path + "x>on</a>")
		}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		c.Settings.MaxPages = 7
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrPages) {
			t.Errorf("Run returned %v, want ErrPages", err)
		}
		if n := len(web.Log()); n != 8 {
			t.Errorf("%d requests, want robots.txt and 7 pages", n)
		}
		if counts, err := countsOf(c.Frontier.Store()); err != nil || counts.QueuedURLs != 1 {
			t.Errorf("%+v, %v: want one URL left", counts, err)
		}
	})
}

// TestStop: the first cancel lets visits in flight end, Halt cancels them; no URL is lost either
// way.
func TestStop(t *testing.T) {
	for _, halt := range []bool{false, true} {
		t.Run(fmt.Sprintf("halt=%v", halt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{Host: "a.test",
					Fallback: crawltest.StaticPage(crawltest.HTML("<a href=/next>next</a>")),
					Latency:  crawltest.Latency{Base: 10 * time.Second}})
				c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(25*time.Second, cancel) // the page is requested at 20 s (adaptive delay)
				if halt {
					time.AfterFunc(26*time.Second, c.Halt)
				}
				if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Run returned %v", err)
				}
				counts, err := countsOf(c.Frontier.Store())
				if err != nil || counts.LeasedURLs != 0 || counts.QueuedURLs != 1 {
					t.Errorf("left %+v (%v), want one URL queued", counts, err)
				}
				if pages, want := c.Stats().Pages, int64(1); halt && pages != 0 || !halt && pages != want {
					t.Errorf("%d pages", pages)
				}
			})
		})
	}
}

// TestMaxCrawlDelay: a host that asks for a longer delay than the crawl waits for is suspended, and
// never visited faster.
func TestMaxCrawlDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("x")),
			Robots: robotsText("User-agent: *\nCrawl-delay: 7200\n", 2*time.Hour, nil)})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		begin := time.Now()
		if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Errorf("Run returned %v, want ErrDormant", err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the crawl waited %v for a host that it sets aside", took)
		}
		if urls, _ := countRequests(web.Log()); !slices.Equal(urls, []string{"http://a.test/robots.txt"}) {
			t.Errorf("requests %v", urls)
		}
	})
}

// TestSecondCrawlKnowsTheRules: a crawl with a new store and a gate that already knows the rules
// requests no robots.txt, and waits the Crawl-delay before its first visit: another crawl may just
// have made one.
func TestSecondCrawlKnowsTheRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("x")),
			Robots: robotsText("User-agent: *\nCrawl-delay: 10\n", 10*time.Second, nil)})
		first := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		second := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/again")
		second.Gate = first.Gate
		for _, c := range []*crawler.Crawler{first, second} {
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if urls, _ := countRequests(web.Log()); len(urls) != 3 {
			t.Errorf("requests %v, want robots.txt once and two pages", urls)
		}
		if gap := minHostGap(web.Log(), "a.test"); gap != 10*time.Second {
			t.Errorf("least gap %v, want 10s", gap)
		}
	})
}
