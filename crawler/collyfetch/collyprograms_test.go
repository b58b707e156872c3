package collyfetch_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/debug"
	"github.com/gocolly/colly/v2/queue"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A programSession is what a colly program works with: a plain or a wrapped collector, and funcs
// for the few places where the two differ.
type programSession struct {
	*colly.Collector
	join     func(string, *colly.Collector) // does nothing with plain colly
	runQueue func(*queue.Queue) error

	mu    sync.Mutex // guards items
	items map[string]bool
}

// addItem records what a program has scraped.
func (s *programSession) addItem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[fmt.Sprintf(format, args...)] = true
}

// collyPrograms do what colly's own examples of these names do, on a small web.
var collyPrograms = map[string]func(*programSession){
	"basic": func(s *programSession) {
		s.AllowedDomains = []string{"wiki.test"}
		s.OnHTML("a[href]", func(e *colly.HTMLElement) {
			s.addItem("link %q %s", e.Text, e.Attr("href"))
			_ = s.Visit(e.Request.AbsoluteURL(e.Attr("href")))
		})
		_ = s.Visit("http://wiki.test/")
	},
	"max_depth": func(s *programSession) {
		s.MaxDepth = 2
		s.OnHTML("a[href]", func(e *colly.HTMLElement) {
			s.addItem("%d %s", e.Request.Depth, e.Attr("href"))
			_ = e.Request.Visit(e.Attr("href"))
		})
		_ = s.Visit("http://wiki.test/tree")
	},
	"url_filter": func(s *programSession) {
		s.URLFilters = []*regexp.Regexp{regexp.MustCompile(`^http://wiki\.test/(|b.+)$`),
			regexp.MustCompile(`^http://wiki\.test/c.+`)}
		s.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = s.Visit(e.Request.AbsoluteURL(e.Attr("href"))) })
		s.OnHTML("h1", func(e *colly.HTMLElement) { s.addItem("%s", e.Text) })
		_ = s.Visit("http://wiki.test/")
	},
	"request_context": func(s *programSession) {
		s.OnRequest(func(r *colly.Request) { r.Ctx.Put("url", r.URL.String()) })
		s.OnResponse(func(r *colly.Response) { s.addItem("%s", r.Ctx.Get("url")) })
		_ = s.Visit("http://wiki.test/bees")
	},
	"parallel": func(s *programSession) {
		s.MaxDepth, s.Async = 2, true
		_ = s.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2})
		s.OnHTML("a[href]", func(e *colly.HTMLElement) {
			s.addItem("%s", e.Attr("href"))
			_ = e.Request.Visit(e.Attr("href"))
		})
		_ = s.Visit("http://wiki.test/tree")
	},
	"rate_limit": func(s *programSession) {
		s.Async = true
		s.SetDebugger(&debug.LogDebugger{Output: io.Discard})
		_ = s.Limit(&colly.LimitRule{DomainGlob: "*wiki.*", Parallelism: 2})
		s.OnResponse(func(r *colly.Response) { s.addItem("%s %d", r.Request.URL, r.StatusCode) })
		for i := range 5 {
			_ = s.Visit(fmt.Sprintf("http://wiki.test/bees?n=%d", i))
		}
	},
	"random_delay": func(s *programSession) {
		_ = s.Limit(&colly.LimitRule{DomainGlob: "*", RandomDelay: 5 * time.Second})
		s.OnResponse(func(r *colly.Response) { s.addItem("%s", r.Request.URL) })
		for i := range 4 {
			_ = s.Visit(fmt.Sprintf("http://wiki.test/bees?n=%d", i))
		}
	},
	"queue": func(s *programSession) {
		q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 100})
		if err != nil {
			panic(err)
		}
		s.OnResponse(func(r *colly.Response) { s.addItem("%s", r.Request.URL) })
		for i := range 5 {
			_ = q.AddURL(fmt.Sprintf("http://wiki.test/bees?q=%d", i))
		}
		_ = s.runQueue(q)
	},
	"error_handling": func(s *programSession) {
		s.OnHTML("*", func(e *colly.HTMLElement) { s.addItem("html of %s", e.Request.URL) })
		s.OnError(func(r *colly.Response, err error) { s.addItem("%s: %d %v", r.Request.URL, r.StatusCode, err) })
		_ = s.Visit("http://wiki.test/no-such-page")
	},
	"scraper_server": func(s *programSession) {
		s.OnHTML("a[href]", func(e *colly.HTMLElement) { s.addItem("link %s", e.Request.AbsoluteURL(e.Attr("href"))) })
		s.OnResponse(func(r *colly.Response) { s.addItem("status %d", r.StatusCode) })
		s.OnError(func(r *colly.Response, _ error) { s.addItem("status %d", r.StatusCode) })
		_ = s.Visit("http://wiki.test/")
	},
	"shopify_sitemap": func(s *programSession) {
		s.AllowedDomains = []string{"shop.test"}
		s.OnXML("//urlset/url/loc", func(e *colly.XMLElement) { s.addItem("%s", e.Text) })
		_ = s.Visit("http://shop.test/sitemap.xml")
	},
	"xpath": func(s *programSession) {
		s.OnXML("//a[@href]", func(e *colly.XMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		s.OnXML("//h1", func(e *colly.XMLElement) { s.addItem("%s", e.Text) })
		_ = s.Visit("http://wiki.test/tree")
	},
	"xkcd_store": func(s *programSession) {
		s.AllowedDomains = []string{"shop.test"}
		s.OnHTML(".item", func(e *colly.HTMLElement) {
			s.addItem("%s %s %s", e.ChildAttr("a", "title"), e.ChildText("span"),
				e.Request.AbsoluteURL(e.ChildAttr("a", "href")))
		})
		s.OnHTML(".next a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		_ = s.Visit("http://shop.test/list/1")
	},
	"coursera_courses": func(s *programSession) {
		detail := s.Clone()
		s.join("detail", detail)
		s.OnHTML(".next a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		s.OnHTML(".item a[href]", func(e *colly.HTMLElement) {
			_ = detail.Visit(e.Request.AbsoluteURL(e.Attr("href")))
		})
		detail.OnHTML("#course", func(e *colly.HTMLElement) {
			s.addItem("%s: %s", e.ChildText("h1"), e.ChildText("p"))
		})
		_ = s.Visit("http://shop.test/list/1")
	},
	"factba.se": func(s *programSession) {
		detail := s.Clone()
		s.join("detail", detail)
		s.OnResponse(func(r *colly.Response) {
			var listed []struct{ Slug, Date string }
			if err := json.Unmarshal(r.Body, &listed); err != nil {
				s.addItem("%v", err)
			}
			for _, l := range listed {
				ctx := colly.NewContext()
				ctx.Put("date", l.Date)
				_ = detail.Request("GET", r.Request.AbsoluteURL(l.Slug), nil, ctx, nil)
			}
		})
		detail.OnHTML("h1", func(e *colly.HTMLElement) { s.addItem("%s of %s", e.Text, e.Request.Ctx.Get("date")) })
		_ = s.Visit("http://shop.test/api")
	},
	"login": func(s *programSession) {
		_ = s.Post("http://shop.test/login", map[string]string{"username": "admin", "password": "admin"})
		s.OnHTML("h1", func(e *colly.HTMLElement) { s.addItem("%s: %s", e.Request.URL, e.Text) })
		_ = s.Visit("http://shop.test/account")
	},
	"multipart": func(s *programSession) {
		s.MaxDepth, s.AllowURLRevisit = 5, true
		form := map[string][]byte{"firstname": []byte("one"),
			"email": []byte("onetwo@example.com"), "file": {0xff, 0xd8, 0}}
		s.OnHTML("html", func(e *colly.HTMLElement) {
			s.addItem("%d: %s", e.Request.Depth, e.Text)
			time.Sleep(time.Second)
			_ = e.Request.PostMultipart("http://shop.test/upload", form)
		})
		_ = s.PostMultipart("http://shop.test/upload", form)
	},
	"hackernews_comments": func(s *programSession) {
		type comment struct {
			Author string `selector:".author"`
			URL    string `selector:"a" attr:"href"`
		}
		s.OnHTML(".comment", func(e *colly.HTMLElement) {
			var c comment
			if err := e.Unmarshal(&c); err != nil {
				s.addItem("%v", err)
			}
			s.addItem("%+v", c)
		})
		_ = s.Visit("http://wiki.test/talk")
	},
}

// programWeb is the web that the programs run on. Two sites link to pages that robots.txt
// disallows, and to a host that the programs are not allowed to visit.
func programWeb() *crawltest.Web {
	page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
	closed := crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
		"/private\nCrawl-delay: 3\n"), CrawlDelay: 3 * time.Second,
		IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/private") }})
	wiki := map[string]crawltest.PageFunc{
		"/": page("<h1>Wiki</h1><a href=/bees>Bees</a> <a href=bridges>Bridges</a> <a href=/caves>Caves</a> <a " +
			"href=/dunes>Dunes</a> <a href=/private/x>Private</a> <a href=http://other.test/>Other</a>"),
		"/bees": page("<h1>Bees</h1><a href=/>Wiki</a>"), "/bridges": page("<h1>Bridges</h1><a href=/caves>Caves</a>"),
		"/caves": page("<h1>Caves</h1>"), "/dunes": page("<h1>Dunes</h1>"), "/private/x": page("closed"),
		"/tree": page("<h1>Root</h1><a href=/tree/1>1</a><a href=/tree/2>2</a><a href=/private/x>x</a>"),
		"/talk": page("<div class=comment><b class=author>Ada</b><a href=/bees>re</a></div><div class=comment><b " +
			"class=author>Bo</b><a href=/caves>re</a></div>"),
	}
	for _, n := range []string{"1", "2"} {
		wiki["/tree/"+n] = page(fmt.Sprintf("<h1>Branch %s</h1><a href=/tree/%s/1>a</a><a href=/tree/%s/2>b</a>", n, n,
			n))
		wiki["/tree/"+n+"/1"], wiki["/tree/"+n+"/2"] = page("<h1>Leaf "+n+".1</h1>"), page("<h1>Leaf "+n+".2</h1>")
	}
	shop := map[string]crawltest.PageFunc{
		"/sitemap.xml": crawltest.StaticPage(crawltest.ResponseOfType("application/xml",
			"<urlset><url><loc>http://shop.test/p/1</loc></url><url><loc>http://shop.test/p/2</loc></url></urlset>")),
		"/api": crawltest.StaticPage(crawltest.ResponseOfType("application/json",
			`[{"slug": "/p/1", "date": "May"}, {"slug": "/p/2", "date": "June"}]`)),
	}
	shop["/account"] = func(r crawltest.PageRequest) crawltest.Response {
		if r.Header.Get("Cookie") != "session=s3" {
			return crawltest.HTML("<h1>Who are you?</h1>")
		}
		return crawltest.HTML("<h1>Hello admin</h1>")
	}
	for n := 1; n <= 3; n++ {
		shop[fmt.Sprintf("/list/%d", n)] = page(fmt.Sprintf("<div class=item><a href=/p/%d "+
			"title=Thing%d>x</a><span>$%d</span></div><div class=next><a href=/list/%d>next</a></div>", n, n, n*10,
			n%3+1))
		shop[fmt.Sprintf("/p/%d", n)] = page(fmt.Sprintf("<div id=course><h1>Course %d</h1><p>About %d.</p></div>", n,
			n))
	}
	return crawltest.New(crawltest.Site{Host: "wiki.test", Robots: closed, Pages: wiki},
		crawltest.Site{Host: "shop.test", Robots: closed, Pages: shop, OtherMethodPages: shopForms()},
		crawltest.Site{Host: "other.test", Robots: closed,
			Pages: map[string]crawltest.PageFunc{"/": page("<h1>Other</h1>")}})
}

