package collyfetch_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A visitFunc is how a callback visits a link.
type visitFunc func(*colly.Request, string) error

// visitFuncs are the two ways, which must have the same effect.
var visitFuncs = map[string]visitFunc{"Visit": (*colly.Request).Visit, "Follow": collyfetch.FollowLink}

// linkFormsWeb is a site with links in every form.
func linkFormsWeb() *crawltest.Web {
	page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
	pages := map[string]crawltest.PageFunc{
		"/": page(
			`<a href=quay/1>1</a><a href=/quay/../quay/2?b=%7E&a=1#x>2</a><a href="//A.test:80/mole ">3</a><a href=?tide=low>4</a>
			<a href="/sm&ouml;r">5</a><a href=/private/x>6</a><a href=http://sea.test/>7</a><a class=none href=mailto:x@a.test>8</a><a class=none href="http://[::1">9</a><a href=/>10</a>`),
		"/quay/1": page("<base href=/deep/><a href=x>x</a><a href=../mole>y</a>"),
		"/mole":   page("<a href=/deep/x>x</a><a href=/deep/er/x>y</a>"),
		"/deep/x": page("<a href=y>y</a>"), "/deep/y": page("<a href=z>z</a>"),
	}
	closed := crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
		"/private\n"),
		IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/private") }})
	return crawltest.New(crawltest.Site{Host: "a.test", Robots: closed, Pages: pages},
		crawltest.Site{Host: "sea.test",
			Pages: map[string]crawltest.PageFunc{"/": page("<h1>Sea</h1><a href=/far>far</a>")}})
}

// collectorSettings are the settings of a collector that limit what it visits.
var collectorSettings = map[string]func(*colly.Collector){
	"none":              func(*colly.Collector) {},
	"MaxDepth":          func(c *colly.Collector) { c.MaxDepth = 3 },
	"AllowedDomains":    func(c *colly.Collector) { c.AllowedDomains = []string{"a.test"} },
	"DisallowedDomains": func(c *colly.Collector) { c.DisallowedDomains = []string{"sea.test"} },
	"URLFilters": func(c *colly.Collector) {
		c.URLFilters = []*regexp.Regexp{regexp.MustCompile(`^http://a\.test/(deep|quay|$)`)}
	},
	"DisallowedURLFilters": func(c *colly.Collector) {
		c.DisallowedURLFilters = []*regexp.Regexp{regexp.MustCompile(`/quay/`), regexp.MustCompile(`tide`)}
	},
	"Headers": func(c *colly.Collector) { colly.Headers(map[string]string{"Accept-Language": "cs"})(c) },
}

// errorClass reduces err to what both ways agree on: the refusals of colly, or that there is an error.
func errorClass(err error) string {
	for _, refusal := range []error{colly.ErrMaxDepth, colly.ErrForbiddenDomain, colly.ErrForbiddenURL,
		colly.ErrNoURLFiltersMatch} {
		if errors.Is(err, refusal) {
			return refusal.Error()
		}
	}
	return fmt.Sprint(err != nil)
}

// TestFollowIsVisit: with any settings of a collector, FollowLink and Visit lead to the same
// requests, in the same order, with the same depth and context, and to the same errors, also
// without a crawl around the collector.
func TestFollowIsVisit(t *testing.T) {
	run := func(t *testing.T, visit visitFunc, set func(*colly.Collector), wrapped bool) (seen []string) {
		web := linkFormsWeb()
		c := colly.NewCollector()
		set(c)
		if wrapped {
			crawl := wrapCollector(t, c, quietOptions(web))
			defer func() { must(t, crawl.Run(t.Context())) }()
		} else {
			c.WithTransport(web)
		}
		c.OnResponse(func(r *colly.Response) {
			seen = append(seen, fmt.Sprint(r.Request.URL, r.Request.Depth, r.Ctx.Get("from"),
				r.Request.Headers.Get("Accept-Language")))
		})
		c.OnHTML("a[href]", func(e *colly.HTMLElement) {
			e.Request.Ctx.Put("from", e.Text)
			err := visit(e.Request, e.Attr("href"))
			if e.Attr("class") == "none" && err != nil { // colly may refuse its domain before its scheme
				err = decorum.Invalid
			}
			seen = append(seen, e.Text+" "+errorClass(err))
		})
		return append(seen, errorClass(c.Visit("http://a.test/")))
	}
	for name, set := range collectorSettings {
		for _, wrapped := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				got := map[string][]string{}
				for by, visit := range visitFuncs {
					got[by] = run(t, visit, set, wrapped)
				}
				if !slices.Equal(got["Follow"], got["Visit"]) {
					t.Errorf("%s, wrapped %v:\n%q by Follow\n%q by Visit", name, wrapped, got["Follow"], got["Visit"])
				}
				if len(got["Visit"]) < 8 {
					t.Errorf("%s, wrapped %v: nothing came of %q", name, wrapped, got["Visit"])
				}
			})
		}
	}
}

