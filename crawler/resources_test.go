package crawler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// resourceSite is a site whose pages need resources of all kinds.
func resourceSite() crawltest.Site {
	css := func(text string) crawltest.PageFunc {
		return crawltest.StaticPage(crawltest.ResponseOfType("text/css", text))
	}
	page := crawltest.HTML(`<link rel=stylesheet href=/a.css><link rel=icon href=/icon><script src=/script.js></script>
		<p style="background:url(/bg)"><a href=/photo.jpg><img src=/photo.jpg></a><img src=/moved><img src=/closed/img>
		<img src=http://cdn.test/x><img src=/soft404><a rel=nofollow href=/no>x</a><a href=/page>x</a><a href=/list.css>x</a>`)
	page.Header.Set("Link", "</header.css>; rel=preload; as=style")
	return crawltest.Site{Host: "a.test",
		Robots: robotsText("User-agent: *\nDisallow: /closed\n", 0,
			func(p string) bool { return strings.HasPrefix(p, "/closed") }),
		Pages: map[string]crawltest.PageFunc{
			"/":           crawltest.StaticPage(page),
			"/page":       crawltest.StaticPage(crawltest.HTML("<img src=/deep><a href=/deeper>x</a>")),
			"/a.css":      css("@import 'b.css'; @font-face { src: url(/font) }"),
			"/b.css":      css("a { b: url(/from-b) url(/a.css) }"),
			"/header.css": css(""),
			"/list.css":   css("a { b: url(/from-list) }"),
			"/moved":      crawltest.StaticPage(crawltest.Redirect(302, "/moved.css")),
			"/moved.css":  css("a { b: url(/from-moved) }"),
			"/soft404":    crawltest.StaticPage(crawltest.HTML("<a href=/trap><img src=/trap>")),
			"/script.js":  crawltest.StaticPage(crawltest.ResponseOfType("text/javascript", "url(/no)")),
		},
		Fallback: crawltest.StaticPage(crawltest.ResponseOfType("image/png", "\x89PNG"))}
}

// resourcesOfSite are the resources of the first page of resourceSite.
var resourcesOfSite = []string{"/a.css", "/icon", "/script.js", "/bg", "/photo.jpg", "/moved", "/soft404",
	"/header.css", "/b.css", "/font", "/from-b", "/moved.css", "/from-moved"}

// TestResources: a crawl with Resources visits what its pages need, also at max_depth, and no more.
func TestResources(t *testing.T) {
	for _, test := range []struct {
		maxDepth int
		follow   crawler.FollowedLinkKinds
		want     []string
	}{
		{-1, crawler.FollowedLinkKinds{Resources: true}, append([]string{"/"}, resourcesOfSite...)},
		{1, crawler.FollowedLinkKinds{Resources: true},
			append([]string{"/", "/page", "/deep", "/list.css", "/from-list"}, resourcesOfSite...)},
		{1, crawler.FollowedLinkKinds{Resources: true, Images: true},
			append([]string{"/", "/page", "/deep", "/list.css", "/from-list"}, resourcesOfSite...)},
		{1, crawler.FollowedLinkKinds{Resources: true, NoLinks: true}, append([]string{"/"}, resourcesOfSite...)},
		{1, crawler.FollowedLinkKinds{}, []string{"/", "/photo.jpg", "/page", "/list.css"}},
	} {
		t.Run(fmt.Sprintf("max depth %d, %+v", test.maxDepth, test.follow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(resourceSite(), crawltest.Site{Host: "cdn.test"})
				c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
				c.Settings.FollowedLinkKinds = test.follow
				scope := frontier.ScopeConfig{MaxDepth: test.maxDepth}
				c.Frontier = frontier.New(c.Frontier.Store(), frontier.Config{Budget: c.Limiter,
					Scope: frontier.NewScope(scope, []decorum.URL{parseURL(t, "http://a.test/")})})
				runCrawl(t, c)
				got := slices.Sorted(slices.Values(requestedPages(web)))
				wantLines(t, got, slices.Sorted(slices.Values(test.want))...)
			})
		})
	}
}

