package crawler_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// newPurposeCrawl returns a crawl of web for the purposes.
func newPurposeCrawl(t *testing.T, web *crawltest.Web, store storage.Store, purposes []string,
	seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newCrawl(t, web, store, seeds...)
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	c.Gate = gate.New(gate.Config{Agent: agent, Purposes: purposes}, store)
	return c
}

// A visitRecorder keeps what it gets of each page.
type visitRecorder struct {
	mu     sync.Mutex
	visits map[string]*crawler.Visit
}

func (k *visitRecorder) Record(_ context.Context, v *crawler.Visit) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.visits == nil {
		k.visits = map[string]*crawler.Visit{}
	}
	k.visits[strings.TrimPrefix(v.URL().String(), "http://a.test")] = v
	return nil
}

// pageWithHeader returns a page with a header.
func pageWithHeader(body string, header ...string) crawltest.PageFunc {
	a := crawltest.HTML(body)
	for i := 0; i < len(header); i += 2 {
		a.Header.Add(header[i], header[i+1])
	}
	return crawltest.StaticPage(a)
}

// usageSite returns a site whose pages object to different uses.
func usageSite() crawltest.Site {
	pages := map[string]crawltest.PageFunc{
		"/usage":     pageWithHeader("x", "Content-Usage", "train-ai=n, search=y"),
		"/signal":    pageWithHeader("x", "Content-Signal", "ai-input=no"),
		"/noai":      pageWithHeader("x", "X-Robots-Tag", "noai"),
		"/mine":      pageWithHeader("x", "X-Robots-Tag", "testbot: noai"),
		"/other":     pageWithHeader("x", "X-Robots-Tag", "otherbot: noai"),
		"/meta":      pageWithHeader("<meta name=robots content='noai, noimageai'>x"),
		"/metamine":  pageWithHeader("<meta name=testbot content=noai>x"),
		"/reserved":  pageWithHeader("x", "TDM-Reservation", "1", "TDM-Policy", "https://a.test/licence"),
		"/metatdm":   pageWithHeader("<meta name=tdm-reservation content=1>x"),
		"/free":      pageWithHeader("x", "TDM-Reservation", "0"),
		"/noindex":   pageWithHeader("<meta name=robots content=noindex>x"),
		"/noarchive": pageWithHeader("x", "X-Robots-Tag", "noarchive"),
		"/images":    pageWithHeader("x", "X-Robots-Tag", "noimageai"),
		"/both": pageWithHeader("<meta name=tdm-reservation content=0>x", "Content-Usage", "train-ai=y",
			"Content-Signal", "ai-train=no"),
		"/broken": pageWithHeader("x", "Content-Usage", `x="train-ai=n`),
	}
	var links strings.Builder
	for path := range pages {
		links.WriteString("<a href=" + path + ">x</a>")
	}
	pages["/"] = pageWithHeader(links.String())
	return crawltest.Site{Host: "a.test", Pages: pages}
}

// TestContentIsWithheld: the usage signals of each page are known, and a page that objects to the
// only purpose of the crawl is withheld from the handler and from records.
func TestContentIsWithheld(t *testing.T) {
	for _, tt := range []struct {
		purposes []string
		withheld string
	}{
		{nil, ""},
		{[]string{"search"}, "/noindex"},
		{[]string{"archive"}, "/noarchive"},
		{[]string{"ai-input"}, "/meta /metamine /metatdm /mine /noai /reserved /signal"},
		{[]string{"ai-train"}, "/both /meta /metamine /metatdm /mine /noai /reserved /usage"},
		{[]string{"search", "ai-train"}, "/both /meta /metamine /metatdm /mine /noai /noindex /reserved /usage"},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(usageSite())
			c, k := newPurposeCrawl(t, web, newMemoryStore(), tt.purposes, "http://a.test/"), &visitRecorder{}
			c.PageRecorder = k
			var handled []string
			var mu sync.Mutex
			c.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
				mu.Lock()
				defer mu.Unlock()
				handled = append(handled, strings.TrimPrefix(v.URL().String(), "http://a.test"))
				return c.LinksToFollow(ctx, v)
			}
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var withheld []string
			for path, v := range k.visits {
				if refused := v.ContentUsageAssessment().PurposeConflict; refused != nil {
					withheld = append(withheld, path)
					if v.Response.Body != nil || v.BodySHA256() != sha256.Sum256(nil) ||
						!errors.Is(v.Err, decorum.Disallowed) || slices.Contains(handled, path) {
						t.Errorf("for %v: %s: body %q, error %v, handled %v", tt.purposes, path,
							v.Response.Body, v.Err, handled)
					}
				} else if len(v.Response.Body) == 0 || v.Err != nil || !slices.Contains(handled, path) {
					t.Errorf("for %v: %s was withheld: %+v", tt.purposes, path, v.ContentUsageAssessment())
				}
			}
			slices.Sort(withheld)
			if got := strings.Join(withheld, " "); got != tt.withheld ||
				c.Stats().PagesWithheld != int64(len(withheld)) {
				t.Errorf("for %v: withheld %q (%d), want %q", tt.purposes, got, c.Stats().PagesWithheld, tt.withheld)
			}
			if use := k.visits["/reserved"].ContentUsageAssessment(); len(use.Signals) != 1 ||
				use.Signals[0].TDMPolicy != "https://a.test/licence" {
				t.Errorf("%+v", use)
			}
			if n := len(k.visits["/other"].ContentUsageAssessment().Signals); n != 0 {
				t.Errorf("%d signals that are for another crawl", n)
			}
		})
	}
}

