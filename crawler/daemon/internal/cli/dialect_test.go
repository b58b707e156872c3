package cli

import (
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestDialect checks that the yandex dialect is a setting of the crawl (DEF-08): agents are found
// within a line, and each run of the crawl is a session, which begins with a fetch of robots.txt
// (SESS-01) even if the cached copy is young.
func TestDialect(t *testing.T) {
	site := daemontest.ShopSite()
	site.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{
		Response: crawltest.Text("User-agent: The decorum (crawler)\nDisallow: /b\nUser-agent: *\nDisallow: /\n")})
	for _, test := range []struct {
		dialect        string
		exit           int
		pages          string
		robotsRequests int // for robots.txt, by the crawl and its resumed run
	}{
		{"google", command.ExitFailed, "pages: 0 (", 1},
		{"yandex", command.ExitDone, "pages: 4 (", 2},
	} {
		t.Run(test.dialect, func(t *testing.T) {
			v := daemontest.NewWebFixture(t, site)
			runCommand(t, v.CrawlArgs("--dialect", test.dialect, "http://shop.example/a",
				"http://shop.example/b")...).want(t, test.exit, test.pages)
			runCommand(t, v.CrawlArgs("--resume", "http://shop.example/b?again")...).want(t,
				test.exit, "pages: 0 (")
			robotsRequests := 0
			for _, x := range v.Web.Log() {
				if x.URL == "http://shop.example/robots.txt" {
					robotsRequests++
				}
			}
			if robotsRequests != test.robotsRequests {
				t.Errorf("robots.txt was requested %d times, want %d", robotsRequests, test.robotsRequests)
			}
		})
	}
}

// TestCleanParam checks that the crawl applies Clean-param to discovered links, unless extensions are
// off (CLEAN-25).
func TestCleanParam(t *testing.T) {
	site := crawltest.Site{Host: "shop.example", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("Clean-param: sid\n")}),
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("<a href='/a?sid=1'>1</a><a " +
			"href='/a?sid=2&b=1'>2</a>"))}}
	for _, test := range []struct {
		name, setting string
		want          []string
	}{
		{"on", "", []string{"/", "/a", "/a?b=1"}},
		{"off", "robots: {extensions: false}\n", []string{"/", "/a?sid=1", "/a?sid=2&b=1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := daemontest.NewWebFixture(t, site)
			project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+test.setting)
			runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/")...).want(t, command.ExitDone)
			var got []string
			for _, x := range v.Web.Log() {
				if path := x.URL[len("http://shop.example"):]; path != "/robots.txt" {
					got = append(got, path)
				}
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("requests for %q, want %q", got, test.want)
			}
		})
	}
}
