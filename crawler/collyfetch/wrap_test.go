package collyfetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/extensions"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// quietOptions returns WrapOptions for a web in memory, without a log.
func quietOptions(web http.RoundTripper) collyfetch.WrapOptions {
	return collyfetch.WrapOptions{
		Agent: "testbot/1.0", Contact: "https://bot.test/", Policy: politeness.Policy{Delay: 2 * time.Second},
		FetchConfig: httpfetch.Config{Transport: web}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// wrapCollector wraps c, and closes the crawl when the test ends.
func wrapCollector(t *testing.T, c *colly.Collector, o collyfetch.WrapOptions) *collyfetch.Crawl {
	t.Helper()
	crawl, err := collyfetch.Wrap(c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := crawl.Close(); err != nil {
			t.Error(err)
		}
	})
	return crawl
}

// must fails the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// smallWeb is a site of four pages; robots.txt disallows one.
func smallWeb() *crawltest.Web { return smallWebWithDelay(3 * time.Second) }

// smallWebWithDelay is smallWeb with another Crawl-delay.
func smallWebWithDelay(delay time.Duration) *crawltest.Web {
	pages := map[string]crawltest.PageFunc{}
	for path, body := range map[string]string{
		"/":       "<h1>Village</h1><a href=/church>x</a><a href=/mill>y</a><a href=/private>z</a>",
		"/church": "<h1>Church</h1><a href=/>home</a>", "/mill": "<h1>Mill</h1><a href=/>home</a>",
		"/private": "<h1>Private</h1>",
	} {
		pages[path] = crawltest.StaticPage(crawltest.HTML(body))
	}
	closed := func(p string) bool { return p == "/private" }
	return crawltest.New(crawltest.Site{Host: "a.test", Pages: pages, Robots: crawltest.StaticRobots(
		crawltest.RobotsSpec{Response: crawltest.Text(
			fmt.Sprintf("User-agent: *\nDisallow: /private\nCrawl-delay: %g\n", delay.Seconds())),
			CrawlDelay: delay, IsDisallowed: closed})})
}

// checkPolite fails the test if the server saw anything impolite.
func checkPolite(t *testing.T, web *crawltest.Web) {
	t.Helper()
	if report := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "testbot",
		MinDelay: 2 * time.Second}); !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}

// TestWrap: a colly program, synchronous or Async, runs with the Crawl in place of the collector. The
// callbacks get what they would get from colly; the server sees robots.txt and the delay honoured.
func TestWrap(t *testing.T) {
	for _, async := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			web := smallWeb()
			c := wrapCollector(t, colly.NewCollector(colly.Async(async)), quietOptions(web))
			var requested, titles []string
			c.OnRequest(func(r *colly.Request) { requested = append(requested, r.URL.Path) })
			c.OnHTML("a[href]", func(e *colly.HTMLElement) {
				if err := e.Request.Visit(e.Attr("href")); err != nil {
					t.Error(err)
				}
			})
			c.OnHTML("h1", func(e *colly.HTMLElement) { titles = append(titles, e.Text) })
			must(t, c.Visit("http://a.test/"))
			if async == (len(titles) > 0) {
				t.Errorf("async=%v: when Visit returned there were %q", async, titles)
			}
			c.Wait()
			if want := []string{"Village", "Church", "Mill"}; !slices.Equal(titles, want) {
				t.Errorf("async=%v: titles %q, want %q", async, titles, want)
			}
			if want := []string{"/", "/church", "/mill"}; !slices.Equal(requested, want) {
				t.Errorf("async=%v: OnRequest was called for %q, want %q", async, requested, want)
			}
			checkPolite(t, web)
		})
	}
}

