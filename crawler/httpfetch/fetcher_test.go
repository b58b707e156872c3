package httpfetch_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// TestNoTicketNoRequest: a request without a fresh ticket is refused.
func TestNoTicketNoRequest(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test"})
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: web})
	if err != nil {
		t.Fatal(err)
	}
	ticket := robotsTicket(t, "http://a.test/robots.txt")
	if _, err := fetcher.Fetch(t.Context(), crawler.Ticket{}); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("the zero ticket: %v, want Unticketed", err)
	}
	if _, err := fetcher.Fetch(t.Context(), ticket); err != nil {
		t.Errorf("a good ticket: %v", err)
	}
	if _, err := fetcher.Fetch(t.Context(), ticket); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("a ticket used twice: %v, want Unticketed", err)
	}
	if n := len(web.Log()); n != 1 {
		t.Errorf("the server saw %d requests, want 1", n)
	}
}

// TestFetch: each kind of response reaches the handler with its status, body and truncation, or as an
// error.
func TestFetch(t *testing.T) {
	big := strings.Repeat("x", 2000)
	for _, tt := range []struct {
		name      string
		answer    crawltest.Response
		status    int
		body      string
		truncated bool
		fails     bool
	}{
		{name: "a page", answer: crawltest.HTML("hello"), status: 200, body: "hello"},
		{name: "gzip", answer: crawltest.Response{Body: "hello hello", GzipIfAccepted: true},
			status: 200, body: "hello hello"},
		{name: "no content", answer: crawltest.Status(204), status: 204},
		{name: "an error page", answer: crawltest.Status(500), status: 500, body: "Internal Server Error\n"},
		{name: "a redirect is an answer", answer: crawltest.Redirect(302, "http://b.test/"),
			status: 302, body: "Found\n"},
		{name: "a redirect to nowhere", answer: crawltest.Redirect(302, "http://%zz/"), status: 302, body: "Found\n"},
		{name: "too long", answer: crawltest.HTML(big), status: 200, body: big[:1000], truncated: true},
		{name: "long, and just fits", answer: crawltest.HTML(big[:1000]), status: 200, body: big[:1000]},
		{name: "a gzip bomb", answer: crawltest.Response{Body: strings.Repeat("x", 1<<20), GzipIfAccepted: true},
			status: 200, body: big[:1000], truncated: true},
		{name: "not a type that is wanted", answer: crawltest.ResponseOfType("video/mp4", "moo"),
			status: 200, truncated: true},
		{name: "a type in odd letters", answer: crawltest.ResponseOfType("Text/HTML;charset=x;;", "hello"),
			status: 200, body: "hello"},
		{name: "bytes are kept as they came", answer: crawltest.ResponseOfType("text/html; charset=iso-8859-1",
			"Zw\xf6lf"), status: 200, body: "Zw\xf6lf"},
		{name: "reset", answer: crawltest.Response{Fault: crawltest.Reset}, fails: true},
		{name: "reset in the body", answer: crawltest.Response{Body: big, Fault: crawltest.ResetBody}, fails: true},
		{name: "shorter than it said", answer: crawltest.Response{Body: big[:500], Fault: crawltest.ShortBody},
			fails: true},
		{name: "without its last chunk", answer: crawltest.Response{Body: big[:500], Fault: crawltest.MissingLastChunk},
			fails: true},
		{name: "broken gzip", answer: crawltest.Response{Body: big[:500], Fault: crawltest.BadGzip}, fails: true},
		{name: "never", answer: crawltest.Response{Fault: crawltest.Hang}, fails: true},
		{name: "never ends", answer: crawltest.Response{Body: big[:500], Fault: crawltest.StallBody}, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(crawltest.Site{Host: "a.test",
					Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(tt.answer)}})
				fetcher := newFetcher(t, httpfetch.Config{Transport: web, MaxBody: 1000, Timeout: 5 * time.Second,
					ContentTypes: []string{"text/html", "text/plain"}})
				crawl := newCrawl(t, fetcher, "http://a.test/")
				crawl.Settings.MaxAttempts = 1
				var got *crawler.Visit
				crawl.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
				crawl.Hooks.Visited = func(v *crawler.Visit) {
					if !v.Clearance.IsForRobots() {
						got = v
					}
				}
				// The host that a redirect leads to does not exist.
				if err := crawl.Run(t.Context()); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
					t.Fatal(err)
				}
				switch {
				case got == nil:
					t.Fatal("the page was not visited")
				case tt.fails && (got.Response != nil || !errors.Is(got.Err, decorum.Unreachable)):
					t.Errorf("got %+v, %v; want no response and Unreachable", got.Response, got.Err)
				case tt.fails:
				case got.Response == nil:
					t.Errorf("no response: %v", got.Err)
				case got.Status() != tt.status || string(got.Response.Body) != tt.body ||
					got.Response.BodyLimitExceeded != tt.truncated:
					t.Errorf("got %d %q truncated=%v", got.Status(), got.Response.Body, got.Response.BodyLimitExceeded)
				}
			})
		})
	}
}

// TestNonPublicAddresses: a URL that leads to this machine is refused when the connection is made,
// whatever its name resolved to before; nothing is sent.
func TestNonPublicAddresses(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test"})
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, ConnectToRules: serveWeb(t, web)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetcher.Fetch(t.Context(), robotsTicket(t, "http://a.test/")); !errors.Is(err, decorum.Forbidden) {
		t.Errorf("got %v, want Forbidden", err)
	}
	if n := len(web.Log()); n != 0 {
		t.Errorf("the server saw %d requests", n)
	}
}

