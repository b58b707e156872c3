package collyfetch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/storage"
)

// TestLinksHeldAreBounded: a page whose many links each have a context does not hold all of them in
// memory until it has been read, and loses none of them.
func TestLinksHeldAreBounded(t *testing.T) {
	for name, visit := range visitFuncs {
		t.Run(name, func(t *testing.T) { testLinksHeldAreBounded(t, visit) })
	}
}

func testLinksHeldAreBounded(t *testing.T, visit visitFunc) {
	synctest.Test(t, func(t *testing.T) {
		const links, each, maxBytes = 1000, 30_000, 4 << 20
		var page strings.Builder
		for i := range links {
			fmt.Fprintf(&page, "<a href=/%d>x</a>", i)
		}
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML(page.String()))}})
		crawl, c := newCrawl(t, httpfetch.Config{Transport: web})
		crawl.Settings.MaxPages = 1
		linkBytes := 0
		crawl.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
			links, err := c.Handle(ctx, v)
			for _, l := range links {
				linkBytes += len(l.CallbackData)
			}
			return links, err
		}
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			e.Request.Ctx.Put("text", strings.Repeat("x", each))
			must(t, visit(e.Request, e.Attr("href")))
		})
		must(t, c.Visit("http://a.test/"))
		_ = crawl.Run(t.Context()) // ErrPages
		if linkBytes > maxBytes {
			t.Errorf("%d bytes of contexts were held, want %d at most", linkBytes, maxBytes)
		}
		counts, err := crawl.Frontier.Store().(storage.Inspector).Counts(t.Context())
		must(t, err)
		if counts.QueuedURLs != links {
			t.Errorf("%d URLs are queued, want %d", counts.QueuedURLs, links)
		}
	})
}