// TestNoRequestPastTheTransport: with any transport that a program gives the collector, nothing is sent
// without a ticket, and the caller gets an error.
func TestNoRequestPastTheTransport(t *testing.T) {
	web := smallWeb()
	server, err := web.Start("")
	must(t, err)
	defer server.Close()
	address := "http://" + server.Addr + "/"
	proxy := func(*http.Request) (*url.URL, error) { return url.Parse(address) }
	for name, undermine := range map[string]func(*colly.Collector) *colly.Collector{
		"Clone": func(c *colly.Collector) *colly.Collector { return c.Clone() },
		"WithTransport": func(c *colly.Collector) *colly.Collector {
			c.WithTransport(http.DefaultTransport)
			return c
		},
		"SetClient": func(c *colly.Collector) *colly.Collector {
			c.SetClient(http.DefaultClient)
			return c
		},
		"SetProxyFunc": func(c *colly.Collector) *colly.Collector { c.SetProxyFunc(proxy); return c },
		"Clone and WithTransport": func(c *colly.Collector) *colly.Collector {
			c.WithTransport(http.DefaultTransport)
			return c.Clone()
		},
		"Clone and SetClient": func(c *colly.Collector) *colly.Collector {
			c.SetClient(&http.Client{})
			return c.Clone()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := quietOptions(nil)
			var log strings.Builder
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.FetchConfig = httpfetch.Config{AllowPrivate: true}
			o.Policy.Delay = time.Millisecond
			c := colly.NewCollector()
			crawl := wrapCollector(t, c, o)
			other := undermine(c)
			var visitErr error
			other.OnError(func(_ *colly.Response, err error) { visitErr = err })
			before := len(web.Log())
			err := errors.Join(other.Visit(address+"church"), crawl.Run(t.Context()))
			if visitErr == nil || !errors.Is(err, decorum.Unticketed) &&
				!strings.Contains(log.String(), "the collector's transport was replaced") {
				t.Errorf("Visit and Run returned %v, OnError got %v; want Unticketed, or why in the log:\n%s", err,
					visitErr, &log)
			}
			for _, x := range web.Log()[before:] {
				if !strings.HasSuffix(x.URL, "/robots.txt") {
					t.Errorf("the server saw %s", x.URL)
				}
			}
		})
	}
}

// TestWrapResumes: a crawl that was stopped resumes in another process, with the contexts of the
// callbacks, and visits no page twice.
func TestWrapResumes(t *testing.T) {
	web := smallWebWithDelay(50 * time.Millisecond)
	server, err := web.Start("")
	must(t, err)
	defer server.Close()
	o := quietOptions(server.Transport())
	o.Policy, o.Settings.Workers = politeness.Policy{Delay: 50 * time.Millisecond}, 1
	o.StateDir = filepath.Join(t.TempDir(), "state")
	var got []string
	session := func(pages int64) error {
		o.Settings.MaxPages = pages
		crawl, err := collyfetch.Wrap(colly.NewCollector(), o)
		must(t, err)
		crawl.OnHTML("h1", func(e *colly.HTMLElement) {
			got = append(got, e.Text+" from "+e.Request.Ctx.Get("from"))
			e.Request.Ctx.Put("from", e.Text)
			e.Request.Ctx.Put("n", 1)
		})
		crawl.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		return errors.Join(crawl.Visit("http://a.test/"), crawl.Close())
	}
	if err := session(2); !errors.Is(err, crawler.ErrPages) {
		t.Fatalf("the first session ended with %v, want ErrPages", err)
	}
	must(t, session(0))
	if want := []string{"Village from ", "Church from Village", "Mill from Village"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if report := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "testbot"}); !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}

// TestContext: context values pass through the queue unchanged, or are refused when they are queued.
func TestContext(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value any
		error string
	}{
		{"string", "x", ""}, {"int", 7, ""}, {"float", 7.0, ""}, {"bool", true, ""}, {"list", []any{"a", 1.5}, ""},
		{"map", map[string]any{"a": nil}, ""}, {"nothing", nil, ""},
		{"struct", struct{ A int }{1}, "which cannot be kept"}, {"pointer", new(int), "which cannot be kept"},
		{"func", func() {}, "cannot be kept"}, {"too long", strings.Repeat("x", 65<<10), "at most 65536 are kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crawl := wrapCollector(t, colly.NewCollector(), quietOptions(smallWeb()))
				var visited bool
				crawl.OnResponse(func(r *colly.Response) {
					if r.Request.URL.Path == "/mill" {
						got := r.Ctx.GetAny("k")
						visited = true
						if !reflect.DeepEqual(got, tt.value) {
							t.Errorf("%T %v came back as %T %v", tt.value, tt.value, got, got)
						}
						return
					}
					r.Ctx.Put("k", tt.value)
					err := r.Request.Visit("/mill")
					if (err != nil) != (tt.error != "") || err != nil && !strings.Contains(err.Error(), tt.error) {
						t.Errorf("Visit returned %v, want %q", err, tt.error)
					}
				})
				must(t, crawl.Visit("http://a.test/"))
				if visited != (tt.error == "") {
					t.Errorf("visited: %v", visited)
				}
			})
		})
	}
}

