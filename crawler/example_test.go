package crawler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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

// assemble puts a crawl together, one room after the other. A real one keeps
// its state in storage/bolt and leaves Transport and Delay as they are.
func assemble(web *crawltest.Web) (*crawler.Crawler, error) {
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		return nil, err
	}
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "examplebot/1.0 (+https://example.org/bot)", Transport: web})
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

// A Handler reads pages and returns links; what it returns as an error says
// what becomes of the URL.
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
			return nil, decorum.RetryAfter(50 * time.Millisecond) // not ready: later again
		}
		fmt.Println(v.URL().PathAndQuery(), v.PageScanResult().Title)
		return c.LinksToFollow(ctx, v)
	}
	// A Handler is a function: what goes around it is one too.
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
	seed, err := decorum.ParseURL("http://a.example/")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := c.Frontier.Discover(context.Background(), storage.Entry{URL: seed, Source: storage.SourceSeed}); err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// / Home
	// /login handle: dropped: a page for people
	// /today retry after 50ms
	// /today Today
}
