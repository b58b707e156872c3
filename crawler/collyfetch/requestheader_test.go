package collyfetch_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestSecretsStayWithTheirHost: the Authorization header that a callback sets for one host is not
// sent to another host that it redirects to.
func TestSecretsStayWithTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := func(u string) crawltest.PageFunc {
			return crawltest.StaticPage(crawltest.Redirect(http.StatusFound, u))
		}
		end := crawltest.StaticPage(crawltest.HTML("<h1>End</h1>"))
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
				"/in": to("/end"), "/out": to("http://b.test/end"), "/end": end,
				"/down": to("http://a.test/clear"), "/clear": end}},
			crawltest.Site{Host: "b.test", Pages: map[string]crawltest.PageFunc{"/end": end}})
		headers := map[string]string{}
		o := quietOptions(roundTripFunc(func(r *http.Request) (*http.Response, error) {
			headers[r.URL.String()] = r.Header.Get("Authorization") + " " + r.Header.Get("X-Shelf")
			return web.RoundTrip(r)
		}))
		crawl := wrapCollector(t, colly.NewCollector(colly.Headers(map[string]string{"X-Shelf": "7"})), o)
		for _, u := range []string{"http://a.test/in", "http://a.test/out", "https://a.test/down"} {
			must(t, crawl.Request("GET", u, nil, nil,
				http.Header{"Authorization": {"Bearer secret"}, "X-Shelf": {"8"}}))
		}
		must(t, crawl.Run(t.Context()))
		for u, want := range map[string]string{"http://a.test/end": "Bearer secret 8", "http://b.test/end": " 8",
			"https://a.test/down": "Bearer secret 8", "http://a.test/clear": " 8"} {
			if headers[u] != want {
				t.Errorf("%s received %q, want %q", u, headers[u], want)
			}
		}
	})
}

// TestHeadersByOtherNames: names of headers are case-insensitive, also when the crawl keeps
// callbacks from setting one.
func TestHeadersByOtherNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		o := quietOptions(roundTripFunc(func(r *http.Request) (*http.Response, error) {
			for name, values := range r.Header {
				if slices.Contains(values, "x") {
					t.Errorf("%s was requested with %s: x", r.URL, name)
				}
			}
			return web.RoundTrip(r)
		}))
		crawl := wrapCollector(t, colly.NewCollector(), o)
		crawl.OnRequest(func(r *colly.Request) {
			for _, name := range []string{"user-agent", "cookie", "RANGE",
				"transfer-encoding", "hOST", "if-none-match"} {
				(*r.Headers)[name] = []string{"x"}
			}
		})
		must(t, crawl.Visit("http://a.test/mill"))
		if n := crawl.Stats().Pages; n != 1 {
			t.Errorf("%d pages were visited, want 1", n)
		}
	})
}

// TestHeaderOfBytes: a header value that is not valid UTF-8 is refused by the Visit that sets it,
// and nothing is sent.
func TestHeaderOfBytes(t *testing.T) {
	crawl := wrapCollector(t, colly.NewCollector(), quietOptions(smallWeb()))
	err := crawl.Request("GET", "http://a.test/mill", nil, nil, http.Header{"X-Shelf": {"caf\xe9"}})
	if err == nil || !strings.Contains(err.Error(), "X-Shelf") {
		t.Errorf("got %v, want an error that names X-Shelf", err)
	}
}
