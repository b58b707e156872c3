package collyfetch_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

const userAgent = "testbot/1.0 (+https://bot.test/)"

// newCrawl returns a crawl and its collector, ready for callbacks.
func newCrawl(t *testing.T, cfg collyfetch.Config) (*crawler.Crawler, *collyfetch.Collector) {
	t.Helper()
	return newCrawlWithStore(t, memory.New(memory.Config{}), cfg)
}

// newCrawlWithStore is begin for a crawl whose state is in a store.
func newCrawlWithStore(t *testing.T, store storage.Store, cfg collyfetch.Config) (*crawler.Crawler, *collyfetch.Collector) {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	cfg.UserAgent = userAgent
	fetcher, err := collyfetch.NewHTTPFetcher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := frontier.New(store, frontier.Config{})
	c := collyfetch.NewCollector(f, fetcher)
	return &crawler.Crawler{
		Frontier: f, Gate: robots.NewGate(robots.GateConfig{Agent: agent}, store),
		Policy: politeness.Policy{Delay: 50 * time.Millisecond}, Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher: c, Handler: c.Handle, Settings: crawler.Settings{Workers: 4},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, c
}

// serveWeb puts the web on a real socket, and says how to get there.
func serveWeb(t *testing.T, web *crawltest.Web) []string {
	t.Helper()
	server, err := web.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return []string{"::" + server.Addr}
}

// requestedPaths returns the paths that the web was asked for, in order.
func requestedPaths(web *crawltest.Web) []string {
	var p []string
	for _, x := range web.Log() {
		p = append(p, strings.TrimPrefix(x.URL, "http://a.test"))
	}
	return p
}

// TestCallbacksEnqueue: Request.Visit on a disallowed URL, on a seen one and on
// a good one. Only the last is requested, and not before the host is due, as
// the server sees it.
func TestCallbacksEnqueue(t *testing.T) {
	const delay = 300 * time.Millisecond
	web := crawltest.New(crawltest.Site{Host: "a.test",
		Robots: crawltest.StaticRobots(crawltest.Robots{
			Response: crawltest.Text("User-agent: testbot\nDisallow: /private\nCrawl-delay: 0.3\n"), CrawlDelay: delay,
			IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/private") }}),
		Fallback: crawltest.StaticPage(crawltest.HTML("<h1>Hello</h1><a class=next href='good?x=1'>next</a>"))})
	crawl, c := newCrawl(t, collyfetch.Config{ConnectToRules: serveWeb(t, web), AllowPrivate: true})
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
	if report := web.Judge(crawltest.JudgeOptions{MinDelay: 50 * time.Millisecond, RequiredProductToken: "testbot"}); !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}

// TestCallbacks: each kind of callback is called for the pages it is for, in
// colly's order, and never for a robots.txt or a link.
func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":      crawltest.StaticPage(crawltest.HTML("<h1>One</h1><a href=/gone>x</a><a href=/moved>y</a>")),
			"/gone":  crawltest.StaticPage(crawltest.Status(http.StatusGone)),
			"/moved": crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/two")),
			"/two":   crawltest.StaticPage(crawltest.ResponseOfType("text/html; charset=iso-8859-1", "<h1>Zw\xf6lf</h1>")),
		}})
		crawl, c := newCrawl(t, collyfetch.Config{Transport: web})
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

// TestNoTicketNoRequest: the turnstile refuses a request that nobody permitted.
func TestNoTicketNoRequest(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test"})
	fetcher, err := collyfetch.NewHTTPFetcher(collyfetch.Config{UserAgent: userAgent, Transport: web})
	if err != nil {
		t.Fatal(err)
	}
	ticket := robotsTicket(t, "http://a.test/robots.txt")
	if _, err := fetcher.Fetch(t.Context(), crawler.Ticket{}); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("the zero ticket: %v, want Unticketed", err)
	}
	if _, err := fetcher.Fetch(t.Context(), ticket); err != nil {
		t.Errorf("a good ticket: %v", err)
	}
	if _, err := fetcher.Fetch(t.Context(), ticket); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("a ticket used twice: %v, want Unticketed", err)
	}
	if n := len(web.Log()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
}

// robotsTicket returns a ticket for a robots.txt, got as the hallway gets it.
func robotsTicket(t *testing.T, url string) crawler.Ticket {
	t.Helper()
	return ticketWithLimits(t, politeness.NewLimiter(politeness.LimiterConfig{}), url)
}

func ticketWithLimits(t *testing.T, limits *politeness.Limiter, url string) crawler.Ticket {
	t.Helper()
	return newTicket(t, limits, checkRobots(t, newGate(t), url))
}

