package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// feedSite returns a site whose articles are listed only in a feed, which is compressed and served as
// XML.
func feedSite() crawltest.Site {
	feed := crawltest.ResponseOfType("text/xml",
		"<rss version='2.0'><channel><link>/about</link><item><link>/news/1</link></item>"+
			"<item><link>2</link></item><item><link>/closed/3</link></item><item><link>http://elsewhere.example/</link></item></channel></rss>")
	feed.GzipIfAccepted = true
	print := crawltest.HTML("for printing")
	print.Header.Set("Link", "</news/1>; rel=canonical")
	return crawltest.Site{Host: "gazette.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
			"/closed/\n"),
			IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/closed/") }}),
		Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<link rel=alternate type=application/rss+xml " +
				"href=/news/feed><a href=/news/feed>RSS</a>")),
			"/news/feed": crawltest.StaticPage(feed),
			"/news/1":    crawltest.StaticPage(crawltest.HTML("one")),
			"/print":     crawltest.StaticPage(print),
			"/news/2":    crawltest.StaticPage(crawltest.HTML("two")),
		}}
}

// visitSources returns "source url" of each line of output, in order.
func visitSources(t *testing.T, v *daemontest.WebFixture) (list []string) {
	t.Helper()
	for _, r := range daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)) {
		list = append(list, r.URLSource+" "+r.URL)
	}
	return list
}

// TestFeedsOverSockets crawls feedSite over sockets with the default content types.
func TestFeedsOverSockets(t *testing.T) {
	v := daemontest.NewWebFixture(t, feedSite())
	runCommand(t, v.CrawlArgs("http://gazette.example/")...).want(t, command.ExitDone,
		"pages: 4 (", "within 1", "parked: 1")
	want := []string{"seed http://gazette.example/", "feed http://gazette.example/news/feed",
		"feed http://gazette.example/news/1", "feed http://gazette.example/news/2"}
	if got := visitSources(t, v); !slices.Equal(got, want) {
		t.Errorf("visits %q, want %q", got, want)
	}
	if feed := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile))[1]; feed.LinkCount != 4 ||
		feed.SHA256 == "" || feed.Depth != 1 {
		t.Errorf("the line of the feed is %+v", feed)
	}
	runCommand(t, "explain", "--data", v.DataDir(), "http://gazette.example/closed/3").want(t, command.ExitDone,
		"parked, found as feed at depth 2", "on http://gazette.example/news/feed")
	if report := v.Web.Judge(crawltest.JudgeOptions{MinDelay: time.Nanosecond}); !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}

// TestEmbeddedDocuments crawls, with the default content types, what pages embed, and a page that is
// served as XML.
func TestEmbeddedDocuments(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/": crawltest.StaticPage(crawltest.HTML("<object data=/1.pdf type=application/pdf></object>" +
			`<embed src=/2.pdf><iframe srcdoc="<a href='/page'>"></iframe>`)),
		"/1.pdf": crawltest.StaticPage(crawltest.ResponseOfType("application/pdf", "%PDF-1.7 1")),
		"/2.pdf": crawltest.StaticPage(crawltest.ResponseOfType("application/pdf", "%PDF-1.7 2")),
		"/page": crawltest.StaticPage(crawltest.ResponseOfType("application/xml",
			"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><a href='/last'/></body></html>")),
		"/last": crawltest.StaticPage(crawltest.HTML("last")),
	}})
	runCommand(t, v.CrawlArgs("http://a.example/")...).want(t, command.ExitDone)
	want := []string{"seed http://a.example/", "link http://a.example/1.pdf", "link http://a.example/2.pdf",
		"link http://a.example/page", "link http://a.example/last"}
	if got := visitSources(t, v); !slices.Equal(got, want) {
		t.Errorf("visits %q, want %q", got, want)
	}
}

// TestDiscover checks that the crawl follows the sources of URLs that the project file selects.
func TestDiscover(t *testing.T) {
	t.Parallel()
	for discover, want := range map[string][]string{
		"feeds: false": {"seed http://gazette.example/", "link http://gazette.example/news/feed"},
		"links: false": {"seed http://gazette.example/", "feed http://gazette.example/news/feed",
			"feed http://gazette.example/news/1", "feed http://gazette.example/news/2"},
		"feeds: false, links: false": {"seed http://gazette.example/"},
	} {
		t.Run(discover, func(t *testing.T) {
			v := daemontest.NewWebFixture(t, feedSite())
			file := testfile.Write(t, "p.yaml",
				fmt.Sprintf("agent: {contact: 'mailto:bot@example.com'}\ndiscover: {%s}\n", discover))
			runCommand(t, v.CrawlArgs("-c", file, "http://gazette.example/")...).want(t, command.ExitDone)
			if got := visitSources(t, v); !slices.Equal(got, want) {
				t.Errorf("visits %q, want %q", got, want)
			}
		})
	}
}

