package crawler_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// gzippedSitemap returns a sitemap of pages as a compressed file of type text/plain.
func gzippedSitemap(t *testing.T, urls ...string) crawltest.PageFunc {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	fmt.Fprint(zw, sitemapPage("urlset", urls...)(crawltest.PageRequest{}).Body)
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return crawltest.StaticPage(crawltest.ResponseOfType("text/plain", b.String()))
}

// sitemapOnlySites returns sites without links, whose pages only sitemaps list: three levels of
// indexes, and sitemaps that are compressed, damaged, on another host or redirected. robots.txt
// disallows one sitemap and some pages. open and closed are the allowed and the disallowed pages.
func sitemapOnlySites(t *testing.T) (sites []crawltest.Site, open, closed []string) {
	t.Helper()
	pages := func(name string, n int) (urls []string) {
		for i := range n {
			urls = append(urls, fmt.Sprintf("http://a.test/%s/%d", name, i))
		}
		return urls
	}
	big := pages("big", 2500) // more than one batch
	broken := sitemapPage("urlset", pages("broken", 5)...)(crawltest.PageRequest{})
	broken.Body = strings.Replace(broken.Body, "</urlset>", "<url><loc", 1)
	site := crawltest.Site{
		Host: "a.test",
		Robots: robotsText("User-agent: *\nDisallow: /closed\nSitemap: http://a.test/maps/1.xml\n", 0,
			func(p string) bool { return strings.HasPrefix(p, "/closed") }),
		Pages: map[string]crawltest.PageFunc{
			"/maps/1.xml":   sitemapPage("sitemapindex", "http://a.test/maps/2.xml", "http://a.test/maps/top.xml"),
			"/maps/2.xml":   crawltest.StaticPage(crawltest.Redirect(302, "/maps/two.xml")),
			"/maps/two.xml": sitemapPage("sitemapindex", "http://a.test/maps/3.xml", "http://a.test/maps/none.xml"),
			"/maps/3.xml": sitemapPage("sitemapindex", "http://a.test/maps/packed.xml", "http://a.test/maps/broken.xml",
				"http://cdn.test/elsewhere.xml", "http://a.test/closed.xml", "http://a.test/maps/old.xml",
				"http://a.test/maps/big.xml"),
			"/maps/top.xml":    sitemapPage("urlset", append(pages("top", 3), pages("closed", 3)...)...),
			"/maps/packed.xml": gzippedSitemap(t, pages("packed", 5)...),
			"/maps/broken.xml": crawltest.StaticPage(broken),
			"/maps/old.xml":    crawltest.StaticPage(crawltest.Redirect(301, "/maps/new.xml")),
			"/maps/new.xml":    sitemapPage("urlset", pages("moved", 4)...),
			"/maps/big.xml":    sitemapPage("urlset", big...),
			"/maps/none.xml":   crawltest.StaticPage(crawltest.Status(404)),
			"/closed.xml":      sitemapPage("urlset", pages("never", 3)...),
		},
		Fallback: crawltest.StaticPage(crawltest.HTML("a page without links")),
	}
	cdn := crawltest.Site{Host: "cdn.test",
		Pages: map[string]crawltest.PageFunc{"/elsewhere.xml": sitemapPage("urlset", pages("elsewhere", 4)...)}}
	open = slices.Concat([]string{"http://a.test/"}, pages("top", 3), pages("packed", 5), pages("broken", 5),
		pages("moved", 4), pages("elsewhere", 4), big)
	return []crawltest.Site{site, cdn}, open, slices.Concat(pages("closed", 3), pages("never", 3))
}

