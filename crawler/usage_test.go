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
	"github.com/decorum-crawler/decorum/storage"
)

// purposeful returns a crawl of web for the purposes.
func purposeful(t *testing.T, web *crawltest.Web, store storage.Store, purposes []string, seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newCrawl(t, web, store, seeds...)
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	c.Gate = robots.NewGate(robots.GateConfig{Agent: agent, Purposes: purposes}, store)
	return c
}

// A clerk keeps what it is shown of each page.
type clerk struct {
	mu    sync.Mutex
	shown map[string]*crawler.Visit
}

func (k *clerk) Record(_ context.Context, v *crawler.Visit) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shown == nil {
		k.shown = map[string]*crawler.Visit{}
	}
	k.shown[strings.TrimPrefix(v.URL().String(), "http://a.test")] = v
	return nil
}

// says returns a page with a header.
func says(body string, header ...string) crawltest.Page {
	a := crawltest.HTML(body)
	for i := 0; i < len(header); i += 2 {
		a.Header.Add(header[i], header[i+1])
	}
	return crawltest.Always(a)
}

// opinionated is a site whose pages ask different things of their use.
func opinionated() crawltest.Site {
	pages := map[string]crawltest.Page{
		"/usage":     says("x", "Content-Usage", "train-ai=n, search=y"),
		"/signal":    says("x", "Content-Signal", "ai-input=no"),
		"/noai":      says("x", "X-Robots-Tag", "noai"),
		"/mine":      says("x", "X-Robots-Tag", "testbot: noai"),
		"/other":     says("x", "X-Robots-Tag", "otherbot: noai"),
		"/meta":      says("<meta name=robots content='noai, noimageai'>x"),
		"/metamine":  says("<meta name=testbot content=noai>x"),
		"/reserved":  says("x", "TDM-Reservation", "1", "TDM-Policy", "https://a.test/licence"),
		"/metatdm":   says("<meta name=tdm-reservation content=1>x"),
		"/free":      says("x", "TDM-Reservation", "0"),
		"/noindex":   says("<meta name=robots content=noindex>x"),
		"/noarchive": says("x", "X-Robots-Tag", "noarchive"),
		"/images":    says("x", "X-Robots-Tag", "noimageai"),
		"/both":      says("<meta name=tdm-reservation content=0>x", "Content-Usage", "train-ai=y", "Content-Signal", "ai-train=no"),
		"/broken":    says("x", "Content-Usage", `x="train-ai=n`),
	}
	var links strings.Builder
	for path := range pages {
		links.WriteString("<a href=" + path + ">x</a>")
	}
	pages["/"] = says(links.String())
	return crawltest.Site{Host: "a.test", Pages: pages}
}

// What a page asks of its use is known of each, and keeps its content from the
// handler and from what is written down, where the crawl is for that use alone.
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
			web := crawltest.New(opinionated())
			c, k := purposeful(t, web, memory(), tt.purposes, "http://a.test/"), &clerk{}
			c.Recorder = k
			var handled []string
			var mu sync.Mutex
			c.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.Link, error) {
				mu.Lock()
				defer mu.Unlock()
				handled = append(handled, strings.TrimPrefix(v.URL().String(), "http://a.test"))
				return c.FollowLinks(ctx, v)
			}
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var withheld []string
			for path, v := range k.shown {
				if refused := v.UsagePolicy().Refused; refused != nil {
					withheld = append(withheld, path)
					if v.Response.Body != nil || v.BodySHA256() != sha256.Sum256(nil) || !errors.Is(v.Err, decorum.Disallowed) || slices.Contains(handled, path) {
						t.Errorf("for %v: %s: body %q, error %v, handled %v", tt.purposes, path, v.Response.Body, v.Err, handled)
					}
				} else if len(v.Response.Body) == 0 || v.Err != nil || !slices.Contains(handled, path) {
					t.Errorf("for %v: %s was withheld: %+v", tt.purposes, path, v.UsagePolicy())
				}
			}
			slices.Sort(withheld)
			if got := strings.Join(withheld, " "); got != tt.withheld || c.Stats().Withheld != int64(len(withheld)) {
				t.Errorf("for %v: withheld %q (%d), want %q", tt.purposes, got, c.Stats().Withheld, tt.withheld)
			}
			if use := k.shown["/reserved"].UsagePolicy(); len(use.Stated) != 1 || use.Stated[0].Policy != "https://a.test/licence" {
				t.Errorf("%+v", use)
			}
			if n := len(k.shown["/other"].UsagePolicy().Stated); n != 0 {
				t.Errorf("%d signals that are for another crawl", n)
			}
		})
	}
}

