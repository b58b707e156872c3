package collyfetch_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/storage"
)

// TestHeadersAreKept: the headers of the collector are sent, and so are those of a single request,
// which are queued with it.
func TestHeadersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		sent := map[string]string{}
		o := quietOptions(roundTripFunc(func(r *http.Request) (*http.Response, error) {
			sent[r.URL.Path] = r.Header.Get("Accept-Language") + " " + r.Header.Get("X-Shelf") +
				" " + r.Header.Get("User-Agent")
			return web.RoundTrip(r)
		}))
		c := colly.NewCollector(colly.Headers(map[string]string{"Accept-Language": "cs"}))
		crawl := wrapCollector(t, c, o)
		must(t, crawl.Request("GET", "http://a.test/mill", nil, nil, http.Header{"X-Shelf": {"7"}}))
		must(t, crawl.Visit("http://a.test/"))
		for path, want := range map[string]string{"/": "cs ", "/mill": "cs 7"} {
			if want += " " + userAgent; sent[path] != want {
				t.Errorf("%s was requested with %q, want %q", path, sent[path], want)
			}
		}
	})
}

// TestMaxRequests: MaxRequests ends a run, and the next run visits the rest.
func TestMaxRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		crawl := wrapCollector(t, colly.NewCollector(colly.MaxRequests(2)), quietOptions(web))
		crawl.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		if err := crawl.Visit("http://a.test/"); !errors.Is(err, crawler.ErrPages) {
			t.Errorf("Visit returned %v, want ErrPages", err)
		}
		if n := crawl.Stats().Pages; n != 2 {
			t.Errorf("%d pages were visited, want 2", n)
		}
		must(t, crawl.Run(t.Context()))
		if n := crawl.Stats().Pages; n != 3 {
			t.Errorf("%d pages were visited after the second run, want 3", n)
		}
		checkPolite(t, web)
	})
}

// TestTraceHTTP: colly's trace follows the request that is sent.
func TestTraceHTTP(t *testing.T) {
	web := smallWebWithDelay(10 * time.Millisecond)
	o := quietOptions(nil)
	o.Policy.Delay = 10 * time.Millisecond
	o.FetchConfig = httpfetch.Config{ConnectToRules: serveWeb(t, web), AllowPrivate: true}
	crawl := wrapCollector(t, colly.NewCollector(colly.TraceHTTP()), o)
	var trace *colly.HTTPTrace
	crawl.OnResponse(func(r *colly.Response) { trace = r.Trace })
	must(t, crawl.Visit("http://a.test/"))
	if trace == nil || trace.FirstByteDuration <= 0 {
		t.Errorf("trace %+v, want the time of the first byte", trace)
	}
}

// TestForeignContext: a URL with CallbackData of another program is visited, and the log reports it.
func TestForeignContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		crawl, c := newCrawl(t, httpfetch.Config{Transport: smallWeb()})
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		var visited int
		c.OnResponse(func(r *colly.Response) { visited++ })
		for _, e := range []struct{ path, context string }{{"/", "not JSON"}, {"/mill", `{"of": "another"}`},
			{"/church", `{"collector": "gone"}`}} {
			u, err := decorum.ParseURL("http://a.test" + e.path)
			must(t, err)
			_, err = crawl.Frontier.Discover(t.Context(), storage.Entry{URL: u, CallbackData: []byte(e.context)})
			must(t, err)
		}
		must(t, crawl.Run(t.Context()))
		if visited != 2 || strings.Count(log.String(), "is not of these callbacks") != 2 ||
			!strings.Contains(log.String(), `no collector has joined as \"gone\"`) {
			t.Errorf("%d pages were visited, want 2; the log:\n%s", visited, &log)
		}
	})
}