// TestSitemapOnlySite: a site whose pages only sitemaps list is crawled completely, except for what
// robots.txt disallows.
func TestSitemapOnlySite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, open, closed := sitemapOnlySites(t)
		web := crawltest.New(sites...)
		runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/"))
		_, times := countRequests(web.Log())
		for _, u := range open {
			if times[u] != 1 {
				t.Errorf("%s was requested %d times", u, times[u])
			}
		}
		for _, u := range append(closed, "http://a.test/closed.xml") {
			if times[u] != 0 {
				t.Errorf("%s was requested", u)
			}
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestSitemapBody: MaxSitemapBody bounds the bytes read of a sitemap, after decompression,
// independently of the limit of a page.
func TestSitemapBody(t *testing.T) {
	var urls []string
	for i := range 300 {
		urls = append(urls, fmt.Sprintf("http://a.test/%d", i))
	}
	for name, sitemap := range map[string]crawltest.PageFunc{"plain": sitemapPage("urlset", urls...),
		"packed": gzippedSitemap(t, urls...)} {
		for _, tt := range []struct{ limit, page, minPages, maxPages int }{
			{0, 1000, 300, 300}, {100_000, 1000, 300, 300}, {1000, 0, 1, 40}, {1000, 10, 1, 40},
			{math.MaxInt, 1000, 300, 300},
		} {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{
					Host: "a.test", Robots: robotsText("Sitemap: http://a.test/map\n", 0, nil),
					Pages:    map[string]crawltest.PageFunc{"/map": sitemap},
					Fallback: crawltest.StaticPage(crawltest.HTML("x")),
				})
				c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/")
				c.Settings.MaxSitemapBody = int64(tt.limit)
				var err error
				c.Fetcher, err = httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)",
					Transport: web, MaxBody: int64(tt.page)})
				if err != nil {
					t.Fatal(err)
				}
				runCrawl(t, c)
				// robots.txt, the seed and the sitemap
				if pages := len(web.Log()) - 3; pages < tt.minPages || pages > tt.maxPages {
					t.Errorf("%s, limit %d: %d pages were visited, want %d to %d", name, tt.limit,
						pages, tt.minPages, tt.maxPages)
				}
			})
		}
	}
}

// TestSitemapsSpeakForTheirSite: a sitemap's entry on another host is queued if that host's
// robots.txt declares the sitemap or is unknown, and not if it is known and does not.
func TestSitemapsSpeakForTheirSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(sitemaps string) func(time.Time) crawltest.RobotsSpec {
			return robotsText("User-agent: *\n"+sitemaps, 0, nil)
		}
		others := crawltest.StaticPage(crawltest.HTML("page"))
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: others,
				Robots: slow("Crawl-delay: 60\nSitemap: http://a.test/deep/map.xml\nSitemap: " +
					"http://a.test/deep/index.xml\n"),
				Pages: map[string]crawltest.PageFunc{"/deep/map.xml": sitemapPage("urlset",
					"http://a.test/above", "https://a.test/secure", "http://b.test/named",
					"http://c.test/not-named", "http://d.test/new"),
					"/deep/index.xml": sitemapPage("sitemapindex", "http://a.test/deep/child.xml"),
					"/deep/child.xml": sitemapPage("urlset", "http://a.test/by-index", "https://a.test/by-index",
						"http://b.test/not-by-index")}},
			crawltest.Site{Host: "b.test", Fallback: others, Robots: slow("Sitemap: http://a.test/deep/map.xml\n")},
			crawltest.Site{Host: "c.test", Fallback: others, Robots: slow("")},
			crawltest.Site{Host: "d.test", Fallback: others, Robots: slow("")})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{Mode: frontier.AnyScope}, "http://b.test/",
			"http://c.test/", "https://a.test/")
		runCrawl(t, c)
		_, times := countRequests(web.Log())
		for u, want := range map[string]int{"http://a.test/above": 1,
			"https://a.test/secure": 1, "http://b.test/named": 1,
			"http://c.test/not-named": 0, "http://d.test/new": 1,
			"http://a.test/by-index": 1, "https://a.test/by-index": 1, "http://b.test/not-by-index": 0} {
			if times[u] != want {
				t.Errorf("%s was requested %d times, want %d", u, times[u], want)
			}
		}
	})
}