// shopForms has a login form and a form that takes a file.
func shopForms() map[string]crawltest.PageFunc {
	return map[string]crawltest.PageFunc{
		"/login": func(r crawltest.PageRequest) crawltest.Response {
			if string(r.Body) != "password=admin&username=admin" {
				return crawltest.Status(http.StatusForbidden)
			}
			in := crawltest.Text("welcome")
			in.Header.Set("Set-Cookie", "session=s3; Path=/")
			return in
		},
		"/upload": func(r crawltest.PageRequest) crawltest.Response {
			whole := strings.Contains(string(r.Body), "onetwo@example.com") &&
				strings.Contains(string(r.Body), "\xff\xd8\x00")
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data; boundary=") || !whole {
				return crawltest.Status(http.StatusBadRequest)
			}
			return crawltest.HTML("<html><body>Success</body></html>")
		},
	}
}

// TestPrograms runs each program with plain colly and wrapped. Both scrape the same, and the
// wrapped one is polite. The same check finds plain colly impolite, which shows that the check
// works.
func TestPrograms(t *testing.T) {
	impolite := 0
	for name, program := range collyPrograms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := programWeb()
				want := runPlain(web, program)
				if !web.Judge(crawltest.JudgeOptions{}).OK() {
					impolite++
				}
				web = programWeb()
				got := runWrapped(t, web, program)
				if len(want) == 0 || !slices.Equal(got, want) {
					t.Errorf("wrapped it scraped\n%q\nplain\n%q", got, want)
				}
				checkPolite(t, web)
			})
		})
	}
	if impolite < len(collyPrograms) {
		t.Errorf("plain colly was impolite in %d programs of %d: the judge looks away", impolite, len(collyPrograms))
	}
}

func runPlain(web http.RoundTripper, program func(*programSession)) []string {
	c := colly.NewCollector()
	c.WithTransport(web)
	s := &programSession{Collector: c, join: func(string, *colly.Collector) {}, items: map[string]bool{},
		runQueue: func(q *queue.Queue) error { return q.Run(c) }}
	program(s)
	c.Wait()
	return slices.Sorted(maps.Keys(s.items))
}

func runWrapped(t *testing.T, web http.RoundTripper, program func(*programSession)) []string {
	c := colly.NewCollector()
	o := quietOptions(web)
	o.KeepCookies = true // as plain colly does
	crawl := wrapCollector(t, c, o)
	s := &programSession{Collector: c, items: map[string]bool{},
		join:     func(name string, other *colly.Collector) { must(t, crawl.JoinCollector(name, other)) },
		runQueue: func(q *queue.Queue) error { return crawl.RunQueue(t.Context(), q) }}
	program(s)
	must(t, crawl.Run(t.Context()))
	return slices.Sorted(maps.Keys(s.items))
}
