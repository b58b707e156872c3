package cli

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// listing of sitemaps in a form: "urlset" or "sitemapindex".
func sitemapXML(form string, locations ...string) string {
	entry := map[string]string{"urlset": "url", "sitemapindex": "sitemap"}[form]
	var b strings.Builder
	b.WriteString("<" + form + ">\n")
	for _, l := range locations {
		b.WriteString("<" + entry + "><loc>" + l + "</loc></" + entry + ">\n")
	}
	return b.String() + "</" + form + ">\n"
}

func TestSitemapFile(t *testing.T) {
	good := testfile.Write(t, "good.xml",
		`<urlset><url><loc>https://example.com/?a=1&amp;b=2</loc><lastmod>2024-05-06T07:08:09+02:00</lastmod>`+
			`<changefreq>daily</changefreq><priority>1</priority></url><url><loc>https://example.com/shop/a</loc></url></urlset>`)
	const first = `{"url":"https://example.com/?a=1&b=2","index":false,"priority":1,"lastmod":"2024-05-06T05:08:09Z","changefreq":"daily"}` + "\n"
	const second = `{"url":"https://example.com/shop/a","index":false,"priority":0.5}` + "\n"
	index := testfile.Write(t, "index.xml", sitemapXML("sitemapindex", "https://example.com/a.xml"))
	broken := testfile.Write(t, "broken.xml", "<urlset><url><loc>https://example.com/1</loc></url>\n<url></urlset>")
	flawed := testfile.Write(t, "flawed.xml", sitemapXML("urlset", "/1", "/2", "https://example.com/3"))
	many := testfile.Write(t, "many.xml", sitemapXML("urlset", strings.Split(strings.Repeat("x ", 25), " ")[:25]...))
	for _, tt := range []struct {
		name string
		args []string
		code int
		out  string
		says []string
	}{
		{"a file", []string{good}, command.ExitDone, first + second, nil},
		{"limit", []string{"--limit=1", good}, command.ExitDone, first, nil},
		{"limit of all", []string{"--limit=2", good}, command.ExitDone, first + second, nil},
		{"an index", []string{index}, command.ExitDone,
			`{"url":"https://example.com/a.xml","index":true,"priority":0.5}` + "\n", nil},
		{"a place", []string{"--base=https://example.com/shop/map.xml", good}, command.ExitDone,
			strings.ReplaceAll(first, "}", `,"outside":true,"sitemap":"https://example.com/shop/map.xml"}`) +
				strings.ReplaceAll(second, "}", `,"sitemap":"https://example.com/shop/map.xml"}`), nil},
		{"a place, strictly", []string{"--strict", "--base=https://example.com/shop/map.xml", good}, command.ExitFailed,
			strings.ReplaceAll(second, "}", `,"sitemap":"https://example.com/shop/map.xml"}`),
			[]string{`good.xml: line 1: location "https://example.com/?a=1&b=2": a sitemap at this location may not list it`}},
		{"broken", []string{broken}, command.ExitFailed,
			`{"url":"https://example.com/1","index":false,"priority":0.5}` + "\n",
			[]string{`broken.xml: line 2, byte 66: end tag "urlset": broken XML`}},
		{"flawed", []string{flawed}, command.ExitFailed,
			`{"url":"https://example.com/3","index":false,"priority":0.5}` + "\n",
			[]string{`flawed.xml: line 2: location "/1": relative`, `flawed.xml: line 3: location "/2": relative`}},
		{"many flaws", []string{many}, command.ExitFailed, "",
			[]string{"many.xml: line 21: ", "many.xml: and 5 more errors"}},
		{"no sitemap", []string{testfile.Write(t, "page.html", "<!DOCTYPE html><html></html>")}, command.ExitFailed, "",
			[]string{`page.html: line 1, byte 21: element "html": not a sitemap`}},
		{"text that is no sitemap", []string{testfile.Write(t, "text", "a\nb\n")}, command.ExitFailed, "",
			[]string{"not a sitemap"}},
		{"no file", []string{"missing.xml"}, command.ExitFailed, "", []string{"missing.xml: no such file"}},
		{"no argument", nil, command.ExitUsage, "", []string{"SITEMAP is missing"}},
		{"strict without a place", []string{"--strict", good}, command.ExitUsage, "",
			[]string{"--strict: the URLs that a sitemap may list", "set --base"}},
		{"a place for a URL", []string{"--base=https://example.com/", "https://example.com/"}, command.ExitUsage, "",
			[]string{"--base is the URL of a sitemap in a file"}},
		{"no place", []string{"--base=map.xml", good}, command.ExitUsage, "",
			[]string{`--base: "map.xml" is not the URL of a sitemap`}},
		{"no URL that can be fetched", []string{"gopher://example.com/"}, command.ExitUsage, "",
			[]string{`SITEMAP: "gopher://example.com/" is not the URL of a sitemap`}},
		{"limit below zero", []string{"--limit=-1", good}, command.ExitUsage, "", []string{"--limit: -1 is negative"}},
		{"contact", []string{"--contact=me", good}, command.ExitUsage, "",
			[]string{`--contact: "me" is not a contact`}},
		{"agent", []string{"--agent=my bot", good}, command.ExitUsage, "",
			[]string{`--agent: "my bot" is not a product token`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runCommand(t, append([]string{"sitemap"}, tt.args...)...)
			r.want(t, tt.code, tt.says...)
			if diff := cmp.Diff(tt.out, r.stdout); diff != "" && tt.code != command.ExitUsage {
				t.Error(diff)
			}
			if tt.code == command.ExitDone && r.stderr != "" || tt.name == "text that is no sitemap" &&
				strings.Contains(r.stderr, "location") {
				t.Errorf("it says %q", r.stderr)
			}
		})
	}
}