// TestSitemapAsSeed: the content of a seed says whether it is a sitemap, also behind a redirect. It may list
// pages of any host in scope, and so may the sitemaps that it leads to. A page that is no sitemap, a linked
// sitemap, and a seed of a crawl with a Handler or without sitemaps, are pages.
func TestSitemapAsSeed(t *testing.T) {
	listed := []string{"http://a.test/listed", "http://b.test/listed"}
	urlset := sitemapPage("urlset", listed...)
	text := func(contentType, body string) crawltest.PageFunc {
		return crawltest.StaticPage(crawltest.ResponseOfType(contentType, body))
	}
	handler := func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
	lines := "\n" + strings.Join(listed, "\n")
	for _, tt := range []struct {
		name   string
		seed   crawltest.PageFunc
		change func(*crawler.Crawler)
		want   int // requests for each listed page
	}{
		{"XML", urlset, nil, 1},
		{"gzip", gzippedSitemap(t, listed...), nil, 1},
		{"text", text("text/plain", lines), nil, 1},
		{"HTML type", text("text/html", urlset(crawltest.PageRequest{}).Body), nil, 1},
		{"index", sitemapPage("sitemapindex", "http://a.test/deep/map.xml"), nil, 1},
		{"redirect", crawltest.StaticPage(crawltest.Redirect(302, "/deep/map.xml")), nil, 1},
		{"truncated", text("application/xml", strings.TrimSuffix(urlset(crawltest.PageRequest{}).Body,
			"</urlset>")), nil, 1},
		{"prose", text("text/plain", "Read this:\n"+lines), nil, 0},
		{"prose behind a URL", text("text/plain", listed[0]+" is a page"+lines), nil, 0},
		{"linked", pageWithLinks("/deep/map.xml"), nil, 0},
		{"no sitemaps", urlset, func(c *crawler.Crawler) { c.Settings.NoSitemaps = true }, 0},
		{"handler", urlset, func(c *crawler.Crawler) { c.Handler = handler }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				robots := robotsText("User-agent: *\n", 0, nil)
				page := crawltest.StaticPage(crawltest.HTML("page"))
				web := crawltest.New(crawltest.Site{Host: "a.test", Robots: robots, Fallback: page,
					Pages: map[string]crawltest.PageFunc{"/seed": tt.seed, "/deep/map.xml": urlset}},
					crawltest.Site{Host: "b.test", Robots: robots, Fallback: page})
				c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{Mode: frontier.AnyScope},
					"http://b.test/", "http://a.test/seed")
				c.Fetcher = newHTMLFetcher(t, web)
				if tt.change != nil {
					tt.change(c)
				}
				runCrawl(t, c)
				_, times := countRequests(web.Log())
				for _, u := range listed {
					if times[u] != tt.want {
						t.Errorf("%s was requested %d times, want %d", u, times[u], tt.want)
					}
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}

// TestSitemapsOfTwoHosts: if the robots.txt of two hosts declare the same index, as a site with and
// without www does, the entries of both hosts are visited, whichever declaration came first.
func TestSitemapsOfTwoHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := crawltest.StaticPage(crawltest.HTML("page"))
		names := robotsText("User-agent: *\nSitemap: http://b.test/maps/moved.xml\n", 0, nil)
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: others, Robots: names},
			crawltest.Site{Host: "b.test", Fallback: others, Robots: names, Pages: map[string]crawltest.PageFunc{
				"/maps/moved.xml": crawltest.StaticPage(crawltest.Redirect(301, "/maps/index.xml")),
				"/maps/index.xml": sitemapPage("sitemapindex", "http://b.test/maps/1.xml"),
				"/maps/1.xml":     sitemapPage("urlset", "http://a.test/x", "http://b.test/x"),
			}})
		runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{},
			"http://a.test/", "http://b.test/"))
		_, times := countRequests(web.Log())
		for _, u := range []string{"http://a.test/x", "http://b.test/x"} {
			if times[u] != 1 {
				t.Errorf("%s was requested %d times", u, times[u])
			}
		}
	})
}