// Who looks on sees of a page that is withheld what is written down of it, and how
// large it was: nobody gets around a purpose by a hook.
func TestHooksSeeNoWithheldContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const body = "<title>secret</title><a href=/secret>secret</a>"
		failing := crawltest.HTML(body)
		failing.Status = http.StatusServiceUnavailable
		failing.Header.Set("X-Robots-Tag", "noai")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.Page{
			"/closed": says(body, "X-Robots-Tag", "noai"), "/open": says(body), "/fails": crawltest.Always(failing)}})
		c := purposeful(t, web, memory(), []string{"ai-train"}, "http://a.test/closed", "http://a.test/open", "http://a.test/fails")
		var mu sync.Mutex
		seen := map[string]int{}
		look := func(v *crawler.Visit) {
			mu.Lock()
			defer mu.Unlock()
			path := strings.TrimPrefix(v.URL().String(), "http://a.test")
			if v.IsPrerequisite() || path == "/secret" {
				return
			}
			seen[path]++
			shown := string(v.Response.Body) + fmt.Sprintf("%+v", v.Document())
			if v.Exchange != nil {
				shown += string(v.Exchange.Response)
			}
			withheld := path != "/open"
			if v.Withheld() != withheld || strings.Contains(shown, "secret") == withheld || v.Bytes() != len(body) {
				t.Errorf("%s: withheld %v, %d bytes, %q", path, v.Withheld(), v.Bytes(), shown)
			}
		}
		c.Hooks.Visited = look
		c.Hooks.Retried = func(v *crawler.Visit, _ crawler.Failure) { look(v) }
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seen["/closed"] != 1 || seen["/open"] != 1 || seen["/fails"] < 2 {
			t.Errorf("seen %v", seen)
		}
	})
}

// Without a handler of the user's, the links of a page lead on though its content
// is withheld; unless it asks that too.
func TestLinksOfWithheldPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Others: says("x"), Pages: map[string]crawltest.Page{
			"/":       says("<a href=/open>x</a><a href=/closed>x</a><img src=/a.png>", "X-Robots-Tag", "noai"),
			"/open":   says("<meta name=robots content=noimageai><a href=/led>x</a><img src=/b.png>"),
			"/closed": says("<a href=/never>x</a>", "X-Robots-Tag", "noai, nofollow"),
			"/a.png":  crawltest.Always(crawltest.Typed("image/png", "x")),
		}})
		c, k := purposeful(t, web, memory(), []string{"ai-train"}, "http://a.test/"), &clerk{}
		c.Recorder, c.Settings.Follow.Images = k, true
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(k.shown)); !slices.Equal(got, []string{"/", "/a.png", "/closed", "/led", "/open"}) {
			t.Errorf("pages %q", got)
		}
		if k.shown["/"].UsagePolicy().Refused == nil || k.shown["/open"].UsagePolicy().Refused != nil {
			t.Error("noai withholds a page, and noimageai does not")
		}
	})
}

// A page that was withheld is asked for whole when it is visited again, and has
// its content when the site changes its mind.
func TestWithheldPageIsHadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		page := func(r crawltest.Request) crawltest.Answer {
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
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.Page{"/": page}})
		c, k := purposeful(t, web, memory(), []string{"ai-train"}, "http://a.test/"), &clerk{}
		c.Recorder = k
		c.Settings.Revisit = frontier.Revisit{Mode: frontier.IntervalRevisit, Every: 2 * time.Hour}
		c.Frontier = frontier.New(memory(), frontier.Config{Budget: c.Limits, Wait: true})
		plant(t, c, "http://a.test/")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) || k.shown["/"].UsagePolicy().Refused == nil {
			t.Fatalf("%v: the page is not withheld", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 6*time.Hour)
		defer cancel()
		if err := c.Run(ctx); !errors.Is(err, context.DeadlineExceeded) || k.shown["/"].UsagePolicy().Refused != nil {
			t.Fatalf("%v: the page is withheld still", err)
		}
		if c.Stats().Withheld != 2 {
			t.Errorf("withheld %d times, want 2", c.Stats().Withheld)
		}
		bodies := 0
		for _, x := range web.Log() {
			if strings.HasSuffix(x.URL, "/") && x.Status == http.StatusOK {
				bodies++
			}
		}
		if bodies != 3 {
			t.Errorf("the page was had whole %d times, want 3: twice withheld, once given", bodies)
		}
	})
}

// Of what is withheld nothing is remembered, by which pages could be compared either.
func TestWithheldPagesAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := says("the same", "X-Robots-Tag", "noai")
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.Page{"/a": page, "/b": page, "/c": says("other"), "/d": says("other")}})
		c := purposeful(t, web, memory(), []string{"ai-train"}, "http://a.test/a", "http://a.test/b", "http://a.test/c", "http://a.test/d")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Withheld != 2 || s.Duplicates != 1 {
			t.Errorf("%d withheld, %d duplicates, want 2 and 1", s.Withheld, s.Duplicates)
		}
	})
}