func TestSitemapReadsStdin(t *testing.T) {
	var stdout, stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr)}}
	root := a.newRootCommand()
	root.SetIn(strings.NewReader("https://example.com/1\n"))
	root.SetArgs([]string{"sitemap", "-"})
	if code := command.PrintError(a.Stderr, root.Execute()); code != command.ExitDone ||
		stdout.String() != `{"url":"https://example.com/1","index":false,"priority":0.5}`+"\n" {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

// A sitemap cannot send control characters to the terminal of the user.
func TestSitemapIsPlain(t *testing.T) {
	file := testfile.Write(t, "map.xml",
		"<urlset><url><loc>a\x1b[2J</loc></url><url><loc>https://example.com/\x1b[2J</loc></url><\x1b[2J></urlset>")
	if r := runCommand(t, "sitemap", file); strings.Contains(r.stdout+r.stderr, "\x1b") ||
		strings.Count(r.stderr, "\n") != 2 || r.stdout == "" {
		t.Errorf("it prints %q and says %q", r.stdout, r.stderr)
	}
}

// A diskFullWriter fails every write.
type diskFullWriter struct{}

func (diskFullWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestSitemapSaysWhenItCannotWrite(t *testing.T) {
	var stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(diskFullWriter{}),
		Stderr: terminal.NewStatusLineWriter(&stderr)}}
	if code := a.main([]string{"sitemap",
		testfile.Write(t, "map.txt", "https://example.com/1\n")}); code != command.ExitFailed ||
		!strings.Contains(stderr.String(), "disk full") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

// sitemapIndexSite returns a site with all kinds of sitemaps below one index.
func sitemapIndexSite(t *testing.T) crawltest.Site {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(sitemapXML("urlset", "http://atlas.example/packed"))); err != nil {
		t.Fatal(err)
	}
	w.Close()
	xml := func(body string) crawltest.PageFunc {
		return crawltest.StaticPage(crawltest.ResponseOfType("application/xml", body))
	}
	return crawltest.Site{
		Host: "atlas.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nDisallow: /private/\nCrawl-delay: 0.1\nSitemap: " +
				"http://atlas.example/sub/map.xml\n"),
			CrawlDelay: 100 * time.Millisecond, IsDisallowed: func(path string) bool {
				return strings.HasPrefix(path, "/private/")
			},
		}),
		Pages: map[string]crawltest.PageFunc{
			"/index.xml": xml(sitemapXML("sitemapindex", "/packed.xml.gz", "/deeper.xml",
				"/broken.xml", "/private/map.xml",
				"/missing.xml", "/moved.xml", "http://annex.example/map.xml", "/index.xml", "/packed.xml.gz")),
			"/packed.xml.gz":   crawltest.StaticPage(crawltest.ResponseOfType("application/x-gzip", packed.String())),
			"/deeper.xml":      xml(sitemapXML("sitemapindex", "/deeper2.xml")),
			"/deeper2.xml":     xml(sitemapXML("sitemapindex", "/deeper3.xml")),
			"/deeper3.xml":     xml(sitemapXML("sitemapindex", "/deeper4.xml")),
			"/deeper4.xml":     xml(sitemapXML("urlset", "http://atlas.example/too-deep")),
			"/broken.xml":      xml("<urlset><url><loc>http://atlas.example/broken</loc></url><url>"),
			"/moved.xml":       crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/there.txt")),
			"/there.txt":       crawltest.StaticPage(crawltest.Text("http://atlas.example/there\n")),
			"/loop.xml":        crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/loop.xml?1")),
			"/loop.xml?1":      crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/loop.xml")),
			"/private/map.xml": xml(sitemapXML("urlset", "http://atlas.example/no")),
			"/sub/map.xml":     xml(sitemapXML("urlset", "http://atlas.example/above", "http://annex.example/other")),
		},
		Fallback: func(r crawltest.PageRequest) crawltest.Response {
			if strings.HasPrefix(r.Path, "/far/") {
				return crawltest.Redirect(http.StatusFound, r.Path+"1")
			}
			return crawltest.Status(http.StatusNotFound)
		},
	}
}

