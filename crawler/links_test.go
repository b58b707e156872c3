package crawler_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestLinksInHeaders: links in header fields are visited, whatever the content type, and so is the
// canonical URL that they name; alternates are not.
func TestLinksInHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := crawltest.HTML("<p>no links")
		home.Header.Set("Link", `</text>; rel=next, </canonical>; rel=canonical, </alternate>; rel=alternate`)
		home.Header.Set("Refresh", "60; url=/later")
		text := crawltest.Text("no HTML")
		text.Header.Set("Link", `</last>; rel="next"`)
		closed := crawltest.Text("no HTML either")
		closed.Header.Set("Link", `</never>; rel=next`)
		closed.Header.Set("X-Robots-Tag", "nofollow")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(home), "/text": crawltest.StaticPage(text),
			"/last": crawltest.StaticPage(closed)}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		for path, want := range map[string]int{"/": 1, "/text": 1, "/later": 1, "/last": 1, "/canonical": 1,
			"/alternate": 0, "/never": 0} {
			if got := times["http://a.test"+path]; got != want {
				t.Errorf("%s visited %d times, want %d", path, got, want)
			}
		}
	})
}

// TestCharsetOfLinks: the query of a link is requested, and compared with robots.txt, in the encoding of
// the page.
func TestCharsetOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := crawltest.ResponseOfType("text/html; charset=windows-1251",
			"<a href='/\xE6?q=\xE6'>1</a><a href='/?q=\xE7'>2</a><a href='/?q=%D0%B7'>3</a>")
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(page)},
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
				Response:     crawltest.Text("User-agent: *\nDisallow: /?q=%E7\n"),
				IsDisallowed: func(p string) bool { return p == "/?q=%E7" }})})
		runCrawl(t, newCrawl(t, web, newMemoryStore(), "http://a.test/"))
		wantLines(t, requestedPages(web), "/", "/%D0%B6?q=%E6", "/?q=%D0%B7")
	})
}

// TestImages: with Images set, all forms of an image are links.
func TestImages(t *testing.T) {
	const page = `<a href=/a><img src=/small srcset="/large 2x"><picture><source srcset="/wide 800w, /narrow 400w"><img src=/plain></picture><img src=data:,x>`
	for _, test := range []struct {
		follow crawler.FollowedLinkKinds
		want   []string
	}{
		{crawler.FollowedLinkKinds{}, []string{"/", "/a"}},
		{crawler.FollowedLinkKinds{Images: true},
			[]string{"/", "/a", "/small", "/large", "/wide", "/narrow", "/plain"}},
		{crawler.FollowedLinkKinds{Images: true, NoLinks: true},
			[]string{"/", "/small", "/large", "/wide", "/narrow", "/plain"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(crawltest.Site{Host: "a.test",
				Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML(page))}})
			c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
			c.Settings.FollowedLinkKinds = test.follow
			runCrawl(t, c)
			wantLines(t, requestedPages(web), test.want...)
		})
	}
}

// TestMaxLinksOfFeeds: MaxLinks bounds the entries taken from one feed, and the log says that there
// were more.
func TestMaxLinksOfFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(rssAnswer("application/rss+xml", "/1", "/2", "/3"))}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Settings.MaxLinks = 2
		var log strings.Builder
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/", "/1", "/2")
		if !strings.Contains(log.String(), "limit exceeded") {
			t.Errorf("the log says %q", log.String())
		}
	})
}

// TestMaxLinks: MaxLinks bounds the links taken from one page, and the log says that there were
// more.
func TestMaxLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<a href=/1><a href=/2><a href=/3>"))}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		c.Settings.MaxLinks = 2
		var log strings.Builder
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		if times["http://a.test/1"] != 1 || times["http://a.test/2"] != 1 || times["http://a.test/3"] != 0 {
			t.Errorf("visited %v, want two of the three links", times)
		}
		if !strings.Contains(log.String(), "page has more links than are read") {
			t.Errorf("the log says %q", log.String())
		}
	})
}

// TestNoFollow: the crawl obeys nofollow in pages and headers, unless IgnoreNoFollow is set.
func TestNoFollow(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		t.Run(fmt.Sprintf("ignore=%v", ignore), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				header := crawltest.HTML("<a href=/by-header>x</a>")
				header.Header.Set("X-Robots-Tag", "testbot: nofollow")
				other := crawltest.HTML("<a href=/by-other>x</a>")
				other.Header.Set("X-Robots-Tag", "otherbot: nofollow")
				web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
					"/": crawltest.StaticPage(crawltest.HTML("<a href=/meta>1</a><a href=/header>2</a><a " +
						"href=/other>3</a><a rel=nofollow href=/by-rel>4</a>" +
						"<link rel=alternate hreflang=de href=/de><a rel=nofollow href=/de>5</a><a rel=ugc " +
						"href=/one.png><img src=/one.png></a>")),
					"/meta": crawltest.StaticPage(crawltest.HTML("<meta name=robots content=nofollow><a " +
						"href=/by-meta>x</a>")),
					"/header": crawltest.StaticPage(header), "/other": crawltest.StaticPage(other)}})
				c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
				c.Settings.IgnoreNoFollow = ignore
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, times := countRequests(web.Log())
				for path, want := range map[string]bool{"/by-other": true, "/by-rel": ignore,
					"/by-meta": ignore, "/by-header": ignore,
					// URLs named in other ways are not followed, and make no request
					"/de": ignore, "/one.png": ignore} {
					if got := times["http://a.test"+path] > 0; got != want {
						t.Errorf("%s visited: %v, want %v", path, got, want)
					}
				}
				// /by-rel, /de, /one.png, /by-meta and /by-header
				if n, want := c.Stats().NoFollowLinks, map[bool]int64{false: 5}[ignore]; n != want {
					t.Errorf("%d links were counted as left for nofollow, want %d", n, want)
				}
			})
		})
	}
}

// TestForms: a crawl requests the action of a form only with Forms set, and never that of one that posts.
func TestForms(t *testing.T) {
	const page = `<form action="/search?all"><button formaction=/logout></button></form><form action=/buy method=post></form>`
	for _, test := range []struct {
		follow crawler.FollowedLinkKinds
		want   []string
	}{
		{crawler.FollowedLinkKinds{}, []string{"/"}},
		{crawler.FollowedLinkKinds{Resources: true}, []string{"/"}},
		{crawler.FollowedLinkKinds{Forms: true}, []string{"/", "/search", "/logout"}},
		{crawler.FollowedLinkKinds{Forms: true, NoLinks: true}, []string{"/"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(crawltest.Site{Host: "a.test",
				Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML(page))}})
			c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
			c.Settings.FollowedLinkKinds = test.follow
			runCrawl(t, c)
			wantLines(t, requestedPages(web), test.want...)
		})
	}
}