// TestFollowKnowsTheBase: a link is relative to the page's base element in every kind of callback,
// and to the page itself before there is a response.
func TestFollowKnowsTheBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := linkFormsWeb()
		crawl := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		on := func(r *colly.Request, ref string) {
			if r.URL.Path == "/quay/1" {
				must(t, collyfetch.FollowLink(r, ref))
			}
		}
		crawl.OnRequest(func(r *colly.Request) { on(r, "request") })
		crawl.OnResponse(func(r *colly.Response) { on(r.Request, "response") })
		crawl.OnHTML("base", func(e *colly.HTMLElement) { on(e.Request, "html") })
		crawl.OnXML("//base", func(e *colly.XMLElement) { on(e.Request, "xml") })
		crawl.OnScraped(func(r *colly.Response) { on(r.Request, "#fragment") })
		must(t, crawl.Visit("http://a.test/quay/1"))
		got := requestedPaths(web)
		slices.Sort(got)
		if want := []string{"/deep/", "/deep/html", "/deep/response", "/deep/xml", "/quay/1", "/quay/request",
			"/robots.txt"}; !slices.Equal(got, want) {
			t.Errorf("requested %q, want %q", got, want)
		}
	})
}

// TestFollowSkipsRequestCallbacks: callbacks for requests are called once for a page, right before
// it is requested, and a link to a page itself is not queued.
func TestFollowSkipsRequestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		c := colly.NewCollector()
		crawl := wrapCollector(t, c, quietOptions(web))
		calls := map[string]int{}
		c.OnRequest(func(r *colly.Request) { calls[r.URL.Path]++ })
		crawl.OnHTML("a[href]", func(e *colly.HTMLElement) {
			must(t, collyfetch.FollowLink(e.Request, e.Attr("href")))
			must(t, collyfetch.FollowLink(e.Request, ""))
		})
		must(t, crawl.Run(t.Context()))
		must(t, crawl.Visit("http://a.test/"))
		delete(calls, "/") // Visit calls them when it queues the URL and before the request
		if want := map[string]int{"/church": 1, "/mill": 1}; !maps.Equal(calls, want) {
			t.Errorf("OnRequest was called for %v, want %v", calls, want)
		}
		checkPolite(t, web)
	})
}

// TestFollowFromElsewhere: a callback of a joined collector follows links for that collector; a
// context that cannot be kept is an error; and a link from a leftover goroutine of a callback is
// queued late, but not lost.
func TestFollowFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		c := colly.NewCollector()
		crawl := wrapCollector(t, c, quietOptions(web))
		detail := c.Clone()
		must(t, crawl.JoinCollector("detail", detail))
		done, late := make(chan struct{}), make(chan error)
		crawl.OnResponse(func(r *colly.Response) {
			if r.Request.URL.Path != "/" {
				return
			}
			r.Ctx.Put("k", new(int))
			if err := collyfetch.FollowLink(r.Request, "/mill"); err == nil {
				t.Error("a context with a pointer was kept")
			}
			must(t, detail.Visit("http://a.test/church"))
			r.Ctx.Put("k", "v")
			go func() {
				<-done
				late <- collyfetch.FollowLink(r.Request, "/mill")
			}()
		})
		var got []string
		detail.OnHTML("h1", func(e *colly.HTMLElement) {
			got = append(got, e.Text)
			_ = collyfetch.FollowLink(e.Request, "/late")
		})
		detail.OnError(func(r *colly.Response, _ error) { got = append(got, r.Request.URL.Path) })
		must(t, crawl.Visit("http://a.test/"))
		close(done)
		must(t, <-late)
		crawl.OnHTML("h1", func(e *colly.HTMLElement) { got = append(got, e.Text+" "+e.Request.Ctx.Get("k")) })
		must(t, crawl.Run(t.Context()))
		if want := []string{"Church", "/late", "Mill v"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestFollowWithinThePage: a link to a place within the page leads to no request, not even if the
// page was requested by POST and a GET of its URL is a different page.
func TestFollowWithinThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, got := formsWeb(nil)
		c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		c.OnResponse(func(r *colly.Response) {
			for _, ref := range []string{"#", "#top", " #top"} {
				must(t, collyfetch.FollowLink(r.Request, ref))
			}
		})
		must(t, c.PostRaw("http://a.test/form", []byte("x")))
		if len(got()) != 1 {
			t.Errorf("the server got %q, want the POST alone", got())
		}
	})
}
