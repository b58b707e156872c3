package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// startSite serves an endless site with pages of 20 KiB. Each page links to the 25 pages after it
// and to the 25 before, so that most links are known, as on the web.
func startSite(b *testing.B) *httptest.Server {
	filler := "<p class=text>" + strings.Repeat("lorem ipsum dolor sit amet ", 12) + "</p>\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			io.WriteString(w, "User-agent: *\nDisallow: /private/\n")
			return
		}
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/page/"))
		var page strings.Builder
		fmt.Fprintf(&page, "<!doctype html><title>Page %d</title>\n", n)
		for i := range 50 {
			fmt.Fprintf(&page, "<a href=\"/page/%d\">page</a>", max(0, n-25+i+1))
			page.WriteString(filler)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, page.String())
	}))
	b.Cleanup(s.Close)
	return s
}

// BenchmarkCrawl compares the time per page of decorum as a library, of the decorum command and of
// colly.
func BenchmarkCrawl(b *testing.B) {
	b.Run("decorum/memory", func(b *testing.B) { benchmarkDecorum(b, memory.New(memory.Config{})) })
	b.Run("decorum/bolt", func(b *testing.B) {
		store, err := bolt.Open(filepath.Join(b.TempDir(), "frontier.db"), bolt.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		benchmarkDecorum(b, store)
	})
	b.Run("decorum/command", benchmarkCommand)
	b.Run("colly", benchmarkColly)
}

// benchmarkDecorum visits b.N pages with decorum as a library and the given store.
func benchmarkDecorum(b *testing.B, store storage.Store) {
	seed, err := decorum.ParseURL(startSite(b).URL + "/page/0")
	if err != nil {
		b.Fatal(err)
	}
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "bench/1 (+mailto:bench@example.com)",
		AllowPrivate: true})
	if err != nil {
		b.Fatal(err)
	}
	c := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{
			Scope: frontier.NewScope(frontier.ScopeConfig{MaxDepth: 1 << 30}, []decorum.URL{seed}),
		}),
		Gate:     gate.New(gate.Config{Agent: robots.AgentFromName("bench")}, store),
		Policy:   politeness.Policy{Delay: politeness.NoDelay, AdaptiveFactor: -1},
		Limiter:  politeness.NewLimiter(politeness.LimiterConfig{}),
		Fetcher:  fetcher,
		Settings: crawler.Settings{Workers: 1, MaxPages: int64(b.N)},
		Log:      slog.New(slog.DiscardHandler),
	}
	if _, err := c.Frontier.Discover(context.Background(), storage.Entry{URL: seed}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Run(context.Background()); !errors.Is(err, crawler.ErrPages) {
		b.Fatal(err)
	}
	b.StopTimer()
	if n := c.Stats().Pages; n != int64(b.N) {
		b.Fatalf("%d pages, want %d", n, b.N)
	}
}

// benchmarkColly visits b.N pages with colly, used as in its documentation, but obeying robots.txt.
func benchmarkColly(b *testing.B) {
	s := startSite(b)
	c := colly.NewCollector()
	c.IgnoreRobotsTxt = false
	pages := 0
	c.OnResponse(func(*colly.Response) { pages++ })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if pages < b.N {
			_ = e.Request.Visit(e.Attr("href")) // colly returns an error for a known page
		}
	})
	b.ReportAllocs()
	b.ResetTimer()
	if err := c.Visit(s.URL + "/page/0"); err != nil {
		b.Fatal(err)
	}
}