// TestIndexesWithoutEnd: nested indexes end after three levels, and a sitemap that redirects
// endlessly at the limit of redirects.
func TestIndexesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nSitemap: http://a.test/i/\nSitemap: http://a.test/r/\n", 0, nil),
			Fallback: func(r crawltest.PageRequest) crawltest.Response {
				switch {
				case strings.HasPrefix(r.Path, "/i/"):
					return sitemapPage("sitemapindex", "http://a.test"+r.Path+"x")(r)
				case strings.HasPrefix(r.Path, "/r/"):
					return crawltest.Redirect(302, r.Path+"x")
				}
				return crawltest.HTML("page")
			}})
		runCrawl(t, newScopedCrawl(t, web, memory.New(memory.Config{}),
			frontier.ScopeConfig{MaxRedirects: 5}, "http://a.test/"))
		indexes, redirects := 0, 0
		for _, path := range requestedPages(web) {
			if strings.HasPrefix(path, "/i/") {
				indexes++
			}
			if strings.HasPrefix(path, "/r/") {
				redirects++
			}
		}
		if indexes != 4 || redirects != 6 {
			t.Errorf("%d indexes and %d redirects were followed, want 4 and 6", indexes, redirects)
		}
	})
}

// TestTrySitemapXML: with TrySitemapXML, /sitemap.xml of an origin whose robots.txt names no sitemap is read
// once, if robots.txt allows it and a page of the origin belongs to the crawl. What is not a sitemap there
// is no damage, and a redirect to a page is not followed.
func TestTrySitemapXML(t *testing.T) {
	listed := sitemapPage("urlset", "http://a.test/listed")
	for _, tt := range []struct {
		name        string
		robots      string
		isClosed    bool // robots.txt disallows /sitemap.xml
		answer      crawltest.PageFunc
		settings    crawler.Settings
		tries, more int // requests for /sitemap.xml, and for /listed or the target of the redirect
	}{
		{"without a Sitemap line", "", false, listed, crawler.Settings{TrySitemapXML: true}, 1, 1},
		{"off", "", false, listed, crawler.Settings{}, 0, 0},
		{"no sitemaps", "", false, listed, crawler.Settings{TrySitemapXML: true, NoSitemaps: true}, 0, 0},
		{"a dry run", "", false, listed, crawler.Settings{TrySitemapXML: true, DryRun: true}, 1, 0},
		{"another sitemap", "Sitemap: http://a.test/map.xml\n", false, listed, crawler.Settings{TrySitemapXML: true}, 0, 0},
		{"closed", "User-agent: *\nDisallow: /sitemap.xml\n", true, listed,
			crawler.Settings{TrySitemapXML: true}, 0, 0},
		{"404", "", false, crawltest.StaticPage(crawltest.Status(404)), crawler.Settings{TrySitemapXML: true}, 1, 0},
		{"a page", "", false, pageWithLinks("/listed"), crawler.Settings{TrySitemapXML: true}, 1, 0},
		{"a redirect to a page", "", false, crawltest.StaticPage(crawltest.Redirect(302, "/listed")),
			crawler.Settings{TrySitemapXML: true}, 1, 0},
		{"a redirect to a sitemap", "", false, crawltest.StaticPage(crawltest.Redirect(301, "/wp-sitemap.xml")),
			crawler.Settings{TrySitemapXML: true}, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{Host: "a.test",
					Robots: robotsText(tt.robots, 0, func(p string) bool { return tt.isClosed && p == "/sitemap.xml" }),
					Pages: map[string]crawltest.PageFunc{"/": pageWithLinks("/2"), "/2": pageWithLinks(),
						"/listed": pageWithLinks(), "/sitemap.xml": tt.answer, "/wp-sitemap.xml": listed}})
				store := newMemoryStore()
				var log strings.Builder
				for range 2 {
					c := newCrawl(t, web, store, "http://a.test/")
					tt.settings.Workers = c.Settings.Workers
					c.Settings, c.Log = tt.settings, slog.New(slog.NewTextHandler(&log, nil))
					runCrawl(t, c)
					s := c.Stats()
					if s.Errors+s.GivenUp+s.BlockedURLs > 0 || strings.Contains(log.String(), "damaged") {
						t.Errorf("stats %+v, log\n%s", s, log.String())
					}
				}
				_, times := countRequests(web.Log())
				if times["http://a.test/sitemap.xml"] != tt.tries || times["http://a.test/listed"] != tt.more {
					t.Errorf("requests %v", times)
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}