// TestNotFollowed: summary and report say which links a crawl left for nofollow, and which pages need a
// browser. Links out of scope and links that were followed do not count.
func TestNotFollowed(t *testing.T) {
	t.Parallel()
	app := crawltest.HTML("<link rel=license href=http://law.example/>" +
		"<noscript>Enable JavaScript</noscript><div id=root></div><script src=/app.js></script>")
	v := daemontest.NewWebFixture(t,
		crawltest.Site{Host: "git.example", Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<meta name=robots content='index, nofollow'>" +
				"<a href=/?p=one>1</a><a href=/?p=two>2</a><a href=/>home</a><a href=http://elsewhere.example/>x</a>"))}},
		crawltest.Site{Host: "app.example", Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(app)}})
	runCommand(t, v.CrawlArgs("http://git.example/", "http://app.example/")...).want(t, command.ExitDone, "pages: 2 (",
		"not followed: 2 links that pages ask robots not to follow (nofollow)",
		"1 page has no links and a mount point for scripts: it needs rendering")
	runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone, "Not followed",
		"2  nofollow         git.example  pages ask robots not to follow their links",
		"1  needs_rendering  app.example  no links, and a mount point (id=root): needs rendering")
	r := runCommand(t, "report", "--data", v.DataDir(), "--host", "app.example", "--format", "json")
	r.want(t, command.ExitDone)
	if strings.Contains(r.stdout, "git.example") || !strings.Contains(r.stdout, `"reason": "needs_rendering"`) {
		t.Errorf("the report on a host is\n%s", r.stdout)
	}
}

// TestSitemapXML: a crawl tries /sitemap.xml, unless the project file says otherwise.
func TestSitemapXML(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string][]string{
		"":                   {"seed http://map.example/", "sitemap http://map.example/listed"},
		"sitemap_xml: false": {"seed http://map.example/"},
	} {
		v := daemontest.NewWebFixture(t, crawltest.Site{Host: "map.example", Pages: map[string]crawltest.PageFunc{
			"/":       crawltest.StaticPage(crawltest.HTML("home")),
			"/listed": crawltest.StaticPage(crawltest.HTML("listed")),
			"/sitemap.xml": crawltest.StaticPage(crawltest.ResponseOfType("application/xml",
				"<urlset><url><loc>http://map.example/listed</loc></url></urlset>"))}})
		file := testfile.Write(t, "p.yaml", strings.Replace(v.ProjectYAML("http://map.example/", daemontest.NoDelayYAML),
			"discover: {sitemap_xml: false}", "discover: {"+setting+"}", 1))
		runCommand(t, "crawl", "--data", v.DataDir(), "-c", file, "--progress=none").want(t, command.ExitDone)
		if got := visitSources(t, v); !slices.Equal(got, want) {
			t.Errorf("with %q: visits %q, want %q", setting, got, want)
		}
	}
}

// TestCanonicalOverSockets checks that the canonical URL of a page is always reported, visited only if
// the project discovers canonical URLs, and that the page counts as its duplicate.
func TestCanonicalOverSockets(t *testing.T) {
	const duplicates = "duplicates: 0 with the body of another page, 1 naming another URL as canonical"
	for discover, pages := range map[string]int{"links: false": 2, "canonical: false": 1} {
		v := daemontest.NewWebFixture(t, feedSite())
		file := testfile.Write(t, "p.yaml",
			fmt.Sprintf("agent: {contact: 'mailto:bot@example.com'}\ndiscover: {%s}\n", discover))
		runCommand(t, v.CrawlArgs("-c", file, "http://gazette.example/print")...).want(t, command.ExitDone, duplicates)
		lines := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile))
		if len(lines) != pages || lines[0].Canonical != "http://gazette.example/news/1" {
			t.Errorf("%s: lines %+v, want %d", discover, lines, pages)
		}
		runCommand(t, "report", "--params", "--data", v.DataDir()).want(t, command.ExitDone,
			fmt.Sprintf("gazette.example  0          1          %d", pages))
	}
}