// pageTicket returns a ticket for a page of an origin that has no robots.txt.
func pageTicket(t testing.TB, url string) crawler.Ticket {
	t.Helper()
	gate := newGate(t)
	clearance := checkRobots(t, gate, url)
	if clearance.IsForRobots() {
		none := &decorum.Response{URL: clearance.URL(), Status: http.StatusNotFound, Header: http.Header{}}
		if _, err := gate.RecordFetch(t.Context(), time.Now(), clearance, none, nil); err != nil {
			t.Fatal(err)
		}
		clearance = checkRobots(t, gate, url)
	}
	return newTicket(t, politeness.NewLimiter(politeness.LimiterConfig{}), clearance)
}

func newGate(t testing.TB) *robots.Gate {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	return robots.NewGate(robots.GateConfig{Agent: agent}, memory.New(memory.Config{}))
}

func checkRobots(t testing.TB, gate *robots.Gate, url string) robots.Clearance {
	t.Helper()
	u, err := decorum.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	clearance, err := gate.Check(t.Context(), time.Now(), u)
	if err != nil {
		t.Fatal(err)
	}
	return clearance
}

func newTicket(t testing.TB, limits *politeness.Limiter, clearance robots.Clearance) crawler.Ticket {
	t.Helper()
	now := time.Now()
	permit, err := limits.RequestPermit(now, clearance.URL().Origin().Host(), politeness.PermitRequest{NotBefore: now})
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := crawler.NewTicket(clearance, permit)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// TestFetch: what becomes of answers of many kinds.
func TestFetch(t *testing.T) {
	big := strings.Repeat("x", 2000)
	for _, tt := range []struct {
		name      string
		answer    crawltest.Response
		status    int
		body      string
		truncated bool
		fails     bool
	}{
		{name: "a page", answer: crawltest.HTML("hello"), status: 200, body: "hello"},
		{name: "gzip", answer: crawltest.Response{Body: "hello hello", GzipIfAccepted: true}, status: 200, body: "hello hello"},
		{name: "no content", answer: crawltest.Status(204), status: 204},
		{name: "an error page", answer: crawltest.Status(500), status: 500, body: "Internal Server Error\n"},
		{name: "a redirect is an answer", answer: crawltest.Redirect(302, "http://b.test/"), status: 302, body: "Found\n"},
		{name: "a redirect to nowhere", answer: crawltest.Redirect(302, "http://%zz/"), status: 302, body: "Found\n"},
		{name: "too long", answer: crawltest.HTML(big), status: 200, body: big[:1000], truncated: true},
		{name: "long, and just fits", answer: crawltest.HTML(big[:1000]), status: 200, body: big[:1000]},
		{name: "a gzip bomb", answer: crawltest.Response{Body: strings.Repeat("x", 1<<20), GzipIfAccepted: true}, status: 200, body: big[:1000], truncated: true},
		{name: "not a type that is wanted", answer: crawltest.ResponseOfType("video/mp4", "moo"), status: 200, truncated: true},
		{name: "a type in odd letters", answer: crawltest.ResponseOfType("Text/HTML;charset=x;;", "hello"), status: 200, body: "hello"},
		{name: "bytes are kept as they came", answer: crawltest.ResponseOfType("text/html; charset=iso-8859-1", "Zw\xf6lf"), status: 200, body: "Zw\xf6lf"},
		{name: "reset", answer: crawltest.Response{Fault: crawltest.Reset}, fails: true},
		{name: "reset in the body", answer: crawltest.Response{Body: big, Fault: crawltest.ResetBody}, fails: true},
		{name: "shorter than it said", answer: crawltest.Response{Body: big[:500], Fault: crawltest.ShortBody}, fails: true},
		{name: "without its last chunk", answer: crawltest.Response{Body: big[:500], Fault: crawltest.MissingLastChunk}, fails: true},
		{name: "broken gzip", answer: crawltest.Response{Body: big[:500], Fault: crawltest.BadGzip}, fails: true},
		{name: "never", answer: crawltest.Response{Fault: crawltest.Hang}, fails: true},
		{name: "never ends", answer: crawltest.Response{Body: big[:500], Fault: crawltest.StallBody}, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(tt.answer)}})
				crawl, _ := newCrawl(t, collyfetch.Config{Transport: web, MaxBody: 1000, Timeout: 5 * time.Second, ContentTypes: []string{"text/html", "text/plain"}})
				crawl.Settings.MaxAttempts = 1
				var got *crawler.Visit
				crawl.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
				crawl.Hooks.Visited = func(v *crawler.Visit) {
					if !v.Clearance.IsForRobots() {
						got = v
					}
				}
				seed, err := decorum.ParseURL("http://a.test/")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := crawl.Frontier.Discover(t.Context(), storage.Entry{URL: seed}); err != nil {
					t.Fatal(err)
				}
				// A redirect leads to a host that is not there.
				if err := crawl.Run(t.Context()); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
					t.Fatal(err)
				}
				switch {
				case got == nil:
					t.Fatal("the page was not visited")
				case tt.fails && (got.Response != nil || !errors.Is(got.Err, decorum.Unreachable)):
					t.Errorf("got %+v, %v; want no response and Unreachable", got.Response, got.Err)
				case tt.fails:
				case got.Response == nil:
					t.Errorf("no response: %v", got.Err)
				case got.Status() != tt.status || string(got.Response.Body) != tt.body || got.Response.BodyLimitExceeded != tt.truncated:
					t.Errorf("got %d %q truncated=%v", got.Status(), got.Response.Body, got.Response.BodyLimitExceeded)
				}
			})
		})
	}
}

