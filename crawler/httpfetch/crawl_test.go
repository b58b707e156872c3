package httpfetch_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"
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

const userAgent = "testbot/1.0 (+https://bot.test/)"

// newFetcher returns a fetcher for cfg with the tests' User-Agent.
func newFetcher(t testing.TB, cfg httpfetch.Config) *httpfetch.Fetcher {
	t.Helper()
	cfg.UserAgent = userAgent
	fetcher, err := httpfetch.New(cfg)
	must(t, err)
	return fetcher
}

// newCrawl returns a crawl that visits pages and the pages they link to through fetcher.
func newCrawl(t *testing.T, fetcher crawler.Fetcher, pages ...string) *crawler.Crawler {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	must(t, err)
	store := memory.New(memory.Config{})
	crawl := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{}), Gate: gate.New(gate.Config{Agent: agent}, store),
		Policy:  politeness.Policy{Delay: 50 * time.Millisecond},
		Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher: fetcher, Settings: crawler.Settings{Workers: 4}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, page := range pages {
		u, err := decorum.ParseURL(page)
		must(t, err)
		_, err = crawl.Frontier.Discover(t.Context(), storage.Entry{URL: u, Source: storage.SourceSeed})
		must(t, err)
	}
	return crawl
}

// serveWeb serves the web on a real socket, and returns the connect-to rules that lead to it.
func serveWeb(t *testing.T, web *crawltest.Web) []string {
	t.Helper()
	server, err := web.Start("127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { server.Close() })
	return []string{"::" + server.Addr}
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A roundTripFunc is a function that serves as a transport.
type roundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