// TestImagesOverSockets checks that images are visited if the project discovers images, and that
// their bodies are read if the project accepts their type. max_links limits both, and is reported.
func TestImagesOverSockets(t *testing.T) {
	site := crawltest.Site{Host: "gallery.example", Pages: map[string]crawltest.PageFunc{
		"/":     crawltest.StaticPage(crawltest.HTML(`<img src=/1.png srcset="/2.png 2x"><a href=/page>`)),
		"/page": crawltest.StaticPage(crawltest.HTML("a page"))},
		Fallback: crawltest.StaticPage(crawltest.ResponseOfType("image/png", "\x89PNG"))}
	for fields, want := range map[string]string{
		"discover: {}":             "/ 49, /page 6",
		"discover: {images: true}": "/ 49, /1.png 0, /2.png 0, /page 6",
		"discover: {images: true, max_links: 2}\n" +
			"fetch: {content_types: [text/html, image/png]}": "/ 49, /1.png 4, /2.png 4",
	} {
		v := daemontest.NewWebFixture(t, site)
		file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\n"+fields+"\n")
		res := runCommand(t, v.CrawlArgs("-c", file, "http://gallery.example/")...)
		res.want(t, command.ExitDone)
		if limited := strings.Contains(res.stderr,
			"page has more links than are read"); limited != strings.Contains(fields, "max_links") {
			t.Errorf("%s: the log says\n%s", fields, res.stderr)
		}
		var got []string
		for _, r := range daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)) {
			got = append(got, fmt.Sprintf("%s %d", strings.TrimPrefix(r.URL, "http://gallery.example"), r.Bytes))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: visited %s, want %s", fields, s, want)
		}
	}
}

// TestResourcesOverSockets checks that a crawl with --resources, and a project that says so, reads the
// bodies of resources, whatever their type, also of those that a page links to, and says what they are.
func TestResourcesOverSockets(t *testing.T) {
	site := crawltest.Site{Host: "gallery.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML(`<link rel=stylesheet href=/1.css><a href=/2.png><img src=/2.png></a><form action=/found>`)),
		"/1.css": crawltest.StaticPage(crawltest.ResponseOfType("text/css; charset=utf-8", "a{b:url(/font)}")),
		"/font":  crawltest.StaticPage(crawltest.ResponseOfType("application/octet-stream", "a font"))},
		Fallback: crawltest.StaticPage(crawltest.ResponseOfType("image/png", "\x89PNG"))}
	for _, test := range []struct{ field, flag, want string }{
		{"", "", "/ seed 88, /2.png link 0"},
		{"forms: true", "", "/ seed 88, /2.png link 0, /found link 0"},
		{"resources: true", "", "/ seed 88, /1.css resource 15, /2.png link 4, /font resource 6"},
		{"resources: true, links: false", "", "/ seed 88, /1.css resource 15, /2.png resource 4, /font resource 6"},
		{"", "--resources", "/ seed 88, /1.css resource 15, /2.png link 4, /font resource 6"},
		{"resources: true", "--resources=false", "/ seed 88, /2.png link 0"},
		{"", "--resources --max-depth=0", "/ seed 88, /1.css resource 15, /2.png resource 4, /font resource 6"},
	} {
		v := daemontest.NewWebFixture(t, site)
		file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\ndiscover: {"+test.field+"}\n")
		args := append([]string{"-c", file}, strings.Fields(test.flag)...)
		runCommand(t, v.CrawlArgs(append(args, "http://gallery.example/")...)...).want(t, command.ExitDone)
		var got []string
		for _, r := range daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)) {
			got = append(got, fmt.Sprintf("%s %s %d", strings.TrimPrefix(r.URL, "http://gallery.example"), r.URLSource, r.Bytes))
		}
		slices.Sort(got)
		if s := strings.Join(got, ", "); s != test.want {
			t.Errorf("%q: visited %s, want %s", test, s, test.want)
		}
	}
}

// TestSitemapBody checks that the limit on sitemap bodies is independent of the limit on page bodies.
func TestSitemapBody(t *testing.T) {
	site := sitemapSite("map.test", "Sitemap: http://map.test/map.xml\n",
		map[string]crawltest.PageFunc{"/map.xml": sitemapPage("urls", numberedURLs("http://map.test/", 0, 100)...)})
	site.Latency = crawltest.Latency{}
	for fetch, want := range map[string]int{
		"fetch: {max_body: 1KiB}\n": 101, "fetch: {max_body: 10MiB, max_sitemap_body: 1KiB}\n": 25,
	} {
		v := daemontest.NewWebFixture(t, site)
		runCommand(t, v.CrawlArgs("-c", testfile.Write(t, "p.yaml", fetch), "http://map.test/")...).want(t,
			command.ExitDone, fmt.Sprintf("pages: %d (", want))
	}
}
