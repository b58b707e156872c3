package httpfetch_test

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

// A crawl whose pages a crawler.Handler reads needs no colly: a Fetcher of this package sends its
// requests.
func Example() {
	web := crawltest.New(crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<title>Home</title><a href=/today>today</a>")),
		"/today": crawltest.StaticPage(crawltest.HTML("<title>Today</title>")),
	}})
	fetcher, err := httpfetch.New(httpfetch.Config{
		UserAgent: "examplebot/1.0 (+https://example.org/bot)",
		Transport: web, // omit it to use the network
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memory.New(memory.Config{}) // storage/bolt keeps the crawl on disk
	crawl := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{}), Gate: gate.New(gate.Config{Agent: agent}, store),
		Policy:  politeness.Policy{Delay: 10 * time.Millisecond},
		Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher: fetcher, Settings: crawler.Settings{Workers: 1}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	crawl.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
		fmt.Println(v.URL(), v.PageScanResult().Title)
		return crawl.LinksToFollow(ctx, v)
	}
	ctx := context.Background()
	seed, err := decorum.ParseURL("http://a.example/")
	if err == nil {
		_, err = crawl.Frontier.Discover(ctx, storage.Entry{URL: seed, Source: storage.SourceSeed})
	}
	if err == nil {
		err = crawl.Run(ctx)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// http://a.example/ Home
	// http://a.example/today Today
}
