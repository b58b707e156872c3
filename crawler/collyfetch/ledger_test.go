package collyfetch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// aiPolicyWeb is a site that disallows the use of some of its pages for training.
func aiPolicyWeb() *crawltest.Web {
	closed := crawltest.HTML("<h1>Noai</h1>")
	closed.Header.Set("X-Robots-Tag", "noai")
	return crawltest.New(crawltest.Site{Host: "press.test",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
			"User-agent: *\nContent-Signal: /signal ai-train=no\nAllow: /\n")}),
		Pages: map[string]crawltest.PageFunc{
			"/.well-known/tdmrep.json": crawltest.StaticPage(crawltest.ResponseOfType("application/json",
				`[{"location": "/reserved", "tdm-reservation": 1}]`)),
			"/": crawltest.StaticPage(crawltest.HTML("<h1>Press</h1><a href=/signal>a</a><a " +
				"href=/reserved>b</a><a href=/noai>c</a><a href=/open>d</a>")),
			"/open": crawltest.StaticPage(crawltest.HTML("<h1>Open</h1>")),
			"/noai": crawltest.StaticPage(closed),
		}})
}

// crawlTitles crawls aiPolicyWeb and returns the titles that the callbacks got.
func crawlTitles(t *testing.T, o collyfetch.WrapOptions) (titles []string) {
	t.Helper()
	c, err := collyfetch.Wrap(colly.NewCollector(), o)
	must(t, err)
	c.OnResponse(func(r *colly.Response) { titles = append(titles, r.Request.URL.Path) })
	c.OnHTML("h1", func(e *colly.HTMLElement) { titles = append(titles, e.Text) })
	c.OnHTML("a", func(e *colly.HTMLElement) { must(t, e.Request.Visit(e.Attr("href"))) })
	c.OnError(func(r *colly.Response, err error) { t.Errorf("OnError of %s: %v", r.Request.URL, err) })
	must(t, c.Visit("http://press.test/"))
	must(t, c.Close())
	return titles
}

func withPrefix(prefix string, paths ...string) []string {
	for i, p := range paths {
		paths[i] = prefix + p
	}
	return paths
}

// TestWrapForAPurpose: with a purpose set, a wrapped collector requests no page that robots.txt or
// tdmrep.json closes to that purpose, and its callbacks do not get a page that objects in its own
// headers or markup. The ledger shows, for each run, what permitted each request.
func TestWrapForAPurpose(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		web := aiPolicyWeb()
		o := quietOptions(web)
		o.StateDir, o.KeepLedger, o.RobotsConfig.Purposes = dir, true, []string{"ai-train"}
		o.Policy.HostOverrides = map[string]politeness.HostOverride{"press.test": {Delay: new(3 * time.Second),
			Reason: "agreed"}}
		if got, want := crawlTitles(t, o), []string{"/", "Press", "/open", "Open"}; !slices.Equal(got, want) {
			t.Errorf("the callbacks saw %q, want %q", got, want)
		}
		requested := requestedPaths(web)
		if want := withPrefix("http://press.test", "/robots.txt", "/.well-known/tdmrep.json", "/", "/noai",
			"/open"); !slices.Equal(requested, want) {
			t.Errorf("requested %q, want %q", requested, want)
		}
		crawlTitles(t, o) // nothing is left to visit
		o.RobotsConfig.Purposes = []string{"baking"}
		if _, err := collyfetch.Wrap(colly.NewCollector(), o); err == nil ||
			!strings.Contains(err.Error(), `purpose "baking"`) {
			t.Errorf("%v, want an unknown purpose refused", err)
		}
		report, err := ledger.Verify(filepath.Join(dir, "ledger"), ledger.VerifyOptions{})
		must(t, err)
		if !report.OK() || !report.Closed || report.Runs != 2 || report.Requests != int64(len(requested)) ||
			report.MeasuredDelays != report.Requests-1 {
			t.Errorf("the ledger: %+v", *report)
		}
	})
}

func TestWrapWithInvalidLedger(t *testing.T) {
	t.Parallel()
	o := quietOptions(aiPolicyWeb())
	o.KeepLedger = true
	if _, err := collyfetch.Wrap(colly.NewCollector(), o); err == nil ||
		!strings.Contains(err.Error(), "needs a StateDir") {
		t.Errorf("%v, want that it needs a directory", err)
	}
	o.StateDir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(o.StateDir, "ledger"), nil, 0o600))
	if _, err := collyfetch.Wrap(colly.NewCollector(), o); err == nil || !strings.Contains(err.Error(), "ledger") {
		t.Errorf("%v, want that the ledger cannot be opened", err)
	}
	must(t, os.Remove(filepath.Join(o.StateDir, "ledger")))
	// The files are closed, so another crawl can open them.
	must(t, wrapCollector(t, colly.NewCollector(), o).Visit("http://press.test/open"))
}
