package httpfetch_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/crawler/internal/tickettest"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A cookieWeb is a transport in memory. Each page sets the cookies listed for its URL, and the web
// records the cookies that each page received.
type cookieWeb struct {
	setCookies      map[string][]string
	receivedCookies map[string]string
}

// RoundTrip implements http.RoundTripper.
func (w *cookieWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	w.receivedCookies[r.URL.String()] = r.Header.Get("Cookie")
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Request: r,
		Header: http.Header{"Set-Cookie": w.setCookies[r.URL.String()]}}, nil
}

// TestCookies: each page receives the cookies that RFC 6265 says, before and after the crawl is
// restarted and as time passes.
func TestCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := memory.New(memory.Config{})
		web := &cookieWeb{receivedCookies: map[string]string{}, setCookies: map[string][]string{
			"http://a.example.co.uk/in": {"host=1", "site=2; Domain=example.co.uk; Path=/", "deep=3; Path=/deep",
				"safe=4; Secure; Domain=example.co.uk", "brief=5; Max-Age=60", "day=6; Max-Age=86400",
				"all=7; Domain=co.uk", "other=8; Domain=other.co.uk", "past=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
				"long=" + strings.Repeat("x", 5000)},
			"http://a.example.co.uk/out":        {"host=; Max-Age=0"},
			"http://a.example.co.uk/again":      {"site=new; Domain=.EXAMPLE.co.uk; Path=/"},
			"http://a.example.co.uk/robots.txt": {"robots=10"},
			"http://127.0.0.1/in":               {"literal=11"},
		}}
		var fetcher *httpfetch.Fetcher
		start := func() {
			var err error
			fetcher, err = httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: web,
				Cookies: httpfetch.NewCookies(notes)})
			if err != nil {
				t.Fatal(err)
			}
		}
		visit := func(u string) {
			t.Helper()
			cfg := tickettest.Config{URL: u, ForRobots: strings.HasSuffix(u, "/robots.txt")}
			if _, err := fetchInVisit(t, fetcher, cfg); err != nil {
				t.Fatal(err)
			}
		}
		start()
		for _, step := range []struct{ visit, shown string }{
			{"http://a.example.co.uk/in", ""},
			{"http://a.example.co.uk/robots.txt", ""},
			{"http://a.example.co.uk/", "brief=5 day=6 host=1 site=2"},
			{"http://a.example.co.uk/deep/er", "brief=5 day=6 deep=3 host=1 site=2"},
			{"https://b.example.co.uk/", "safe=4 site=2"},
			{"http://other.co.uk/", ""},
			{"http://127.0.0.1/in", ""},
			{"http://127.0.0.1/", "literal=11"},
			{"restart", ""},
			{"https://b.example.co.uk/", "safe=4 site=2"},
			{"http://127.0.0.1/", "literal=11"},
			{"a minute", ""},
			{"http://a.example.co.uk/again", "day=6 host=1 site=2"},
			{"http://a.example.co.uk/out", "day=6 host=1 site=new"},
			{"http://a.example.co.uk/", "day=6 site=new"},
			{"restart", ""},
			{"http://a.example.co.uk/", "day=6 site=new"},
			{"a day", ""},
			{"restart", ""},
			{"http://a.example.co.uk/", "site=new"},
		} {
			switch step.visit {
			case "restart":
				start()
				continue
			case "a minute":
				time.Sleep(time.Minute)
				continue
			case "a day":
				time.Sleep(24 * time.Hour)
				continue
			}
			visit(step.visit)
			got := strings.Split(web.receivedCookies[step.visit], "; ")
			slices.Sort(got)
			if strings.Join(got, " ") != step.shown {
				t.Errorf("%s was shown %q, want %q", step.visit, got, step.shown)
			}
		}
	})
}

