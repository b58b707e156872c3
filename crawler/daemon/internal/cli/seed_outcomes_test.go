package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gocolly/colly/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// movedSites returns shop.example, which redirects to www.shop.example by way of hop.test. Links lead
// from there to hop.test again, and to other.example, directly and by a redirect.
func movedSites() []crawltest.Site {
	page := func(html string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(html)) }
	redirect := func(to string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.Redirect(301, to)) }
	return []crawltest.Site{
		{Host: "shop.example", Pages: map[string]crawltest.PageFunc{"/": redirect("http://hop.test/")}},
		{Host: "hop.test", Pages: map[string]crawltest.PageFunc{
			"/": redirect("http://www.shop.example/"), "/more": page("")}},
		{Host: "www.shop.example", Pages: map[string]crawltest.PageFunc{
			"/":     page(`<a href="/two"></a><a href="http://other.example/"></a><a href="http://hop.test/more"></a>`),
			"/two":  page(`<a href="/away"></a><a href="/last"></a>`),
			"/away": redirect("http://other.example/"),
			"/last": page("last"),
		}},
		{Host: "other.example", Pages: map[string]crawltest.PageFunc{"/": page("")}},
	}
}

// The site at the end of a seed's redirects joins the scope, and no other site. It stays in the scope when
// the crawl is resumed. The log says so once.
func TestScopeFollowsRedirectOfSeed(t *testing.T) {
	v := daemontest.NewWebFixture(t, movedSites()...)
	first := runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=3")...)
	explain := func(url string, texts ...string) {
		t.Helper()
		runCommand(t, "explain", "--data", v.DataDir(), url).want(t, command.ExitDone, texts...)
	}
	explain("http://www.shop.example/unknown", "scope        within\n")
	explain("http://hop.test/more", "another host than the seeds'")
	second := runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-pages=0", "--progress=none")
	second.want(t, command.ExitDone, "left: 0 queued")
	got := daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl")))
	want := []string{"http://hop.test/", "http://shop.example/", "http://www.shop.example/",
		"http://www.shop.example/away", "http://www.shop.example/last", "http://www.shop.example/two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The project keeps the seed's redirects on its host.
	v = daemontest.NewWebFixture(t, movedSites()...)
	config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\nscope: {seed_redirects: host}\n")
	runCommand(t, v.CrawlArgs("-c", config, "http://shop.example/")...).want(t, command.ExitFailed,
		"http://shop.example/ redirects to http://hop.test/, which is out of scope: another host than the seeds'")
	const message = "a seed redirects to another site, which belongs to the crawl from now on"
	if n := strings.Count(first.stderr+second.stderr, message); n != 1 {
		t.Errorf("%d lines of log about the redirect of the seed, want 1:\n%s%s", n, first.stderr, second.stderr)
	}
}

// A crawl whose seeds lead nowhere fails with the reasons. A run fails neither if another seed has led to
// a page, now or earlier, nor if nothing is due.
func TestSeedsThatLeadNowhere(t *testing.T) {
	robots := crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /closed\n")}
	site := crawltest.Site{Host: "shop.example", Robots: crawltest.StaticRobots(robots),
		Pages: map[string]crawltest.PageFunc{
			"/":      crawltest.StaticPage(crawltest.HTML("home")),
			"/moved": crawltest.StaticPage(crawltest.Redirect(302, "/gone")),
			"/loop":  crawltest.StaticPage(crawltest.Redirect(302, "/loop")),
			"/ring":  crawltest.StaticPage(crawltest.Redirect(302, "/ring2")),
			"/ring2": crawltest.StaticPage(crawltest.Redirect(302, "/ring")),
			"/away":  crawltest.StaticPage(crawltest.Redirect(302, "http://other.example/secret")),
		}}
	v := daemontest.NewWebFixture(t, site)
	config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\nscope: {exclude: [/secret]}\n")
	bad := []string{"-c", config, "http://shop.example/closed", "http://shop.example/missing",
		"http://shop.example/moved", "http://shop.example/away", "http://shop.example/secret",
		"http://shop.example/loop", "http://shop.example/ring"}
	runCommand(t, v.CrawlArgs(bad...)...).want(t, command.ExitFailed, "no seed led to a page:",
		"http://shop.example/closed is closed by robots.txt: disallow: /closed\n",
		"http://shop.example/missing answers with status 404\n",
		"http://shop.example/moved redirects to http://shop.example/gone, which answers with status 404\n",
		"http://shop.example/away redirects to http://other.example/secret, which is out of scope: matches an exclude",
		"http://shop.example/secret is out of scope: matches an exclude pattern",
		"http://shop.example/loop redirects, directly or by others, to itself\n",
		"http://shop.example/ring redirects, directly or by others, to itself\n")
	resume := func(exit int, more ...string) {
		t.Helper()
		runCommand(t, append([]string{"crawl", "--resume", "--data", v.DataDir(), "--progress=none"},
			more...)...).want(t, exit)
	}
	// A new seed fails, too; then, one leads to a page; from then on, no run fails for its seeds.
	resume(command.ExitFailed, "http://shop.example/missing2")
	resume(command.ExitDone, "http://shop.example/", "http://shop.example/missing3")
	resume(command.ExitDone, "http://shop.example/missing4")
	// Nothing is due.
	v = daemontest.NewWebFixture(t, site)
	runCommand(t, v.CrawlArgs("http://shop.example/missing")...).want(t, command.ExitFailed, "no seed led to a page")
	resume(command.ExitDone)
	// The host cannot be reached.
	v = daemontest.NewWebFixture(t)
	runCommand(t, "crawl", "--data", v.DataDir(), "--contact=mailto:a@b.example", "--progress=none",
		"http://127.0.0.1:9/").want(t, command.ExitFailed, "no URLs left except on suspended origins\n",
		"no seed led to a page:\n  http://127.0.0.1:9/ cannot be visited: ", "port 9 is for a service")
}

// In a crawl of two processes, each fails if its seeds do.
func TestSeedsThatLeadNowhereOnRedis(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "shop.example"})
	project := testfile.Write(t, "p.yaml", daemontest.RedisField(c, ", durability: none"))
	for _, seed := range []string{"http://shop.example/a", "http://shop.example/b"} {
		process := &daemontest.WebFixture{Web: v.Web, Server: v.Server, Addr: v.Addr, Dir: t.TempDir()}
		runCommand(t, process.CrawlArgs("-c", project, seed)...).want(t, command.ExitFailed,
			"no seed led to a page:\n  "+seed+" answers with status 404")
	}
}

