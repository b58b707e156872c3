package crawler_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
)

// rssAnswer returns an RSS feed of these links, as an answer of a content type.
func rssAnswer(contentType string, links ...string) crawltest.Response {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>News</title><link>/not-an-item</link>")
	for _, l := range links {
		fmt.Fprintf(&b, "<item><title>One</title><link>%s</link><pubDate>Sat, 01 Jan 2000 12:00:00 "+
			"GMT</pubDate></item>\n", l)
	}
	return crawltest.ResponseOfType(contentType, b.String()+"</channel></rss>")
}

// atomAnswer returns an Atom feed of these links.
func atomAnswer(links ...string) crawltest.Response {
	b := "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link rel=\"self\" href=\"/not-an-item\"/>"
	for _, l := range links {
		b += "<entry><link rel=\"alternate\" href=\"" + l +
			"\"/><link rel=\"enclosure\" href=\"/not-an-item\"/></entry>"
	}
	return crawltest.ResponseOfType("application/atom+xml", b+"</feed>")
}

// pageWithFeeds returns a page that announces feeds, followed by more.
func pageWithFeeds(more string, feeds ...string) crawltest.Response {
	for i, f := range feeds {
		kind := []string{"rss", "atom"}[i%2]
		more = fmt.Sprintf("<link rel=alternate type=application/%s+xml href=%q>", kind, f) + more
	}
	return crawltest.HTML(more)
}

// feedSite returns a site whose articles are listed by feeds of all kinds and linked by no page.
// open has the URLs that must be requested, closed those that must not.
func feedSite() (site crawltest.Site, open, closed []string) {
	front := pageWithFeeds("<a href=/feeds/rss>RSS</a><a href=/plain.xml>a page as any</a><a href=/typed>says what "+
		"it is</a>",
		"/feeds/rss", "/feeds/atom", "/feeds/gz", "/feeds/moved", "/feeds/broken", "/feeds/page", "/closed/feed",
		"/feeds/list", "http://elsewhere.test/feed")
	front.Header.Set("Link", `</feeds/header>; rel=alternate; type="application/rss+xml"`)
	packed := rssAnswer("application/xml", "/zipped")
	packed.GzipIfAccepted = true
	broken := rssAnswer("text/xml", "/before-the-break", "/the-break")
	broken.Body = strings.Replace(broken.Body, "<link>/the-break", "</item></rss><link>/the-break", 1)
	robots := "User-agent: *\nDisallow: /closed\n"
	site = crawltest.Site{Host: "a.test",
		Robots: robotsText(robots, 0, func(p string) bool { return strings.HasPrefix(p, "/closed") }),
		Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(front),
			"/feeds/rss": crawltest.StaticPage(rssAnswer("text/xml; charset=utf-8", "article", "/top?a=1&amp;b=2",
				"http://elsewhere.test/x", "/closed/article")),
			"/feeds/atom":   crawltest.StaticPage(atomAnswer("../entry")),
			"/feeds/gz":     crawltest.StaticPage(packed),
			"/feeds/moved":  crawltest.StaticPage(crawltest.Redirect(301, "/feeds/new")),
			"/feeds/new":    crawltest.StaticPage(rssAnswer("application/octet-stream", "/moved-on")),
			"/feeds/broken": crawltest.StaticPage(broken),
			"/feeds/page":   crawltest.StaticPage(crawltest.HTML("<a href=/linked>no feed at all")),
			"/feeds/header": crawltest.StaticPage(rssAnswer("text/html", "/by-header")),
			"/feeds/list":   crawltest.StaticPage(crawltest.Text("http://a.test/not-an-item\n")),
			"/closed/feed":  crawltest.StaticPage(rssAnswer("text/xml", "/never")),
			"/plain.xml":    crawltest.StaticPage(rssAnswer("text/xml", "/not-an-item")),
			"/typed":        crawltest.StaticPage(rssAnswer("application/rss+xml", "/by-type")),
		},
		Fallback: crawltest.StaticPage(crawltest.HTML("an article"))}
	open = []string{"/feeds/rss", "/feeds/article", "/top?a=1&b=2", "/feeds/atom", "/entry", "/feeds/gz",
		"/zipped", "/feeds/new", "/moved-on",
		"/feeds/broken", "/before-the-break", "/feeds/page", "/linked", "/feeds/header", "/by-header", "/feeds/list",
		"/plain.xml", "/typed", "/by-type"}
	closed = []string{"/closed/feed", "/closed/article", "/never", "/not-an-item"}
	return site, open, closed
}

// TestFeeds: a site whose articles only feeds list is crawled completely, although the crawl wants
// no XML bodies, except for disallowed URLs, URLs out of scope, and answers that are not feeds.
func TestFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, open, closed := feedSite()
		web := crawltest.New(site, crawltest.Site{Host: "elsewhere.test"})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/")
		c.Fetcher = newHTMLFetcher(t, web)
		var log strings.Builder
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		runCrawl(t, c)
		_, times := countRequests(web.Log())
		for _, path := range open {
			if times["http://a.test"+path] != 1 {
				t.Errorf("%s was requested %d times", path, times["http://a.test"+path])
			}
		}
		for _, path := range closed {
			if times["http://a.test"+path] != 0 {
				t.Errorf("%s was requested", path)
			}
		}
		for _, u := range []string{"http://elsewhere.test/feed", "http://elsewhere.test/x"} {
			if times[u] != 0 {
				t.Errorf("%s was requested", u)
			}
		}
		if strings.Count(log.String(), "feed is damaged") != 1 {
			t.Errorf("one feed is damaged, the log says:\n%s", log.String())
		}
		checkPoliteness(t, web, time.Second)
	})
}

