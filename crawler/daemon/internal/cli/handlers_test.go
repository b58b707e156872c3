package cli

import (
	"bytes"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A program's callbacks read the pages and add the URLs to visit next.
func TestHandlers(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nhandler: titles\n")
	var mu sync.Mutex
	var titles []string
	var stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&bytes.Buffer{}),
		Stderr: terminal.NewStatusLineWriter(&stderr),
		Dependencies: engine.Dependencies{Handlers: collyfetch.NamedCallbacks{
			"titles": func(c *collyfetch.Collector) {
				c.OnHTML("title", func(e *colly.HTMLElement) {
					mu.Lock()
					defer mu.Unlock()
					titles = append(titles, e.Text)
				})
				c.OnHTML("a[href^='/b']", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
			},
		}}}}
	code := a.main(v.CrawlArgs("-c", project, "http://shop.example/"))
	slices.Sort(titles)
	if code != command.ExitDone || !slices.Equal(titles, []string{"B", "Shop & Co."}) {
		t.Errorf("exit code %d, titles %q; want those of the two pages that were visited\n%s", code, titles, &stderr)
	}
}

// With callbacks the crawl does not follow the links of feeds by itself. It reads the body of a feed
// that callbacks visit only if fetch.content_types has its type.
func TestHandlersAndFeeds(t *testing.T) {
	site := feedSite()
	feed := site.Pages["/news/feed"](crawltest.PageRequest{})
	feed.Header.Set("Content-Type", "application/rss+xml")
	site.Pages["/news/feed"] = crawltest.StaticPage(feed)
	v := daemontest.NewWebFixture(t, site)
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nhandler: links\n")
	var stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&bytes.Buffer{}),
		Stderr: terminal.NewStatusLineWriter(&stderr),
		Dependencies: engine.Dependencies{Handlers: collyfetch.NamedCallbacks{"links": func(c *collyfetch.Collector) {
			c.OnHTML("a", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		}}}}}
	code := a.main(v.CrawlArgs("-c", project, "http://gazette.example/"))
	want := []string{"seed http://gazette.example/", "link http://gazette.example/news/feed"}
	if got := visitSources(t, v); code != command.ExitDone || !slices.Equal(got, want) {
		t.Errorf("exit code %d, visits %q, want %q\n%s", code, got, want, &stderr)
	}
	if feed := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile))[1]; feed.Bytes != 0 {
		t.Errorf("%d bytes of the feed were read", feed.Bytes)
	}
}