// TestRequestCallbacks: OnRequest, and colly's extensions, may abort a request and set its headers
// before it is sent, but cannot change the crawl's identity.
func TestRequestCallbacks(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*collyfetch.Crawl)
		want []string // paths and Referers
	}{
		{"abort", func(c *collyfetch.Crawl) {
			c.OnRequest(func(r *colly.Request) {
				if r.URL.Path == "/church" {
					r.Abort()
				}
			})
		}, []string{"/robots.txt ", "/ ", "/mill "}},
		{"Referer", func(c *collyfetch.Crawl) { extensions.Referer(c.Collector.Collector) },
			[]string{"/robots.txt ", "/ ", "/church http://a.test/", "/mill http://a.test/"}},
		{"URLLengthFilter", func(c *collyfetch.Crawl) {
			extensions.URLLengthFilter(c.Collector.Collector, len("http://a.test/mill"))
		},
			[]string{"/robots.txt ", "/ ", "/mill "}},
		{"RandomUserAgent", func(c *collyfetch.Crawl) {
			extensions.RandomUserAgent(c.Collector.Collector)
		}, []string{"/robots.txt "}},
		{"a header that is not the user's", func(c *collyfetch.Crawl) {
			c.OnRequest(func(r *colly.Request) { r.Headers.Set("Cookie", "a=b"); r.Headers.Set("If-None-Match", "x") })
		}, []string{"/robots.txt ", "/ ", "/church ", "/mill "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := smallWeb()
				var got []string
				o := quietOptions(roundTripFunc(func(r *http.Request) (*http.Response, error) {
					got = append(got, r.URL.Path+" "+
						r.Header.Get("Referer")+r.Header.Get("Cookie")+r.Header.Get("If-None-Match"))
					for name := range r.Header {
						if strings.HasPrefix(name, "decorum") {
							t.Errorf("header %q left the process", name)
						}
					}
					return web.RoundTrip(r)
				}))
				o.Settings.Workers = 1
				crawl := wrapCollector(t, colly.NewCollector(), o)
				tt.set(crawl)
				crawl.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
				must(t, crawl.Visit("http://a.test/"))
				if !slices.Equal(got, tt.want) {
					t.Errorf("the server was sent %q, want %q", got, tt.want)
				}
				checkPolite(t, web)
			})
		})
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPanicsOfCallbacks: after a panic in any kind of callback the crawl continues, and the panic
// is counted and logged with its URL and stack.
func TestPanicsOfCallbacks(t *testing.T) {
	for name, register := range map[string]func(*collyfetch.Crawl, func()){
		"OnRequest":         func(c *collyfetch.Crawl, f func()) { c.OnRequest(func(*colly.Request) { f() }) },
		"OnResponseHeaders": func(c *collyfetch.Crawl, f func()) { c.OnResponseHeaders(func(*colly.Response) { f() }) },
		"OnHTML":            func(c *collyfetch.Crawl, f func()) { c.OnHTML("h1", func(*colly.HTMLElement) { f() }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				o := quietOptions(smallWeb())
				o.Settings.Workers = 1
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				crawl := wrapCollector(t, colly.NewCollector(), o)
				register(crawl, func() { panic("oh dear") })
				must(t, crawl.Visit("http://a.test/"))
				must(t, crawl.Visit("http://a.test/mill"))
				if n := crawl.Stats().Panics; n != 2 {
					t.Errorf("%d panics were counted, want 2\n%s", n, &log)
				}
				for _, want := range []string{"oh dear", "url=http://a.test/mill", "TestPanicsOfCallbacks"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log does not say %q:\n%s", want, &log)
					}
				}
			})
		})
	}
}

// TestRetry: Request.Retry visits the page again after the host's delay, up to MaxAttempts times.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		o := quietOptions(web)
		o.Settings.MaxAttempts = 3
		crawl := wrapCollector(t, colly.NewCollector(), o)
		var times []time.Time
		crawl.OnResponse(func(r *colly.Response) {
			times = append(times, time.Now())
			must(t, r.Request.Retry())
		})
		must(t, crawl.Visit("http://a.test/mill"))
		if len(times) != 3 {
			t.Fatalf("%d visits, want 3", len(times))
		}
		for i, at := range times[1:] {
			if gap := at.Sub(times[i]); gap < 3*time.Second {
				t.Errorf("visit %d came %v after the one before", i+2, gap)
			}
		}
	})
}

// TestErrorsReachOnError: OnError gets the errors that colly reports, but not that an address was busy.
func TestErrorsReachOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/reset": crawltest.StaticPage(crawltest.Response{Fault: crawltest.Reset}),
			"/gone":  crawltest.StaticPage(crawltest.Status(http.StatusGone))}})
		o := quietOptions(web)
		o.Settings.MaxAttempts, o.Settings.Workers = 1, 1
		crawl := wrapCollector(t, colly.NewCollector(), o)
		var got []string
		crawl.OnError(func(r *colly.Response, err error) {
			got = append(got, r.Request.URL.Path+" "+http.StatusText(r.StatusCode))
			if r.StatusCode == 0 && !errors.Is(err, decorum.Unreachable) {
				t.Errorf("%v, want Unreachable", err)
			}
			if r.Request.URL.Path == "/reset" {
				must(t, r.Request.Visit("/gone")) // from a page without a response
			}
		})
		must(t, crawl.Visit("http://a.test/reset"))
		if want := []string{"/reset ", "/gone Gone"}; !slices.Equal(got, want) {
			t.Errorf("OnError was called for %q, want %q", got, want)
		}
	})
}

