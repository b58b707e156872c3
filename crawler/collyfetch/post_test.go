package collyfetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// formsWeb is a site with forms; robots.txt disallows the one at /private. It records what it
// receives, and sends it back.
func formsWeb(forms map[string]crawltest.PageFunc) (*crawltest.Web, func() []string) {
	var mu sync.Mutex // guards got
	var got []string
	record := func(next crawltest.PageFunc) crawltest.PageFunc {
		return func(r crawltest.PageRequest) crawltest.Response {
			mu.Lock()
			defer mu.Unlock()
			request := fmt.Sprintf("%s %s %s %q", r.Method, r.Path, r.Header.Get("Content-Type"), r.Body)
			got = append(got, request)
			if next != nil {
				return next(r)
			}
			return crawltest.HTML("<h1>Thanks</h1><p>" + request + "</p>")
		}
	}
	site := crawltest.Site{Host: "a.test",
		OtherMethodPages: map[string]crawltest.PageFunc{"/form": record(nil), "/private": record(nil)},
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("<h1>Office</h1>")),
			"/form": record(nil)},
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
			"/private\nCrawl-delay: 3\n"),
			CrawlDelay: 3 * time.Second, IsDisallowed: func(p string) bool {
				return strings.HasPrefix(p, "/private")
			}})}
	for path, page := range forms {
		site.OtherMethodPages[path] = record(page)
	}
	return crawltest.New(site, crawltest.Site{Host: "b.test",
			OtherMethodPages: map[string]crawltest.PageFunc{"/form": record(nil)},
			Pages:            map[string]crawltest.PageFunc{"/form": record(nil)}}), func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(got)
		}
}