var annexSite = crawltest.Site{Host: "annex.example", Pages: map[string]crawltest.PageFunc{
	"/map.xml": crawltest.StaticPage(crawltest.Text("http://annex.example/page\n")),
}}

// runSitemap runs decorum sitemap on the test web.
func runSitemap(t *testing.T, v *daemontest.WebFixture, args ...string) commandResult {
	t.Helper()
	return runCommand(t, append([]string{"sitemap", "--allow-private", "--delay=0s", "--connect-to=::" + v.Addr},
		args...)...)
}

func TestSitemapFollows(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, sitemapIndexSite(t), annexSite)
	r := runSitemap(t, v, "--follow", "http://atlas.example/index.xml")
	r.want(t, command.ExitFailed,
		"decorum: http://atlas.example/broken.xml: line 1, byte 62: broken XML: unexpected EOF\n",
		"decorum: http://atlas.example/private/map.xml: robots http://atlas.example/private/map.xml: disallowed by "+
			"robots.txt",
		"decorum: http://atlas.example/missing.xml: status 404\n",
		"decorum: http://atlas.example/deeper4.xml: not followed: indexes are nested more than 3 deep\n")
	if n := strings.Count(r.stderr, "\n"); n != 4 {
		t.Errorf("%d complaints, want 4:\n%s", n, r.stderr)
	}
	var pages []string
	for line := range strings.Lines(r.stdout) {
		if !strings.Contains(line, `"index":true`) {
			pages = append(pages, strings.TrimSuffix(line, "\n"))
		}
	}
	want := []string{
		`{"url":"http://atlas.example/packed","index":false,"priority":0.5,"sitemap":"http://atlas.example/packed.xml.gz"}`,
		`{"url":"http://atlas.example/broken","index":false,"priority":0.5,"sitemap":"http://atlas.example/broken.xml"}`,
		`{"url":"http://annex.example/page","index":false,"priority":0.5,"sitemap":"http://annex.example/map.xml"}`,
		`{"url":"http://atlas.example/there","index":false,"priority":0.5,"sitemap":"http://atlas.example/there.txt"}`,
	}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Error(diff)
	}
	if r := v.Web.Judge(crawltest.JudgeOptions{RequiredProductToken: "decorum"}); len(r.Violations) > 0 ||
		r.Requests != 12 {
		t.Errorf("%d requests:\n%s", r.Requests, r)
	}
}

