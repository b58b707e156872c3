package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// trapSite returns a shop with useless parameters in its links, a calendar without end, session IDs
// and a maze of redirects, and a sitemap on another host that lists one more page.
func trapSite() []crawltest.Site {
	number := func(path string) (n int) {
		fmt.Sscan(regexp.MustCompile(`\d+`).FindString(path), &n)
		return n
	}
	page := func(links ...string) crawltest.Response {
		var b strings.Builder
		for _, l := range links {
			fmt.Fprintf(&b, "<a href='%s'>x</a>", l)
		}
		return crawltest.HTML(b.String())
	}
	return []crawltest.Site{{
		Host: "mall.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nClean-param: sid /shop\nSitemap: http://mall.example/index.xml\n"),
			RemoveCleanParams: func(path string) string {
				return regexp.MustCompile(`^(/shop\?item=\d)&sid=\d+`).ReplaceAllString(path, "$1")
			},
		}),
		Pages: map[string]crawltest.PageFunc{
			"/index.xml": crawltest.StaticPage(crawltest.ResponseOfType("text/xml",
				sitemapXML("sitemapindex", "http://maps.example/map.xml"))),
			"/shop": func(r crawltest.PageRequest) crawltest.Response {
				var links []string
				for i := range 5 {
					links = append(links, fmt.Sprintf("/shop?item=%d&sid=%d&utm_source=x%d", i, r.NthForURL*10+i, i))
				}
				return page(links...)
			},
		},
		Fallback: func(r crawltest.PageRequest) crawltest.Response {
			n := number(r.Path)
			switch {
			case r.Path == "/":
				return page("/shop", "/day/1", "/maze/1", "/far/2100/1/1", "/cart;jsessionid=1A")
			case strings.HasPrefix(r.Path, "/day"):
				return page(fmt.Sprintf("/day/%d", n+1))
			case strings.HasPrefix(r.Path, "/maze"):
				return crawltest.Redirect(302, fmt.Sprintf("/maze/%d", n+1))
			}
			return page("/cart;jsessionid=2B")
		},
	}, {Host: "maps.example", Pages: map[string]crawltest.PageFunc{
		"/map.xml": crawltest.StaticPage(crawltest.ResponseOfType("text/xml",
			sitemapXML("urlset", "http://mall.example/listed", "http://other.example/")))}}}
}

// TestTrapsOverSockets crawls trapSite over sockets: the crawl visits every product once and every
// trap up to its limit, and the report names the limit.
func TestTrapsOverSockets(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, trapSite()...)
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: ['http://mall.example/']\n"+
		"scope: {max_urls_per_pattern: 10, max_redirects: 4, params: {drop: ['utm_*']}}\n")
	runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone,
		"out of scope, by reason: calendar 1, pattern_urls 1, redirects 1, within 1",
		"redirects: 5, of them to new URLs: 4",
		`reason=pattern_urls why="more than 10 URLs as /day/#" url=http://mall.example/day/11 field=scope.max_urls_per_pattern`,
		"reason=redirects", "reason=calendar")
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprintf("http://mall.example/shop?item=%d", i))
	}
	for i := range 10 {
		want = append(want, fmt.Sprintf("http://mall.example/day/%d", i+1))
	}
	for i := range 5 {
		want = append(want, fmt.Sprintf("http://mall.example/maze/%d", i+1))
	}
	want = append(want, "http://mall.example/", "http://mall.example/shop", "http://mall.example/cart",
		"http://mall.example/listed")
	slices.Sort(want)
	if got := daemontest.SortedURLs(daemontest.ReadRecords(t,
		filepath.Join(v.DataDir(), datadir.OutputFile))); !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
	runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone, "Refused when found",
		"1  calendar      mall.example   a calendar of the year 2100", "more than 10 URLs as /day/#",
		"more than 4 redirects in a row",
		"such as http://mall.example/maze/6", "another host than the seeds'",
		"Session IDs stripped from URLs when found",
		"session_id  mall.example  a session ID was removed  such as "+
			"http://mall.example/cart;jsessionid=1A")
	runCommand(t, "report", "--data", v.DataDir(), "--host=mall.example").want(t, command.ExitDone, "pattern_urls")
	runCommand(t, "explain", "--data", v.DataDir(), "http://mall.example/far/2100/1/1").want(t, command.ExitDone,
		"a calendar of the year 2100 (calendar)")
}

// TestClosedPatternOverSockets: the log, the report and explain name a pattern of URLs whose pages repeat
// one another, and its queued URLs are parked for that reason.
func TestClosedPatternOverSockets(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "trap.example",
		Fallback: func(r crawltest.PageRequest) crawltest.Response {
			if r.Path == "/" {
				return crawltest.HTML("<a href=/a/>a</a>")
			}
			return crawltest.HTML("<a href=b/><a href=c/><a href=d/>")
		}})
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: ['http://trap.example/']\n"+
		"scope: {max_duplicates_per_pattern: 10}\n")
	const why = "10 of 11 pages as /a/* have the body of another page of the host"
	runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone, "pages: 12 (",
		"reason=duplicate_pattern", why, "field=scope.max_duplicates_per_pattern")
	runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone, "Closed, because their pages",
		"trap.example  /a/*  10 of 11 pages", why)
	runCommand(t, "explain", "--data", v.DataDir(), "http://trap.example/a/b/zzz/").want(t, command.ExitDone,
		why+" (duplicate_pattern)")
}

// A redirect does not count as a link: the target of a seed's redirect has the depth of the seed. A
// seed that redirects to an excluded URL is reported, because the crawl may end at once.
func TestSeedThatRedirects(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "shop.example", Pages: map[string]crawltest.PageFunc{
		"/":     crawltest.StaticPage(crawltest.Redirect(302, "/en/")),
		"/en/":  crawltest.StaticPage(crawltest.HTML("<a href=/deeper>deeper</a>")),
		"/away": crawltest.StaticPage(crawltest.Redirect(302, "http://other.example/")),
	}})
	config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\nscope: {exclude: [other]}\n")
	runCommand(t, v.CrawlArgs("-c", config, "http://shop.example/", "http://shop.example/away",
		"--max-depth=0")...).want(t, command.ExitDone,
		"pages: 3 (", "a seed redirects to a URL out of scope", "http://other.example/")
}

// TestDeadTwin: a link to https, where no server is, does not keep a crawl of the site on http alive. The
// crawl says what is left, and neither it nor a later run of it fails.
func TestDeadTwin(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/": crawltest.StaticPage(crawltest.HTML("<a href=https://a.example/x>x</a><a href=/y>y</a>"))},
		Fallback: crawltest.StaticPage(crawltest.HTML("page"))})
	runCommand(t, v.CrawlArgs("http://a.example/")...).want(t, command.ExitDone, "pages: 2 (",
		"left: 1 queued, 1 of them on hosts that do not answer")
	runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitDone, "pages: 0 (",
		"left: 1 queued, 1 of them on hosts that do not answer")
}