// Two processes follow redirects of different seeds to the same domain at the same time. Each, and a later
// one, leases URLs of both sites.
func TestScopeFollowsRedirectsOnRedis(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	parse := func(text string) decorum.URL {
		u, err := decorum.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	seeds := []decorum.URL{parse("http://a.test/"), parse("http://b.test/")}
	targets := []decorum.URL{parse("http://x.c.test/"), parse("http://y.c.test/")}
	scope := frontier.ScopeConfig{SeedRedirects: frontier.AnyScope}
	newProcess := func() *frontier.Frontier {
		s, err := redis.Open(t.Context(), redis.Options{Addresses: c.Addrs(), Prefix: "shop",
			Durability: redis.DurabilityNone})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		f := frontier.New(s, frontier.Config{Scope: frontier.NewScope(scope, seeds)})
		if err := f.LoadSeedRedirects(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f
	}
	processes := []*frontier.Frontier{newProcess(), newProcess()}
	var wg sync.WaitGroup
	for i, f := range processes {
		wg.Go(func() {
			extended, err := f.ExtendScopeToSeedTarget(t.Context(),
				storage.Entry{URL: targets[i], SeedOrigin: seeds[i].Origin()})
			if !extended || err != nil {
				t.Errorf("process %d: extended %v, %v", i, extended, err)
			}
		})
	}
	wg.Wait()
	for i, f := range append(processes, newProcess()) {
		for _, u := range targets {
			if err := f.CheckLeasedScope(t.Context(), storage.Entry{URL: u}); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
	}
}

// A callback visits a link without the context of its page. Two redirects lead from there to another host,
// which does not join the scope, because no seed is at their start.
func TestRedirectsOfCallbacksStayInScope(t *testing.T) {
	redirect := func(to string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.Redirect(302, to)) }
	v := daemontest.NewWebFixture(t,
		crawltest.Site{Host: "shop.example", Pages: map[string]crawltest.PageFunc{
			"/":   crawltest.StaticPage(crawltest.HTML("<a href=/r1>r1</a>")),
			"/r1": redirect("/r2"),
			"/r2": redirect("http://other.example/"),
		}},
		crawltest.Site{Host: "other.example", Fallback: crawltest.StaticPage(crawltest.HTML("other"))})
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nhandler: visit\n")
	var stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&bytes.Buffer{}),
		Stderr: terminal.NewStatusLineWriter(&stderr),
		Dependencies: engine.Dependencies{Handlers: collyfetch.NamedCallbacks{"visit": func(c *collyfetch.Collector) {
			c.OnHTML("a", func(e *colly.HTMLElement) { _ = c.Visit(e.Request.AbsoluteURL(e.Attr("href"))) })
		}}}}}
	code := a.main(v.CrawlArgs("-c", project, "http://shop.example/"))
	got := daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl")))
	want := []string{"http://shop.example/", "http://shop.example/r1", "http://shop.example/r2"}
	if diff := cmp.Diff(want, got); code != command.ExitDone || diff != "" {
		t.Errorf("exit code %d, visits:\n%s\n%s", code, diff, &stderr)
	}
}