// TestDetach: a detached callback is not called again.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crawl := wrapCollector(t, colly.NewCollector(), quietOptions(smallWeb()))
		calls := 0
		crawl.OnHTML("h1", func(*colly.HTMLElement) { calls++; crawl.OnHTMLDetach("h1") })
		crawl.OnXML("//h1", func(*colly.XMLElement) { calls++; crawl.OnXMLDetach("//h1") })
		must(t, crawl.Visit("http://a.test/"))
		must(t, crawl.Visit("http://a.test/mill"))
		if calls != 2 {
			t.Errorf("%d calls, want 2", calls)
		}
	})
}

// TestAbortAfterHeaders: a page aborted in OnResponseHeaders counts as visited, and its body is not
// read.
func TestAbortAfterHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		var acks []storage.AckOutcome
		o := quietOptions(web)
		o.Hooks.Acked = func(a storage.Ack) { acks = append(acks, a.Outcome) }
		crawl := wrapCollector(t, colly.NewCollector(), o)
		crawl.OnResponseHeaders(func(r *colly.Response) { r.Request.Abort() })
		crawl.OnResponse(func(*colly.Response) { t.Error("the page was read") })
		must(t, crawl.Visit("http://a.test/mill"))
		// The acks are of robots.txt and the page.
		if want := []storage.AckOutcome{storage.Requeue, storage.Done}; !slices.Equal(acks, want) {
			t.Errorf("acks %v, want %v", acks, want)
		}
		checkPolite(t, web)
	})
}

// TestJoin: the responses to a joined Clone's requests reach that Clone's callbacks, also after a
// restart, and the Clone shares the crawl's seen set.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		c := colly.NewCollector()
		crawl := wrapCollector(t, c, quietOptions(web))
		detail := c.Clone()
		must(t, crawl.JoinCollector("detail", detail))
		if crawl.JoinCollector("detail", c.Clone()) == nil {
			t.Error("a name was taken twice")
		}
		var got []string
		crawl.OnHTML("a[href]", func(e *colly.HTMLElement) {
			must(t, detail.Visit(e.Request.AbsoluteURL(e.Attr("href"))))
		})
		crawl.OnRequest(func(r *colly.Request) { got = append(got, "asks "+r.URL.Path) })
		crawl.OnHTML("h1", func(e *colly.HTMLElement) { got = append(got, "list "+e.Text) })
		detail.OnHTML("h1", func(e *colly.HTMLElement) { got = append(got, "detail "+e.Text) })
		must(t, crawl.Visit("http://a.test/"))
		if want := []string{"asks /", "list Village", "detail Church", "detail Mill"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		checkPolite(t, web)
	})
}

// TestRefusedSettings: an unsupported setting of a collector is refused with its name, whenever the
// program sets it.
func TestRefusedSettings(t *testing.T) {
	for name, set := range map[string]func(*colly.Collector){
		"CheckHead": func(c *colly.Collector) { c.CheckHead = true },
		"CacheDir":  func(c *colly.Collector) { c.CacheDir = "cache" },
		"UserAgent": func(c *colly.Collector) { c.UserAgent = "Mozilla/5.0" },
	} {
		c := colly.NewCollector()
		set(c)
		if _, err := collyfetch.Wrap(c, quietOptions(smallWeb())); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Wrap returned %v, want an error that names %s", err, name)
		}
		c = colly.NewCollector()
		crawl := wrapCollector(t, c, quietOptions(smallWeb()))
		set(c)
		if err := crawl.Visit("http://a.test/"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Visit returned %v, want an error that names %s", err, name)
		}
	}
	for name, o := range map[string]collyfetch.WrapOptions{
		"contact": {Agent: "testbot"}, "product token": {Agent: "bot 7", Contact: "https://bot.test/"},
		"agent": {Agent: "a/b/c", Contact: "https://bot.test/"},
	} {
		if _, err := collyfetch.Wrap(colly.NewCollector(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Wrap returned %v, want an error that names %s", err, name)
		}
	}
}

// TestStdlibContext: canceling the context of colly.StdlibContext ends the crawl.
func TestStdlibContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		crawl := wrapCollector(t, colly.NewCollector(colly.StdlibContext(ctx)), quietOptions(smallWeb()))
		crawl.OnResponse(func(*colly.Response) { cancel() })
		crawl.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		if err := crawl.Visit("http://a.test/"); !errors.Is(err, context.Canceled) {
			t.Errorf("Visit returned %v, want Canceled", err)
		}
		if n := crawl.Stats().Pages; n != 1 {
			t.Errorf("%d pages were visited, want 1", n)
		}
	})
}
