package collyfetch_test

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

const userAgent = "testbot/1.0 (+https://bot.test/)"

// newCrawl returns a crawl and its collector, to which the test adds callbacks.
func newCrawl(t *testing.T, cfg httpfetch.Config) (*crawler.Crawler, *collyfetch.Collector) {
	t.Helper()
	return newCrawlWithStore(t, memory.New(memory.Config{}), cfg)
}

// newCrawlWithStore is newCrawl with the crawl's state in store.
func newCrawlWithStore(t *testing.T, store storage.Store,
	cfg httpfetch.Config) (*crawler.Crawler, *collyfetch.Collector) {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	cfg.UserAgent = userAgent
	fetcher, err := httpfetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := frontier.New(store, frontier.Config{})
	c := collyfetch.NewCollector(f, fetcher)
	return &crawler.Crawler{
		Frontier: f, Gate: gate.New(gate.Config{Agent: agent}, store),
		Policy:  politeness.Policy{Delay: 50 * time.Millisecond},
		Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher: c, Handler: c.Handle, Settings: crawler.Settings{Workers: 4},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, c
}

// serveWeb serves the web on a real socket, and returns the connect-to rules that lead to it.
func serveWeb(t *testing.T, web *crawltest.Web) []string {
	t.Helper()
	server, err := web.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return []string{"::" + server.Addr}
}

// requestedPaths returns the paths requested from the web, in order.
func requestedPaths(web *crawltest.Web) []string {
	var p []string
	for _, x := range web.Log() {
		p = append(p, strings.TrimPrefix(x.URL, "http://a.test"))
	}
	return p
}

// TestCallbacksEnqueue: of a disallowed, a seen and a new URL that Request.Visit gets, only the new
// one is requested, and the server sees that it waits until the host is due.
func TestCallbacksEnqueue(t *testing.T) {
	const delay = 300 * time.Millisecond
	web := crawltest.New(crawltest.Site{Host: "a.test",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: testbot\nDisallow: /private\nCrawl-delay: 0.3\n"), CrawlDelay: delay,
			IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/private") }}),
		Fallback: crawltest.StaticPage(crawltest.HTML("<h1>Hello</h1><a class=next href='good?x=1'>next</a>"))})
	crawl, c := newCrawl(t, httpfetch.Config{ConnectToRules: serveWeb(t, web), AllowPrivate: true})
	var errs, titles []string
	visit := func(e *colly.HTMLElement, url string) {
		if err := e.Request.Visit(url); err != nil {
			errs = append(errs, err.Error())
		}
	}
	c.OnHTML("h1", func(e *colly.HTMLElement) { titles = append(titles, e.Text) })
	c.OnHTML("a.next", func(e *colly.HTMLElement) {
		visit(e, "/private/x")
		visit(e, "/start")
		visit(e, "http://a.test:80/start#again")
		visit(e, e.Attr("href"))
	})
	if err := c.Visit("http://a.test/start"); err != nil {
		t.Fatal(err)
	}
	if err := crawl.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := requestedPaths(web), []string{"/robots.txt", "/start", "/good?x=1"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	if len(errs) > 0 || !slices.Equal(titles, []string{"Hello", "Hello"}) {
		t.Errorf("errors %q, titles %q", errs, titles)
	}
	if report := web.Judge(crawltest.JudgeOptions{MinDelay: 50 * time.Millisecond,
		RequiredProductToken: "testbot"}); !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}

// TestCallbacks: each kind of callback is called for the pages it is for, in colly's order, and never
// for a robots.txt or when a link is queued.
func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":      crawltest.StaticPage(crawltest.HTML("<h1>One</h1><a href=/gone>x</a><a href=/moved>y</a>")),
			"/gone":  crawltest.StaticPage(crawltest.Status(http.StatusGone)),
			"/moved": crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/two")),
			"/two": crawltest.StaticPage(crawltest.ResponseOfType("text/html; charset=iso-8859-1",
				"<h1>Zw\xf6lf</h1>")),
		}})
		crawl, c := newCrawl(t, httpfetch.Config{Transport: web})
		crawl.Settings.Workers = 1
		var got []string
		note := func(what string, r *colly.Request) { got = append(got, what+" "+r.URL.Path) }
		c.OnRequest(func(r *colly.Request) { note("request", r) })
		c.OnResponse(func(r *colly.Response) { note("response", r.Request) })
		c.OnHTML("h1", func(e *colly.HTMLElement) { note("html "+e.Text, e.Request) })
		c.OnHTML("a", func(e *colly.HTMLElement) {
			if err := e.Request.Visit(e.Attr("href")); err != nil {
				t.Error(err)
			}
		})
		c.OnXML("//h1", func(e *colly.XMLElement) { note("xml "+e.Text, e.Request) })
		c.OnError(func(r *colly.Response, err error) { note("error "+err.Error(), r.Request) })
		c.OnScraped(func(r *colly.Response) { note("scraped", r.Request) })
		if err := c.Visit("http://a.test/"); err != nil {
			t.Fatal(err)
		}
		if err := crawl.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"request /", "response /", "html One /", "xml One /", "scraped /",
			"request /gone", "error Gone /gone", "request /moved",
			"request /two", "response /two", "html Zwölf /two", "xml Zwölf /two", "scraped /two",
		}
		if !slices.Equal(got, want) {
			t.Errorf("callbacks\n%q\nwant\n%q", got, want)
		}
	})
}

// TestCallbacksTake203ForAnAnswer: a page with any 2xx status reaches OnResponse with its status.
func TestCallbacksTake203ForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := crawltest.HTML("<a href=/next>x</a>")
		answer.Status = http.StatusNonAuthoritativeInfo
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(answer)})
		crawl, c := newCrawl(t, httpfetch.Config{Transport: web})
		c.OnHTML("a", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		c.OnError(func(_ *colly.Response, err error) { t.Errorf("OnError: %v", err) })
		if err := c.Visit("http://a.test/"); err != nil {
			t.Fatal(err)
		}
		if err := crawl.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := requestedPaths(web), []string{"/robots.txt", "/", "/next"}; !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	})
}