// TestStyleSheetChain: style sheets that import each other without end are left after a few.
func TestStyleSheetChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{
				"/": crawltest.StaticPage(crawltest.HTML("<style>@import '/s/1'</style>"))},
			Fallback: func(r crawltest.PageRequest) crawltest.Response {
				var n int
				fmt.Sscanf(r.Path, "/s/%d", &n)
				return crawltest.ResponseOfType("text/css", fmt.Sprintf("@import '/s/%d'", n+1))
			}})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		c.Settings.FollowedLinkKinds.Resources = true
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/", "/s/1", "/s/2", "/s/3", "/s/4", "/s/5", "/s/6")
	})
}

// TestResourcesBeforeFurtherPages: the resources of a page are visited before the pages that it links to,
// and are no duplicates of each other.
func TestResourcesBeforeFurtherPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML(
				"<a href=/1>x</a><a href=/2>x</a><img src=/i><img src=/j>")),
				"/1": crawltest.StaticPage(crawltest.HTML("<img src=/k>"))},
			Fallback: crawltest.StaticPage(crawltest.ResponseOfType("image/png", "\x89PNG"))})
		c := newCrawl(t, web, memory.New(memory.Config{}), "http://a.test/")
		c.Settings.FollowedLinkKinds.Resources = true
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/", "/i", "/j", "/1", "/2", "/k")
		if s := c.Stats(); s.DuplicateBodies != 0 {
			t.Errorf("%d duplicate bodies, want none: only /2 is a page", s.DuplicateBodies)
		}
	})
}

// TestRevisitedResources: a resource that is visited again is still one: a style sheet leads to what it
// names by then, and a page leads nowhere.
func TestRevisitedResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":     crawltest.StaticPage(crawltest.HTML("<link rel=stylesheet href=/a.css><img src=/page>")),
			"/page": crawltest.StaticPage(crawltest.HTML("<a href=/no>x</a>")),
			"/a.css": func(crawltest.PageRequest) crawltest.Response {
				return crawltest.ResponseOfType("text/css", fmt.Sprintf("a{b:url(/%d)}", time.Since(begin)/day))
			}},
			Fallback: crawltest.StaticPage(crawltest.ResponseOfType("image/png", "\x89PNG"))})
		c, j := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
		c.Settings.FollowedLinkKinds.Resources = true
		runFor(t, c, 2*day-time.Hour)
		slices.Sort(j.lines)
		wantLines(t, j.lines, "200 resource /0", "200 resource /0", "200 resource /1", "200 resource /a.css",
			"200 resource /a.css", "200 resource /page", "200 resource /page", "200 revisit /", "200 seed /")
	})
}

// TestResourcesWithNoImageAI: a page that says noimageai keeps its images in a crawl for training.
func TestResourcesWithNoImageAI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML(`<meta name=robots content=noimageai><link rel=icon href=/icon>
				<link rel=preload as=image href=/preloaded><link rel=preload as=font href=/font><script src=/script></script>
				<img src=/img style="b:url(/img)"><svg><image href=/in-svg /></svg><video src=/video poster=/poster></video>`))},
			Fallback: crawltest.StaticPage(crawltest.ResponseOfType("application/octet-stream", "x"))})
		c := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/")
		c.Settings.FollowedLinkKinds.Resources = true
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/.well-known/tdmrep.json", "/", "/font", "/script", "/video")
	})
}

// TestLinkedResourceCountsOnce: a URL that a page links to and needs as well is one of its links.
func TestLinkedResourceCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<a href=/1><img src=/1></a><img src=/2>"))}})
		c, k := newCrawl(t, web, newMemoryStore(), "http://a.test/"), &visitRecorder{}
		c.PageRecorder, c.Settings.FollowedLinkKinds.Resources = k, true
		runCrawl(t, c)
		if v := k.visits["/"]; v == nil || v.LinkCount != 2 {
			t.Errorf("the page is %+v, want one with 2 links", v)
		}
	})
}