// TestBrokenConnectionIsNotUsedTwice: when a kept-open connection is reset, the request is sent again
// by a second visit, with its own ticket and after the host's delay. net/http repeats a GET by itself
// in this case, which would be a visit without a ticket. The second visit fails on a new connection.
func TestBrokenConnectionIsNotUsedTwice(t *testing.T) {
	web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<a href=/reset>x</a>")),
		"/reset": crawltest.StaticPage(crawltest.Response{Fault: crawltest.Reset}),
	}})
	crawl := newCrawl(t, newFetcher(t, httpfetch.Config{ConnectToRules: serveWeb(t, web), AllowPrivate: true}),
		"http://a.test/")
	crawl.Settings.MaxAttempts = 1
	if err := crawl.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range web.Log() {
		got = append(got, strings.TrimPrefix(x.URL, "http://a.test"))
	}
	if report := web.Judge(crawltest.JudgeOptions{MinDelay: crawl.Policy.Delay, AllowRevisits: true}); !report.OK() {
		t.Errorf("the crawl broke rules:\n%s", report)
	}
	if want := []string{"/robots.txt", "/", "/reset", "/reset"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

// TestRequestsHaveNoBody: GET requests have no body over HTTP/1.1 and HTTP/2.
func TestRequestsHaveNoBody(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		var proto string
		var length int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			proto, length = r.Proto, r.ContentLength
		}))
		s.EnableHTTP2 = h2
		s.StartTLS()
		defer s.Close()
		fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: s.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fetcher.Fetch(t.Context(), robotsTicket(t, s.URL)); err != nil {
			t.Fatal(err)
		}
		if length != 0 || (proto == "HTTP/2.0") != h2 {
			t.Errorf("%s request with a body of length %d, want 0", proto, length)
		}
	}
}

// TestSitemapsAreReadWhole: MaxBody limits pages only; a sitemap is read up to the limit of
// sitemaps.org.
func TestSitemapsAreReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list strings.Builder
		list.WriteString(strings.Repeat("http://a.test/\n", 1000))
		list.WriteString("http://a.test/last\n")
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: crawltest.StaticRobots(
				crawltest.RobotsSpec{Response: crawltest.Text("Sitemap: http://a.test/map.txt\n")}),
			Pages: map[string]crawltest.PageFunc{"/map.txt": crawltest.StaticPage(crawltest.Text(list.String())),
				"/":     crawltest.StaticPage(crawltest.HTML("home")),
				"/last": crawltest.StaticPage(crawltest.HTML("last"))}})
		crawl := newCrawl(t, newFetcher(t, httpfetch.Config{Transport: web, MaxBody: 1000}), "http://a.test/")
		if err := crawl.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(web.Log(), func(x crawltest.Exchange) bool { return x.URL == "http://a.test/last" }) {
			t.Error("the end of the sitemap was not read")
		}
	})
}

// TestPathIsSentAsItIs: the request has the path of the URL unchanged. net/url would escape it into
// another path, which robots.txt may disallow.
func TestPathIsSentAsItIs(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b":                "/a/b",
		"/a%2Fb":              "/a%2Fb",
		"/a%2Fb|c":            "/a%2Fb%7Cc",
		"/%2E%2F|'^%25/ü;[a]": "/.%2F%7C'%5E%25/%C3%BC;[a]",
		"/{a}%2fb?c|d":        "/%7Ba%7D%2Fb?c|d",
		"/a?":                 "/a?",
		// A percent sign that begins no escape is sent as browsers do.
		"/100%":            "/100%",
		"/%zz|%2f?":        "/%zz|%2F?",
		"/%/?q=100%&x=%zz": "/%/?q=100%&x=%zz",
		"//a.test/%":       "http://a.test//a.test/%",
	} {
		var sent string
		fetcher := newFetcher(
			t, httpfetch.Config{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
				sent = r.URL.RequestURI()
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r},
					nil
			})})
		_, err := fetcher.Fetch(t.Context(), pageTicket(t, "http://a.test"+path))
		must(t, err)
		if sent != want {
			t.Errorf("%s: sent %q, want %s", path, sent, want)
		}
	}
}

// TestStrayPercentSign: over a socket, and through a proxy, a path with a percent sign that begins no
// escape reaches the server as it is.
func TestStrayPercentSign(t *testing.T) {
	lines := make(chan string, 2)
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, func(c net.Conn) {
		defer c.Close()
		r := textproto.NewReader(bufio.NewReader(c))
		line, _ := r.ReadLine()
		_, _ = r.ReadMIMEHeader()
		lines <- line
		io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
	})
	for _, test := range []struct {
		cfg  httpfetch.Config
		want string
	}{
		{httpfetch.Config{ConnectToRules: []string{"::" + l.Addr().String()}}, "GET /100%?q=% HTTP/1.1"},
		{httpfetch.Config{Proxy: "http://" + l.Addr().String()}, "GET http://a.test/100%?q=% HTTP/1.1"},
	} {
		test.cfg.AllowPrivate = true
		res, err := newFetcher(t, test.cfg).Fetch(t.Context(), pageTicket(t, "http://a.test/100%?q=%"))
		must(t, err)
		if got := <-lines; got != test.want || string(res.Body) != "ok" {
			t.Errorf("sent %q, want %q; body %q", got, test.want, res.Body)
		}
	}
}
