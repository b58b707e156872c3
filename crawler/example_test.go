package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
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

// assemble makes a Crawler from its parts. A real program keeps the state in storage/bolt, and leaves
// Transport and Delay at their defaults.
func assemble(web *crawltest.Web) (*crawler.Crawler, error) {
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		return nil, err
	}
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "examplebot/1.0 (+https://example.org/bot)",
		Transport: web})
	if err != nil {
		return nil, err
	}
	store := memory.New(memory.Config{})
	limits := politeness.NewLimiter(politeness.LimiterConfig{})
	robotsGate := gate.New(gate.Config{Agent: agent}, store)
	return &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{CleanURL: robotsGate.CleanURL, Budget: limits}),
		Gate:     robotsGate, Limiter: limits, Fetcher: fetcher,
		Policy: politeness.Policy{Delay: 10 * time.Millisecond}, Settings: crawler.Settings{Workers: 1},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, nil
}

// privateRobots is a robots.txt that disallows /private.
var privateRobots = crawltest.StaticRobots(crawltest.RobotsSpec{
	Response:     crawltest.Text("User-agent: *\nDisallow: /private\n"),
	IsDisallowed: func(path string) bool { return path == "/private" },
})

// crawlFrom queues a seed, and crawls until the frontier is empty.
func crawlFrom(c *crawler.Crawler, seed string) error {
	u, err := decorum.ParseURL(seed)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := c.Frontier.Discover(ctx, storage.Entry{URL: u, Source: storage.SourceSeed}); err != nil {
		return err
	}
	return c.Run(ctx)
}

// A Handler reads a page and returns its links. The error that it returns decides what becomes of the
// URL.
func ExampleHandler() {
	web := crawltest.New(crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<title>Home</title><a href=/login>x</a><a href=/today>y</a>")),
		"/login": crawltest.StaticPage(crawltest.HTML("<title>Log in</title>")),
		"/today": crawltest.StaticPage(crawltest.HTML("<title>Today</title>")),
	}})
	c, err := assemble(web)
	if err != nil {
		fmt.Println(err)
		return
	}
	read := func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
		switch {
		case v.URL().PathAndQuery() == "/login":
			return nil, decorum.Drop("a page for people")
		case v.URL().PathAndQuery() == "/today" && v.Lease.FailedAttempts == 0:
			return nil, decorum.RetryAfter(50 * time.Millisecond) // not ready yet
		}
		fmt.Println(v.URL().PathAndQuery(), v.PageScanResult().Title)
		return c.LinksToFollow(ctx, v)
	}
	// A function that takes a Handler and returns one wraps it.
	logged := func(next crawler.Handler) crawler.Handler {
		return func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
			links, err := next(ctx, v)
			if err != nil {
				fmt.Println(v.URL().PathAndQuery(), err)
			}
			return links, err
		}
	}
	c.Handler = logged(read)
	if err := crawlFrom(c, "http://a.example/"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// / Home
	// /login handle: dropped: a page for people
	// /today retry after 50ms
	// /today Today
}

// Hooks observe a crawl: here, each request and each URL that robots.txt disallows.
func ExampleHooks() {
	web := crawltest.New(crawltest.Site{Host: "a.example", Robots: privateRobots,
		Pages: map[string]crawltest.PageFunc{
			"/":        crawltest.StaticPage(crawltest.HTML("<a href=/private>x</a><a href=/gone>y</a>")),
			"/private": crawltest.StaticPage(crawltest.HTML("never requested")),
		}})
	c, err := assemble(web)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Hooks = crawler.Hooks{
		Visited: func(v *crawler.Visit) { fmt.Println("visited", v.URL().PathAndQuery(), v.Status()) },
		VisitRefused: func(l storage.Lease, d decorum.Decision) {
			if d.Action == decorum.Refuse { // others only wait
				fmt.Println("refused", l.URL.PathAndQuery(), "by", d.Reason, "line", d.Line)
			}
		},
	}
	if err := crawlFrom(c, "http://a.example/"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// visited /robots.txt 200
	// visited / 200
	// refused /private by robots.txt line 2
	// visited /gone 404
}

// A titleRecorder is a Recorder that writes the URL and the title of each page.
type titleRecorder struct {
	mu sync.Mutex // guards w: many workers record at a time
	w  io.Writer
}

func (r *titleRecorder) Record(_ context.Context, v *crawler.Visit) error {
	page := v.PageScanResult()
	if !v.OK() || page == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := fmt.Fprintf(r.w, "%s\t%s\n", v.URL(), page.Title)
	return err // an error stops the crawl; the page is then visited again
}

// A Recorder writes pages down before they are acked, so that a crash loses none.
func ExampleRecorder() {
	web := crawltest.New(crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<title>Home</title><a href=/about>x</a>")),
		"/about": crawltest.StaticPage(crawltest.HTML("<title>About us</title>")),
	}})
	c, err := assemble(web)
	if err != nil {
		fmt.Println(err)
		return
	}
	var table strings.Builder
	c.PageRecorder = &titleRecorder{w: &table}
	if err := crawlFrom(c, "http://a.example/"); err != nil {
		fmt.Println(err)
	}
	fmt.Print(table.String())
	// Output:
	// http://a.example/	Home
	// http://a.example/about	About us
}

// An OnDemandCrawl makes one polite visit for a caller that waits for it.
func ExampleOnDemandCrawl() {
	web := crawltest.New(crawltest.Site{Host: "a.example", Robots: privateRobots,
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("<title>Home</title>"))}})
	c, err := assemble(web)
	if err != nil {
		fmt.Println(err)
		return
	}
	onDemand, err := crawler.NewOnDemandCrawl(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/", "/private"} {
		u, err := decorum.ParseURL("http://a.example" + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		v, err := onDemand.Visit(context.Background(), u)
		if errors.Is(err, decorum.Disallowed) {
			fmt.Println(path, "is disallowed")
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(path, v.Status(), v.PageScanResult().Title)
	}
	// Output:
	// / 200 Home
	// /private is disallowed
}
