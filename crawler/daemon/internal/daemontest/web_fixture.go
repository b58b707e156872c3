package daemontest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// ShopSite returns a site with a page that robots.txt disallows, a redirect and a missing page.
func ShopSite() crawltest.Site {
	page := func(title string, links ...string) crawltest.PageFunc {
		body := "<title>" + title + "</title><link rel=canonical href=/><meta name=robots content=noarchive>"
		for _, l := range links {
			body += `<a href="` + l + `">x</a>`
		}
		return crawltest.StaticPage(crawltest.HTML(body))
	}
	return crawltest.Site{
		Host: "shop.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response:     crawltest.Text("User-agent: *\nAllow: /a\nDisallow: /till\n"),
			IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/till") },
		}),
		Pages: map[string]crawltest.PageFunc{
			"/":    page("Shop & Co.", "/a", "/b?x=1&y=2", "/till", "/old", "http://elsewhere.example/"),
			"/a":   page("A", "/"),
			"/b":   page("B", "/a", "/missing"),
			"/old": crawltest.StaticPage(crawltest.Redirect(http.StatusMovedPermanently, "/a")),
		},
	}
}

// ShopURLs are the pages of ShopSite that a correct crawler requests, sorted.
var ShopURLs = []string{
	"http://shop.example/", "http://shop.example/a", "http://shop.example/b?x=1&y=2",
	"http://shop.example/missing", "http://shop.example/old",
}

// A WebFixture is a web that is served on loopback, and a directory for a crawl.
type WebFixture struct {
	Web    *crawltest.Web
	Server *crawltest.Server // serves Web
	Addr   string            // of Server
	Dir    string
}

// StartWeb starts a server for web, which the end of the test closes.
func StartWeb(t *testing.T, web *crawltest.Web) *crawltest.Server {
	t.Helper()
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// NewWebFixture starts a server for a web of sites, which the end of the test closes.
func NewWebFixture(t *testing.T, sites ...crawltest.Site) *WebFixture {
	t.Helper()
	f := newFixture(t, crawltest.New(sites...))
	return &f
}

func newFixture(t *testing.T, web *crawltest.Web) WebFixture {
	t.Helper()
	server := StartWeb(t, web)
	return WebFixture{web, server, server.Addr, t.TempDir()}
}

// DataDir returns the data directory of the crawl.
func (v *WebFixture) DataDir() string { return filepath.Join(v.Dir, "data") }

// CrawlArgs returns the arguments of a decorum crawl of the web without a delay and without a try of
// /sitemap.xml, followed by more.
func (v *WebFixture) CrawlArgs(more ...string) []string {
	return append([]string{"crawl", "--data", v.DataDir(), "--contact=mailto:bot@example.com", "--allow-private",
		"--connect-to=::" + v.Addr, "--delay=0s", "--progress=none", "--sitemap-xml=false"}, more...)
}

// ReadRecords returns the records of a JSONL file and its rotated files.
func ReadRecords(t *testing.T, file string) []sinks.OutputRecord {
	t.Helper()
	var rs []sinks.OutputRecord
	for _, line := range testfile.RotatedLines(t, file, 0) {
		var r sinks.OutputRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in line %q", err, line)
		}
		rs = append(rs, r)
	}
	return rs
}

// SortedURLs returns the URLs of the records rs, sorted.
func SortedURLs(rs []sinks.OutputRecord) []string {
	var us []string
	for _, r := range rs {
		us = append(us, r.URL)
	}
	slices.Sort(us)
	return us
}

// ChainSite returns a site of n pages. Each page links to the next one.
func ChainSite(host string, n int) crawltest.Site {
	pages := map[string]crawltest.PageFunc{}
	for i := range n {
		pages[fmt.Sprintf("/%d", i)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(`<a href="/%d">next</a>`, i+1)))
	}
	return crawltest.Site{Host: host, Pages: pages}
}

// RequestedPages returns the URLs of the requests in a server's log, without robots.txt files, sorted.
func RequestedPages(log []crawltest.Exchange) (urls []string) {
	for _, x := range log {
		if !strings.HasSuffix(x.URL, "/robots.txt") {
			urls = append(urls, x.URL)
		}
	}
	slices.Sort(urls)
	return urls
}

// WaitUntil waits until ok returns true. The test fails after a minute; what describes the condition.
func WaitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatalf("this did not happen within a minute: %s", what)
		}
	}
}

// TownSites returns ShopSite and two sites that a crawl does not visit: one has a Crawl-delay that is too
// long, and the robots.txt of the other fails.
func TownSites() []crawltest.Site {
	robots := func(a crawltest.Response) func(time.Time) crawltest.RobotsSpec {
		return crawltest.StaticRobots(crawltest.RobotsSpec{Response: a})
	}
	return []crawltest.Site{ShopSite(),
		{Host: "slow.example", Fallback: crawltest.StaticPage(crawltest.HTML("slow")),
			Robots: robots(crawltest.Text("User-agent: *\nCrawl-delay: 7200\n"))},
		{Host: "broken.example", Robots: robots(crawltest.Status(503))}}
}