// TestNonPublicAddresses: a page that leads to the machine itself is
// refused when the connection is made, whatever its name said; nothing is sent.
func TestNonPublicAddresses(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test"})
	fetcher, err := collyfetch.NewHTTPFetcher(collyfetch.Config{UserAgent: userAgent, ConnectToRules: serveWeb(t, web)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetcher.Fetch(t.Context(), robotsTicket(t, "http://a.test/")); !errors.Is(err, decorum.Forbidden) {
		t.Errorf("got %v, want Forbidden", err)
	}
	if n := len(web.Log()); n != 0 {
		t.Errorf("the server saw %d requests", n)
	}
}

// TestBrokenConnectionIsNotUsedTwice: net/http repeats a GET by itself when a
// connection that was kept open is reset. Here it must not: the server would
// see a second visit that nobody permitted.
func TestBrokenConnectionIsNotUsedTwice(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<a href=/reset>x</a>")),
		"/reset": crawltest.StaticPage(crawltest.Response{Fault: crawltest.Reset}),
	}})
	crawl, c := newCrawl(t, collyfetch.Config{ConnectToRules: serveWeb(t, web), AllowPrivate: true})
	crawl.Settings.MaxAttempts = 1
	c.OnHTML("a", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	if err := c.Visit("http://a.test/"); err != nil {
		t.Fatal(err)
	}
	if err := crawl.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := requestedPaths(web), []string{"/robots.txt", "/", "/reset"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

// TestRequestsHaveNoBody, over HTTP/1.1 and HTTP/2.
func TestRequestsHaveNoBody(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var proto string
		var length int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto, length = r.Proto, r.ContentLength }))
		s.EnableHTTP2 = h2
		s.StartTLS()
		defer s.Close()
		fetcher, err := collyfetch.NewHTTPFetcher(collyfetch.Config{UserAgent: userAgent, Transport: s.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fetcher.Fetch(t.Context(), robotsTicket(t, s.URL)); err != nil {
			t.Fatal(err)
		}
		if length != 0 || (proto == "HTTP/2.0") != h2 {
			t.Errorf("%s request with a body of length %d, want 0", proto, length)
		}
	}
}

// TestCallbacksTake203ForAnAnswer, as they do every 2xx.
func TestCallbacksTake203ForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := crawltest.HTML("<a href=/next>x</a>")
		answer.Status = http.StatusNonAuthoritativeInfo
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(answer)})
		crawl, c := newCrawl(t, collyfetch.Config{Transport: web})
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

// TestSitemapsAreReadWhole: the limit of bodies is for pages; of a sitemap as much
// is read as sitemaps.org allows.
func TestSitemapsAreReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list strings.Builder
		list.WriteString(strings.Repeat("http://a.test/\n", 1000))
		list.WriteString("http://a.test/last\n")
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: crawltest.StaticRobots(crawltest.Robots{Response: crawltest.Text("Sitemap: http://a.test/map.txt\n")}),
			Pages: map[string]crawltest.PageFunc{"/map.txt": crawltest.StaticPage(crawltest.Text(list.String())),
				"/": crawltest.StaticPage(crawltest.HTML("home")), "/last": crawltest.StaticPage(crawltest.HTML("last"))}})
		crawl, c := newCrawl(t, collyfetch.Config{Transport: web, MaxBody: 1000})
		if err := c.Visit("http://a.test/"); err != nil {
			t.Fatal(err)
		}
		if err := crawl.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(web.Log(), func(x crawltest.Exchange) bool { return x.URL == "http://a.test/last" }) {
			t.Error("the end of the sitemap was not read")
		}
	})
}