// newHTMLFetcher returns a fetcher that wants bodies of HTML only.
func newHTMLFetcher(t *testing.T, web *crawltest.Web) *httpfetch.Fetcher {
	t.Helper()
	f, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)", Transport: web,
		ContentTypes: []string{"text/html"}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNoFeeds: with NoFeeds no announced feed is visited, and a feed that a page links to is not
// read.
func TestNoFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":       crawltest.StaticPage(pageWithFeeds("<a href=/linked>", "/announced")),
			"/linked": crawltest.StaticPage(rssAnswer("application/rss+xml", "/item")),
		}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Settings.FollowedLinkKinds = crawler.FollowedLinkKinds{NoFeeds: true}
		c.Fetcher = newHTMLFetcher(t, web)
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/", "/linked")
	})
}

// TestFeedsOnly: with NoLinks the entries of feeds are still followed.
func TestFeedsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":     crawltest.StaticPage(pageWithFeeds("<a href=/linked><a href=/feed>", "/feed")),
			"/feed": crawltest.StaticPage(rssAnswer("text/xml", "/item")),
			"/item": crawltest.StaticPage(crawltest.HTML("<a href=/linked>")),
		}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Settings.FollowedLinkKinds = crawler.FollowedLinkKinds{NoLinks: true}
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/", "/feed", "/item")
	})
}

// TestFeedDepth: the entries of a feed are one link deeper than the feed.
func TestFeedDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":     crawltest.StaticPage(pageWithFeeds("", "/feed")),
			"/feed": crawltest.StaticPage(rssAnswer("text/xml", "/item")),
			"/item": crawltest.StaticPage(crawltest.HTML("<a href=/deep>")),
		}})
		runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{MaxDepth: 2}, "http://a.test/"))
		wantLines(t, requestedPages(web), "/", "/feed", "/item")
	})
}

// TestFeedIsReadAgain: if pages are revisited, so is a feed, by its own age and with its
// validators, and it remains a feed. New entries are visited when they are listed; the dates of old
// ones cause no visit.
func TestFeedIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(pageWithFeeds("", "/feed")),
			"/feed": func(r crawltest.PageRequest) crawltest.Response {
				day := int(r.ReceivedAt.Sub(begin) / (24 * time.Hour))
				tag := fmt.Sprintf("\"%d\"", min(day, 1)) // the feed changes after one day
				if r.Header.Get("If-None-Match") == tag {
					return crawltest.Status(304)
				}
				items := []string{"/old"}
				if day > 0 {
					items = append(items, "/new")
				}
				a := rssAnswer("text/xml", items...)
				a.Body = strings.ReplaceAll(a.Body, "2000", "2050")
				a.Header.Set("ETag", tag)
				return a
			},
		}, Fallback: crawltest.StaticPage(crawltest.HTML("article"))})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		c.Fetcher = newHTMLFetcher(t, web)
		runFor(t, c, 60*time.Hour)
		wantLines(t, j.lines, "200 seed /", "200 feed /feed", "200 feed /old",
			"200 revisit /", "200 feed /feed", "200 feed /new", "200 revisit /old",
			"200 revisit /", "304 feed /feed", "200 revisit /new", "200 revisit /old")
		if n := c.Stats().RescheduledBySitemap; n != 0 {
			t.Errorf("%d pages were recalled by a feed", n)
		}
	})
}

// TestJSONFeed: a page announces a JSON Feed, which is served as plain JSON and continues in
// another file; both are read as feeds. JSON that is an alternate form of the page is not a feed,
// and not requested.
func TestJSONFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := func(items, more string) crawltest.PageFunc {
			return crawltest.StaticPage(crawltest.ResponseOfType("application/json",
				`{"version": "https://jsonfeed.org/version/1.1", "items": [`+items+`]`+more+`}`))
		}
		page := crawltest.StaticPage(crawltest.HTML("an article"))
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML(`<link rel=alternate type=application/feed+json href=/feed>
				<link rel=alternate type=application/json href=/api/1>`)),
			"/feed": feed(`{"id": "1", "url": "/1", "external_url": "/not-ours"}`,
				`, "next_url": "/feed?page=2"`),
			"/feed?page=2": feed(`{"id": "2", "url": "/2"}`, `, "next_url": "/feed"`), "/1": page, "/2": page,
		}})
		if err := newCrawl(t, web, newMemoryStore(), "http://a.test/").Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, _ := countRequests(web.Log())
		want := []string{"/robots.txt", "/", "/feed", "/1", "/feed?page=2", "/2"}
		for i := range want {
			want[i] = "http://a.test" + want[i]
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("requested %q, want %q", got, want)
		}
	})
}

// TestFeedLimit: of the feeds that pages announce only the first are visited, with what they redirect to and
// with their further parts.
func TestFeedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := func(fields string) crawltest.PageFunc {
			return crawltest.StaticPage(crawltest.ResponseOfType("application/feed+json",
				`{"version": "https://jsonfeed.org/version/1.1", `+fields+`, "items": []}`))
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":         crawltest.StaticPage(pageWithFeeds("<a href=/x>", "/moved")),
			"/x":        crawltest.StaticPage(pageWithFeeds("", "/x/feed")),
			"/moved":    crawltest.StaticPage(crawltest.Redirect(301, "/feed")),
			"/feed":     feed(`"next_url": "/feed/two"`),
			"/feed/two": feed(`"next_url": "/feed/three"`),
		}, Fallback: feed(`"title": "the last part"`)})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{MaxFeedsPerHost: 1}, "http://a.test/")
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/", "/moved", "/feed", "/feed/two", "/feed/three", "/x")
		if n := c.Frontier.RefusalsByReason()[frontier.TooManyFeeds]; n != 1 {
			t.Errorf("%d feeds were refused, want 1", n)
		}
	})
}