func TestSitemapFetches(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, sitemapIndexSite(t), annexSite)
	index := runSitemap(t, v, "http://atlas.example/index.xml")
	index.want(
		t, command.ExitDone, `{"url":"http://annex.example/map.xml","index":true,"priority":0.5,"outside":true,"sitemap":"http://atlas.example/index.xml"}`)
	if n := strings.Count(index.stdout, "\n"); n != 9 {
		t.Errorf("%d entries, want 9", n)
	}
	runSitemap(t, v, "http://atlas.example/loop.xml").want(t, command.ExitFailed,
		"decorum: http://atlas.example/loop.xml: redirects in a circle\n")
	runSitemap(t, v, "http://atlas.example/far/1").want(t, command.ExitFailed,
		"decorum: http://atlas.example/far/1: more than 5 redirects\n")
	runSitemap(t, v, "--agent=examplebot", "http://atlas.example/private/map.xml").want(t, command.ExitFailed,
		"disallowed by robots.txt")
	runSitemap(t, v, "http://elsewhere.example/map.xml").want(t, command.ExitFailed,
		"http://elsewhere.example/map.xml: status 421")
	// robots.txt names the sitemap, which may therefore list URLs above its directory.
	strict := runSitemap(t, v, "--strict", "http://atlas.example/sub/map.xml")
	strict.want(t, command.ExitFailed, `"url":"http://atlas.example/above"`,
		`location "http://annex.example/other": a sitemap at this location`)
	if strings.Contains(strict.stdout, "other") {
		t.Errorf("the robots.txt of annex.example does not name the sitemap, but its URL is listed:\n%s", strict.stdout)
	}
	file := testfile.Write(t, "index.xml", sitemapXML("sitemapindex", "http://annex.example/map.xml"))
	runSitemap(t, v, "--follow", file).want(t, command.ExitDone, `{"url":"http://annex.example/page","index":false,`)
	runSitemap(t, v, "--follow", "--limit=1", file).want(t, command.ExitDone)
}

// The command sends no further request to a server that requires too long a delay.
func TestSitemapRespectsServerDelays(t *testing.T) {
	busy := crawltest.Status(http.StatusTooManyRequests)
	busy.Header.Set("Retry-After", "7200")
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "busy.example", Fallback: crawltest.StaticPage(busy)},
		crawltest.Site{Host: "slow.example",
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
				"User-agent: *\nCrawl-delay: 7200\n"), CrawlDelay: 2 * time.Hour})},
		crawltest.Site{Host: "rare.example",
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
				"User-agent: *\nRequest-rate: 1/7200\n"), CrawlDelay: 2 * time.Hour})})
	file := testfile.Write(t, "index.xml", sitemapXML("sitemapindex", "http://busy.example/1", "http://busy.example/2",
		"https://busy.example/3", "https://busy.example/4", "http://slow.example/3", "http://rare.example/3"))
	runSitemap(t, v, "--follow", file).want(t, command.ExitFailed, "http://busy.example/1: status 429",
		"http://busy.example/2: busy.example may not be visited before ",
		"https://busy.example/4: cannot fetch https://busy.example/robots.txt: busy.example may not be visited before ",
		"http://slow.example/3: slow.example may not be visited before ",
		"http://rare.example/3: rare.example may not be visited before ")
	if r := v.Web.Judge(crawltest.JudgeOptions{}); r.PageRequests != 1 {
		t.Errorf("want a request for one page:\n%s", r)
	}
}

func TestSitemapRefusesPrivateAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	runCommand(t, "sitemap", "http://"+l.Addr().String()+"/map.xml").want(t, command.ExitFailed, "--allow-private")
}

func TestSitemapIsInterrupted(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "stuck.example",
		Fallback: crawltest.StaticPage(crawltest.Response{Fault: crawltest.Hang})})
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	r := runCommandWithSignals(t, signals, "sitemap", "--allow-private", "--connect-to=::"+v.Addr,
		"http://stuck.example/map.xml")
	if r.want(t, command.ExitStopped); strings.Contains(r.stderr, "stuck.example") {
		t.Errorf("not an error of the server: %s", r.stderr)
	}
}

// The command prints the samples of the parser's tests as they are parsed.
func TestSitemapSamples(t *testing.T) {
	for name, lines := range map[string]int{"urlset_basic.xml": 5, "xmlSitemap.gz": 5, "sitemap.txt.gz": 5,
		"feed.rss": 4, "atom.xml": 1, "urlset_utf16.xml": 1} {
		r := runCommand(t, "sitemap", "--base=http://www.example.com/",
			filepath.Join("..", "..", "..", "..", "frontier", "sitemap", "testdata", name))
		if n := strings.Count(r.stdout, "\n"); n != lines || r.code == command.ExitUsage {
			t.Errorf("%s: %d entries, want %d: %s", name, n, lines, r.stderr)
		}
	}
}