// TestMethods: a request with each method other than GET is sent as the callback made it, and its
// response reaches the callbacks with its Ctx. robots.txt and the host's delay apply to all.
func TestMethods(t *testing.T) {
	newContext := func() *colly.Context {
		ctx := colly.NewContext()
		ctx.Put("k", "kept")
		return ctx
	}
	for _, tt := range []struct {
		name string
		send func(*colly.Collector) error
		want string
	}{
		{"Post", func(c *colly.Collector) error {
			return c.Post("http://a.test/form", map[string]string{"b": "2 3", "a": "1"})
		}, `POST /form application/x-www-form-urlencoded "a=1&b=2+3"`},
		{"Post of nothing", func(c *colly.Collector) error { return c.Post("http://a.test/form", nil) },
			`POST /form application/x-www-form-urlencoded ""`},
		{"PostRaw", func(c *colly.Collector) error { return c.PostRaw("http://a.test/form?q=1", []byte("\x00\xffx")) },
			`POST /form?q=1 application/x-www-form-urlencoded "\x00\xffx"`},
		{"Request with a type", func(c *colly.Collector) error {
			h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {c.UserAgent}}
			return c.Request("POST", "http://a.test/form", strings.NewReader("{}"), newContext(), h)
		}, `POST /form application/json "{}"`},
		{"PUT", func(c *colly.Collector) error {
			return c.Request("PUT", "http://a.test/form", io.MultiReader(strings.NewReader("x")), newContext(), nil)
		}, `PUT /form  "x"`},
		{"DELETE", func(c *colly.Collector) error { return c.Request("DELETE", "http://a.test/form", nil, nil, nil) },
			`DELETE /form  ""`},
		{"HEAD", func(c *colly.Collector) error { return c.Head("http://a.test/form") }, `HEAD /form  ""`},
		{"OPTIONS", func(c *colly.Collector) error { return c.Request("OPTIONS", "http://a.test/form", nil, nil, nil) },
			`OPTIONS /form  ""`},
		{"a session in the URL", func(c *colly.Collector) error {
			return c.PostRaw("http://a.test/form;jsessionid=1", nil)
		},
			`POST /form;jsessionid=1 application/x-www-form-urlencoded ""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, got := formsWeb(map[string]crawltest.PageFunc{"/form;jsessionid=1": nil})
				engine := colly.NewCollector()
				c := wrapCollector(t, engine, quietOptions(web))
				var answers []string
				c.OnResponse(func(r *colly.Response) {
					answers = append(answers, r.Request.Method)
					if k := r.Ctx.Get("k"); k != "" && k != "kept" {
						t.Errorf("context %q", k)
					}
				})
				c.OnError(func(r *colly.Response, err error) { t.Errorf("OnError: %d %v", r.StatusCode, err) })
				must(t, tt.send(engine))
				must(t, tt.send(engine)) // an identical request is sent once
				must(t, c.Run(t.Context()))
				method, _, _ := strings.Cut(tt.want, " ")
				if !slices.Equal(got(), []string{tt.want}) || !slices.Equal(answers, []string{method}) {
					t.Errorf("the server got %q, want %q; the callbacks %q", got(), tt.want, answers)
				}
				checkPolite(t, web)
			})
		})
	}
}

// TestPostMultipart: colly's multipart form arrives with a Content-Type that names its boundary.
func TestPostMultipart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, got := formsWeb(nil)
		c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		must(t, c.PostMultipart("http://a.test/form", map[string][]byte{"name": []byte("Ada")}))
		if all := got(); len(all) != 1 || !strings.HasPrefix(all[0], "POST /form multipart/form-data; boundary=") ||
			!strings.Contains(all[0], "Ada") {
			t.Errorf("the server got %q", all)
		}
	})
}

// TestCrawlMethodsWait: every request method of a Crawl returns when all that follows from the
// request has been visited, as with colly.
func TestCrawlMethodsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, got := formsWeb(nil)
		c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		for i, send := range []func() error{
			func() error { return c.Head("http://a.test/form") },
			func() error { return c.Post("http://a.test/form", map[string]string{"a": "1"}) },
			func() error { return c.PostRaw("http://a.test/form", []byte("raw")) },
			func() error { return c.PostMultipart("http://a.test/form", map[string][]byte{"a": nil}) },
			func() error { return c.Request("PUT", "http://a.test/form", strings.NewReader("x"), nil, nil) },
			func() error { return c.Request("GET", "http://a.test/form", nil, nil, nil) },
		} {
			must(t, send())
			if n := len(got()); n != i+1 {
				t.Fatalf("after call %d the server has seen %d requests", i+1, n)
			}
		}
		checkPolite(t, web)
	})
}

// TestPostsInCallbacks: a POST that a callback makes is queued with depth and Ctx. The same body
// for the same URL is sent once, and a URL that robots.txt disallows gets nothing.
func TestPostsInCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, got := formsWeb(nil)
		c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		var thanks []string
		c.OnHTML("h1", func(e *colly.HTMLElement) {
			if e.Text == "Thanks" {
				thanks = append(thanks, fmt.Sprintf("%s depth %d", e.Request.Ctx.Get("n"), e.Request.Depth))
				return
			}
			for _, n := range []string{"1", "2", "1"} {
				e.Request.Ctx.Put("n", n)
				must(t, e.Request.Post("/form", map[string]string{"n": n}))
			}
			must(t, e.Request.Post("/private", map[string]string{"n": "1"}))
		})
		must(t, c.Visit("http://a.test/"))
		if want := []string{"1 depth 2", "2 depth 2"}; !slices.Equal(thanks, want) {
			t.Errorf("thanks %q, want %q", thanks, want)
		}
		if len(got()) != 2 || c.Stats().BlockedURLs != 1 {
			t.Errorf("the server got %q, %d were blocked", got(), c.Stats().BlockedURLs)
		}
		checkPolite(t, web)
	})
}

// TestRefusedRequests: an unsupported request returns an error to its caller, and nothing is sent.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	web, _ := formsWeb(nil)
	o := quietOptions(web)
	o.MaxRequestBody = 10
	c := wrapCollector(t, colly.NewCollector(), o)
	request := func(method, body string) func() error {
		return func() error {
			return c.Request(method, "http://a.test/form", strings.NewReader(body), nil, nil)
		}
	}
	for name, tt := range map[string]struct {
		send func() error
		want string
	}{
		"long": {func() error { return c.PostRaw("http://a.test/form", make([]byte, 11)) },
			"longer than 10 bytes"},
		"GET body":  {request("GET", "x"), "without a body"},
		"HEAD body": {request("HEAD", "x"), "without a body"},
		"TRACE":     {request("TRACE", ""), "TRACE and CONNECT"},
		"CONNECT":   {request("CONNECT", ""), "TRACE and CONNECT"},
		"broken body": {func() error { return c.Request("POST", "http://a.test/form", brokenReader{}, nil, nil) },
			"cannot be read"},
	} {
		if err := tt.send(); !errors.Is(err, decorum.Unticketed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want Unticketed and %q", name, err, tt.want)
		}
	}
	must(t, c.PostRaw("http://a.test/private", make([]byte, 10))) // of the greatest allowed length
	if n := len(web.Log()); n != 1 {
		t.Errorf("the server saw %d requests, want that for robots.txt", n)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestRedirectsOfPosts: the status of a redirect decides the method and body of the request that
// follows.
func TestRedirectsOfPosts(t *testing.T) {
	const form = " application/x-www-form-urlencoded "
	for _, tt := range []struct {
		method string
		status int
		to     string
		then   string // the next request that the server gets
	}{
		{"POST", 301, "/form", `GET /form  ""`}, {"POST", 302, "/form", `GET /form  ""`},
		{"POST", 303, "/form", `GET /form  ""`},
		{"POST", 303, "http://b.test/form", `GET /form  ""`},
		{"POST", 307, "/form", `POST /form` + form + `"x=1"`}, {"POST", 308, "/form", `POST /form` + form + `"x=1"`},
		{"POST", 307, "http://b.test/form", ""}, {"POST", 308, "https://a.test/form", ""},
		{"PUT", 302, "/form", `GET /form  ""`}, {"PUT", 308, "/form", `PUT /form` + form + `"x=1"`},
		{"POST", 303, "/go", ""}, // the GET of /go gets a 404
		{"OPTIONS", 302, "/form", `OPTIONS /form` + form + `"x=1"`},
		{"OPTIONS", 302, "http://b.test/form", ""}, {"OPTIONS", 308, "http://b.test/form", ""},
	} {
		t.Run(fmt.Sprintf("%s %d %s", tt.method, tt.status, tt.to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, got := formsWeb(map[string]crawltest.PageFunc{"/go": crawltest.StaticPage(
					crawltest.Redirect(tt.status, tt.to))})
				c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
				var failed []int
				c.OnError(func(r *colly.Response, _ error) { failed = append(failed, r.StatusCode) })
				h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "User-Agent": {c.UserAgent}}
				must(t, c.Request(tt.method, "http://a.test/go", strings.NewReader("x=1"), nil, h))
				want := []string{tt.method + ` /go` + form + `"x=1"`}
				var wantFailed []int
				switch {
				case tt.then != "":
					want = append(want, tt.then)
				case tt.to == "/go":
					wantFailed = []int{404}
				default: // the redirect is not followed; the callbacks get it
					wantFailed = []int{tt.status}
				}
				if !slices.Equal(got(), want) || !slices.Equal(failed, wantFailed) {
					t.Errorf("the server got %q, want %q; OnError %v, want %v", got(), want, failed, wantFailed)
				}
				checkPolite(t, web)
			})
		})
	}
}

// TestHead: the response to a HEAD has a header and no body, whatever Content-Length says. HEAD is
// repeated after a failure, as GET is, and a redirected HEAD stays a HEAD.
func TestHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		packed := crawltest.HTML("<h1>long</h1>")
		packed.GzipIfAccepted = true
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/": func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL == 1 {
					return crawltest.Status(500)
				}
				return crawltest.Redirect(301, "/new")
			}, "/new": crawltest.StaticPage(packed)}})
		c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		var got []string
		c.OnResponse(func(r *colly.Response) {
			got = append(got, fmt.Sprintf("%s %d %d", r.Request.URL.Path, r.StatusCode, len(r.Body)))
		})
		must(t, c.Head("http://a.test/"))
		if want := []string{"/new 200 0"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, x := range web.Log()[1:] {
			if x.Method != http.MethodHead {
				t.Errorf("%s %s was requested", x.Method, x.URL)
			}
		}
		if n := len(web.Log()); n != 4 {
			t.Errorf("%d requests, want robots.txt, two to / and one to /new", n)
		}
	})
}

// TestPostIsSentOnce: a POST is not repeated, however it fails. OnError gets the failure; without a
// complete response the error says that the outcome is in doubt.
func TestPostIsSentOnce(t *testing.T) {
	// Like many programs, these call Retry in OnError.
	busy := crawltest.Status(503)
	busy.Header.Set("Retry-After", "1")
	for name, tt := range map[string]struct {
		answer crawltest.Response
		status int // seen by OnError; 0: in doubt
	}{
		"500": {crawltest.Status(500), 500}, "503": {busy, 503}, "429": {crawltest.Status(429), 429},
		"408": {crawltest.Status(408), 408}, "404": {crawltest.Status(404), 404},
		"reset":     {crawltest.Response{Fault: crawltest.Reset}, 0},
		"short":     {crawltest.Response{Body: "half", Fault: crawltest.ShortBody}, 0},
		"hang":      {crawltest.Response{Fault: crawltest.Hang}, 0},
		"reset mid": {crawltest.Response{Body: "half", Fault: crawltest.ResetBody}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, got := formsWeb(map[string]crawltest.PageFunc{"/bad": crawltest.StaticPage(tt.answer)})
				c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
				var errs []error
				c.OnError(func(r *colly.Response, err error) {
					if errs = append(errs, err); r.StatusCode != tt.status {
						t.Errorf("status %d, want %d", r.StatusCode, tt.status)
					}
					must(t, r.Request.Retry()) // which has no effect
				})
				must(t, c.Post("http://a.test/bad", map[string]string{"x": "1"}))
				doubtful := int64(0)
				if tt.status == 0 {
					doubtful = 1
				}
				if len(got()) != 1 || len(errs) != 1 || errors.Is(errs[0], decorum.InDoubt) != (tt.status == 0) {
					t.Errorf("the server got %q, OnError %v", got(), errs)
				}
				if s := c.Stats(); s.InDoubt != doubtful || s.Retries != 0 {
					t.Errorf("stats %+v, want %d in doubt, no retries", s, doubtful)
				}
			})
		})
	}
}

// TestInterruptedPost: a POST that was being sent when the crawl was halted is not sent by the next
// run, which reports it in doubt instead.
func TestInterruptedPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, got := formsWeb(map[string]crawltest.PageFunc{"/slow": crawltest.StaticPage(
			crawltest.Response{HeaderDelay: time.Hour})})
		o := quietOptions(web)
		o.Settings.GracePeriod, o.FetchConfig.Timeout = time.Second, 2*time.Hour
		c := wrapCollector(t, colly.NewCollector(), o)
		var errs []error
		var requests int
		c.OnRequest(func(*colly.Request) { requests++ })
		c.OnError(func(_ *colly.Response, err error) { errs = append(errs, err) })
		must(t, c.Collector.Post("http://a.test/slow", nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Run(ctx); err == nil {
			t.Error("the run was not stopped")
		}
		if len(errs) != 0 || requests != 1 {
			t.Errorf("OnError %v, OnRequest %d times; want nothing, and once", errs, requests)
		}
		must(t, c.Run(t.Context()))
		if len(errs) != 1 || !errors.Is(errs[0], decorum.InDoubt) || len(got()) != 1 || c.Stats().InDoubt != 1 {
			t.Errorf("OnError %v, the server got %q, %d in doubt; want one of each", errs, got(), c.Stats().InDoubt)
		}
		must(t, c.Run(t.Context())) // OnError is called once in all runs
		if len(errs) != 1 {
			t.Errorf("OnError %v", errs)
		}
	})
}
