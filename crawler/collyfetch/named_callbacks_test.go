package collyfetch_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestNamedCallbacks: the callbacks with the given name get the pages of the crawl, and the bodies
// they post are bounded.
func TestNamedCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var titles []string
		var posted error
		callbacks := collyfetch.NamedCallbacks{
			"titles": func(c *collyfetch.Collector) {
				c.OnHTML("h1", func(e *colly.HTMLElement) {
					titles = append(titles, e.Text)
					posted = e.Request.PostRaw("/form", []byte("too long"))
				})
			},
			"links": func(*collyfetch.Collector) { t.Error("callbacks of another name are registered") },
			"none":  nil,
		}
		if names := callbacks.Names(); !slices.Equal(names, []string{"links", "titles"}) {
			t.Errorf("names %q, want links and titles", names)
		}
		fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: smallWeb()})
		must(t, err)
		crawl, c := newCrawl(t, httpfetch.Config{})
		callbacks.Attach("titles", crawl, fetcher, 5)
		must(t, c.Visit("http://a.test/"))
		must(t, crawl.Run(t.Context()))
		if !slices.Equal(titles, []string{"Village"}) {
			t.Errorf("titles %q, want that of the page", titles)
		}
		if posted == nil {
			t.Error("a body of 8 bytes is queued, want at most 5")
		}
	})
}
