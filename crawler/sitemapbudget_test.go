package crawler_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestSitemapsAreBounded: indexes that list endless indexes are read up to the limit.
func TestSitemapsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := func(r crawltest.PageRequest) crawltest.Response {
			var urls []string
			for i := range 8 {
				urls = append(urls, fmt.Sprintf("http://b.test%s%d", r.Path, i))
			}
			return sitemapPage("sitemapindex", urls...)(r)
		}
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
				Robots: robotsText("User-agent: *\nSitemap: http://b.test/m\n", 0, nil)},
			crawltest.Site{Host: "b.test", Fallback: endless})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Settings.MaxSitemapsPerHost = 30
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := c.Stats().SitemapFetches; n != 30 {
			t.Errorf("%d sitemaps were visited, want 30", n)
		}
	})
}

// TestSitemapsOfAHostAreItsOwn: if one site's index lists endless sitemaps, on another host too,
// the sitemaps of that other host are still read.
func TestSitemapsOfAHostAreItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var endless []string
		for i := range 40 {
			endless = append(endless, fmt.Sprintf("http://a.test/m%d", i), fmt.Sprintf("http://b.test/m%d", i))
		}
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Robots: robotsText("User-agent: *\nSitemap: http://a.test/index\n", 0, nil),
				Pages: map[string]crawltest.PageFunc{"/": pageWithLinks("/late"),
					"/late": pageWithLinks("http://b.test/"), "/index": sitemapPage("sitemapindex", endless...)},
				Fallback: sitemapPage("urlset")},
			crawltest.Site{Host: "b.test", Robots: robotsText("User-agent: *\nSitemap: http://b.test/own\n", 0, nil),
				Pages: map[string]crawltest.PageFunc{"/": pageWithLinks(), "/listed": pageWithLinks(),
					"/own": sitemapPage("urlset", "http://b.test/listed")},
				Fallback: sitemapPage("urlset")})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Settings.MaxSitemapsPerHost = 6
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		if times["http://b.test/listed"] != 1 {
			t.Errorf("requests %v: want what the second host's own sitemap lists", times)
		}
		if n := c.Stats().SitemapFetches; n != 6+1 {
			t.Errorf("%d sitemaps were visited, want 6 for the first host, and 1", n)
		}
	})
}