// TestHooksSeeNoWithheldContent: for a withheld page a hook sees what is recorded and the length of
// the body, so no hook gets around a purpose.
func TestHooksSeeNoWithheldContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const body = "<title>secret</title><a href=/secret>secret</a>"
		failing := crawltest.HTML(body)
		failing.Status = http.StatusServiceUnavailable
		failing.Header.Set("X-Robots-Tag", "noai")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/closed": pageWithHeader(body, "X-Robots-Tag", "noai"), "/open": pageWithHeader(body),
			"/fails": crawltest.StaticPage(failing)}})
		c := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/closed",
			"http://a.test/open", "http://a.test/fails")
		var mu sync.Mutex
		seen := map[string]int{}
		look := func(v *crawler.Visit) {
			mu.Lock()
			defer mu.Unlock()
			path := strings.TrimPrefix(v.URL().String(), "http://a.test")
			if !v.Kind.IsPage() || path == "/secret" {
				return
			}
			seen[path]++
			content := string(v.Response.Body) + fmt.Sprintf("%+v", v.PageScanResult())
			if v.Exchange != nil {
				content += string(v.Exchange.RawResponse)
			}
			withheld := path != "/open"
			if v.ContentWithheld() != withheld ||
				strings.Contains(content, "secret") == withheld || v.BodyLen() != len(body) {
				t.Errorf("%s: withheld %v, %d bytes, %q", path, v.ContentWithheld(), v.BodyLen(), content)
			}
		}
		c.Hooks.Visited = look
		c.Hooks.RetryScheduled = func(v *crawler.Visit, _ crawler.FailureClass) { look(v) }
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seen["/closed"] != 1 || seen["/open"] != 1 || seen["/fails"] < 2 {
			t.Errorf("seen %v", seen)
		}
	})
}

// TestLinksOfWithheldPages: without a Handler, the links of a withheld page are followed, unless
// the page objects to that, too.
func TestLinksOfWithheldPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithHeader("x"),
			Pages: map[string]crawltest.PageFunc{
				"/": pageWithHeader("<a href=/open>x</a><a href=/closed>x</a><img src=/a.png>", "X-Robots-Tag",
					"noai"),
				"/open":   pageWithHeader("<meta name=robots content=noimageai><a href=/led>x</a><img src=/b.png>"),
				"/closed": pageWithHeader("<a href=/never>x</a>", "X-Robots-Tag", "noai, nofollow"),
				"/a.png":  crawltest.StaticPage(crawltest.ResponseOfType("image/png", "x")),
			}})
		c, k := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/"), &visitRecorder{}
		c.PageRecorder, c.Settings.FollowedLinkKinds.Images = k, true
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(k.visits)); !slices.Equal(got,
			[]string{"/", "/a.png", "/closed", "/led", "/open"}) {
			t.Errorf("pages %q", got)
		}
		if k.visits["/"].ContentUsageAssessment().PurposeConflict == nil ||
			k.visits["/open"].ContentUsageAssessment().PurposeConflict != nil {
			t.Error("noai withholds a page, and noimageai does not")
		}
	})
}

// TestWithheldPageIsHadLater: a withheld page is requested unconditionally when it is revisited,
// and its content is handled if the site no longer objects.
func TestWithheldPageIsHadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		page := func(r crawltest.PageRequest) crawltest.Response {
			a := crawltest.HTML("x")
			a.Header.Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") != "" {
				a.Status, a.Body = http.StatusNotModified, ""
			}
			if time.Since(begin) < 3*time.Hour {
				a.Header.Set("X-Robots-Tag", "noai")
			}
			return a
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{"/": page}})
		c, k := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/"), &visitRecorder{}
		c.PageRecorder = k
		c.Settings.Revisit = frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: 2 * time.Hour}
		c.Frontier = frontier.New(newMemoryStore(),
			frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true})
		addSeeds(t, c, "http://a.test/")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			k.visits["/"].ContentUsageAssessment().PurposeConflict == nil {
			t.Fatalf("%v: the page is not withheld", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 6*time.Hour)
		defer cancel()
		if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) ||
			k.visits["/"].ContentUsageAssessment().PurposeConflict != nil {
			t.Fatalf("%v: the page is withheld still", err)
		}
		if c.Stats().PagesWithheld != 2 {
			t.Errorf("withheld %d times, want 2", c.Stats().PagesWithheld)
		}
		bodies := 0
		for _, x := range web.Log() {
			if strings.HasSuffix(x.URL, "/") && x.Status == http.StatusOK {
				bodies++
			}
		}
		if bodies != 3 {
			t.Errorf("the page was sent whole %d times, want 3: twice withheld, once given", bodies)
		}
	})
}

// TestWithheldPagesAreNotCompared: withheld bodies are not hashed for the comparison of pages.
func TestWithheldPagesAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := pageWithHeader("the same", "X-Robots-Tag", "noai")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{"/a": page, "/b": page,
			"/c": pageWithHeader("other"), "/d": pageWithHeader("other")}})
		c := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/a", "http://a.test/b",
			"http://a.test/c", "http://a.test/d")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.PagesWithheld != 2 || s.DuplicateBodies != 1 {
			t.Errorf("%d withheld, %d duplicates, want 2 and 1", s.PagesWithheld, s.DuplicateBodies)
		}
	})
}