// TestCookiesOfSiblings: a host can neither change nor remove a cookie that another host of its
// site has set for itself.
func TestCookiesOfSiblings(t *testing.T) {
	web := &cookieWeb{receivedCookies: map[string]string{}, setCookies: map[string][]string{
		"http://a.example.com/in": {"own=1; Domain=a.example.com", "session=2"},
		"http://evil.example.com/": {"own=x; Domain=a.example.com", "own=; Max-Age=0; Domain=.A.example.com",
			"session=x; Domain=a.example.com; Max-Age=0"},
		"http://evila.example.com/": {"own=x; Domain=a.example.com"},
	}}
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: web,
		Cookies: httpfetch.NewCookies(memory.New(memory.Config{}))})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"http://a.example.com/in", "http://evil.example.com/",
		"http://evila.example.com/", "http://a.example.com/"} {
		if _, err := fetcher.Fetch(t.Context(), pageTicket(t, u)); err != nil {
			t.Fatal(err)
		}
	}
	if got := web.receivedCookies["http://a.example.com/"]; got != "own=1; session=2" {
		t.Errorf("shown %q, want both cookies", got)
	}
}

// TestCookiesAreBounded: a site that sets endless cookies keeps only its last ones, and the cookies
// of other sites stay.
func TestCookiesAreBounded(t *testing.T) {
	notes := memory.New(memory.Config{})
	web := &cookieWeb{receivedCookies: map[string]string{},
		setCookies: map[string][]string{"http://good.test/": {"kept=1"}}}
	for i := range 50 {
		for j := range 100 {
			u := fmt.Sprintf("http://n%d.flood.test/", i)
			web.setCookies[u] = append(web.setCookies[u],
				fmt.Sprintf("c%d-%d=%s; Domain=flood.test", i, j, strings.Repeat("x", 3000)))
		}
	}
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: web,
		Cookies: httpfetch.NewCookies(notes)})
	if err != nil {
		t.Fatal(err)
	}
	visit := func(u string) {
		if _, err := fetcher.Fetch(t.Context(), pageTicket(t, u)); err != nil {
			t.Fatal(err)
		}
	}
	visit("http://good.test/")
	for i := range 50 {
		visit(fmt.Sprintf("http://n%d.flood.test/", i))
	}
	visit("http://www.flood.test/")
	if shown := web.receivedCookies["http://www.flood.test/"]; len(shown) > 64<<10 ||
		!strings.Contains(shown, "c49-99=") {
		t.Errorf("%d bytes of cookies are shown", len(shown))
	}
	if visit("http://good.test/"); web.receivedCookies["http://good.test/"] != "kept=1" {
		t.Errorf("the other site is shown %q", web.receivedCookies["http://good.test/"])
	}
	note, err := notes.ReadNote(t.Context(), decorum.Origin{}, "cookies flood.test")
	if err != nil || len(note) == 0 || len(note) > 128<<10 {
		t.Errorf("the note has %d bytes, %v", len(note), err)
	}
}

// TestHeaders: configured headers are sent with every request, and a header that the crawl or the
// transport sets is refused.
func TestHeaders(t *testing.T) {
	var got http.Header
	u := startServer(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	cfg := httpfetch.Config{Headers: http.Header{"Accept-Language": {"cs, en"}, "X-Crawl": {"1"}},
		From: "you@example.com"}
	if _, err := fetchPage(t, cfg, u); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Accept-Language": "cs, en", "X-Crawl": "1", "From": "you@example.com",
		"User-Agent": userAgent, "Cookie": ""} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	for _, h := range []struct{ name, value string }{
		{"Host", "a.test"}, {"user-agent", "x"}, {"From", "a@b.test"}, {"cookie", "a=1"}, {"Cookie2", "a"},
		{"Authorization", "Basic x"},
		{"Proxy-Authorization", "x"}, {"If-None-Match", "*"}, {"if-modified-since", "x"},
		{"If-Range", "x"}, {"Range", "bytes=0-1"},
		{"Connection", "close"}, {"TE", "trailers"}, {"Transfer-Encoding", "chunked"},
		{"Upgrade", "h2c"}, {"keep-alive", "1"},
		{"Content-Length", "3"}, {"content-type", "text/html"}, {"Accept-Encoding", "br"}, {"Expect", "100-continue"},
		{"", "x"}, {"A B", "x"}, {"A:", "x"}, {"X-A", "a\r\nHost: b"}, {"X-A", "\x00"},
	} {
		if httpheader.CheckCustom(h.name, h.value) == nil {
			t.Errorf("%q: %q is accepted", h.name, h.value)
		}
		if _, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent,
			Headers: http.Header{h.name: {h.value}}}); err == nil {
			t.Errorf("New takes %q: %q", h.name, h.value)
		}
	}
}
