package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// explainSite returns a site with URLs for every step of an explanation.
func explainSite() crawltest.Site {
	return crawltest.Site{
		Host: "puzzle.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nDisallow: /till\nAllow: /till/open\nCrawl-delay: " +
				"0.01\nClean-param: ref&sid /p\n"),
		}),
		Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<a href=/p?ref=1&id=7>p</a><a href=/till>t</a><a " +
				"href=/q>q</a><a href=/r>r</a>")),
		},
		Fallback: crawltest.StaticPage(crawltest.HTML("page")),
	}
}

func runExplain(t *testing.T, v *daemontest.WebFixture, args ...string) commandResult {
	t.Helper()
	return runCommand(t, append([]string{"explain"}, args...)...)
}

// Each step of an explanation agrees with the state of the crawl and with what the crawl did.
func TestExplain(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, explainSite())
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
		"['http://puzzle.example/']\n"+
		"scope: {exclude: ['\\.pdf$'], params: {drop: ['utm_*'], sort: true}}\nstore: {path: "+v.DataDir()+"}\n")
	runCommand(t, v.CrawlArgs("-c", file, "--max-pages=2")...).want(t, command.ExitDone)
	for _, tt := range []struct {
		name, url string
		says      []string
	}{
		{"canonical form", " HTTP://Puzzle.Example:80/a/../%70?utm_source=x&b=2&a=1#top ", []string{
			"blanks around it are dropped", "the fragment #top is dropped",
			"the origin HTTP://Puzzle.Example:80 is written http://puzzle.example",
			"the path /a/../%70?utm_source=x&b=2&a=1 is written /p?utm_source=x&b=2&a=1",
			"utm_source=x by params.drop: utm_*; by params.sort", "→ http://puzzle.example/p?a=1&b=2"}},
		{"Clean-param", "http://puzzle.example/p?ref=9&id=7",
			[]string{"ref=9 by clean-param: ref&sid /p (line 5)", "→ http://puzzle.example/p?id=7"}},
		{"session id", "http://puzzle.example/(S(abc123))/cart;jsessionid=77",
			[]string{"(S(abc123)) by session id in the path", "→ http://puzzle.example/cart"}},
		{"empty query", "http://puzzle.example/cart?", []string{"no change", "http://puzzle.example/cart?\n"}},
		{"session id in the query", "http://puzzle.example/cart?PHPSESSID=0af9&sid=7",
			[]string{"PHPSESSID=0af9 by session id in the query", "→ http://puzzle.example/cart?sid=7"}},
		{"unknown", "http://puzzle.example/new",
			[]string{"no change", "scope        within", "allowed: no rule speaks of it",
				"SHA-256 ", "unknown; as a link of a seed: class 2, rank 102", "puzzle.example is due",
				"declared 10ms, configured -",
				"no: the crawl does not know it"}},
		{"excluded", "http://puzzle.example/a.pdf",
			[]string{"refused: matches an exclude pattern (exclude)", "no: it is out of scope"}},
		{"elsewhere", "http://elsewhere.example/",
			[]string{"another host than the seeds' (within)", "not known", "not known yet"}},
		{"a trap", "http://puzzle.example/a/b/a/b/a/b/a/b", []string{"(path_repeat)"}},
		{"disallowed", "http://puzzle.example/till",
			[]string{"disallowed: disallow: /till (line 2, group *)", "no: robots.txt closes it"}},
		{"a rule that loses", "http://puzzle.example/till/open",
			[]string{"allowed: allow: /till/open (line 3, group *)", "disallow: /till (line 2) loses: shorter"}},
		{"done", "http://puzzle.example/", []string{"state        done", "no: it was visited"}},
		{"pattern", "http://puzzle.example/day/2030-01-31", []string{"counts as /day/#-#-#"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runExplain(t, v, "--data", v.DataDir(), tt.url).want(t, command.ExitDone, tt.says...)
		})
	}
	sent := len(v.Web.Log())
	queued := decodeJSON[api.URLExplanation](t,
		runExplain(t, v, "--data", v.DataDir(), "--format=json", "http://puzzle.example/r").stdout)
	if queued.FrontierState.State != "queued" || queued.Visit.When == "never" ||
		queued.FrontierState.Entry.Referrer != "http://puzzle.example/" ||
		queued.Robots.MayVisit == nil || !*queued.Robots.MayVisit || queued.Host.Host != "puzzle.example" {
		t.Errorf("explained %+v", queued)
	}
	if len(v.Web.Log()) != sent {
		t.Error("a request was sent")
	}
	// The explanation is right: the resumed crawl does what it says.
	runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitDone)
	got := daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)))
	want := "http://puzzle.example/ http://puzzle.example/p?id=7 http://puzzle.example/q http://puzzle.example/r"
	if strings.Join(got, " ") != want {
		t.Errorf("visited %q, want %s", got, want)
	}
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/r").want(t, command.ExitDone, "state        done")
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/till").want(t, command.ExitDone,
		"state        parked, found as link at depth 1")
}

// explain does not say that a URL waits for a link if the crawl would refuse or never queue it.
func TestExplainURLLimit(t *testing.T) {
	v := daemontest.NewWebFixture(t, explainSite())
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
		"['http://puzzle.example/']\n"+
		"scope: {max_urls_per_host: 3}\nstore: {path: "+v.DataDir()+"}\n")
	runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone)
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/new").want(t, command.ExitDone,
		"refused: more than 3 URLs of the host (host_urls)", "no: it is out of scope")
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/").want(t, command.ExitDone,
		"scope        within", "no: it was visited")
	runExplain(t, v, "-c", file, "http://puzzle.example/robots.txt").want(t, command.ExitDone, "no: it is not a page")
	runExplain(t, v, "-c", file, "http://puzzle.example:25/").want(t, command.ExitDone,
		"no: port 25 is for a service other than http")
}

// The target of a redirect that adds a stripped parameter again is explained in the form in which the
// crawl visits it.
func TestExplainUseOriginal(t *testing.T) {
	site := crawltest.Site{
		Host: "found.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nDisallow: /*ref=\nCrawl-delay: 0.01\nClean-param: ref\n")}),
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("<a href='/p?ref=1'>p</a>")),
			"/p": crawltest.StaticPage(crawltest.Status(http.StatusNotFound))},
	}
	v := daemontest.NewWebFixture(t, site)
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
		"['http://found.example/']\nstore: {path: "+v.DataDir()+"}\n")
	runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone)
	runExplain(t, v, "--data", v.DataDir(), "http://found.example/p?ref=1").want(t, command.ExitDone,
		"state        parked", "disallowed: disallow: /*ref= (line 2")
}

// A sitemap is visited under the URL in robots.txt, and keeps all its parameters.
func TestExplainSitemap(t *testing.T) {
	site := crawltest.Site{
		Host: "map.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
			"Sitemap: http://map.example/map?ref=1\nClean-param: ref\n")}),
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("")),
			"/map?ref=1": crawltest.StaticPage(crawltest.Text("http://map.example/\n"))},
	}
	v := daemontest.NewWebFixture(t, site)
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
		"['http://map.example/']\nstore: {path: "+v.DataDir()+"}\n"+
		"revisit: {mode: interval, every: 1h}\n")
	runCommand(t, v.CrawlArgs("-c", file)...).want(t, command.ExitDone)
	got := runExplain(t, v, "--data", v.DataDir(), "http://map.example/map?ref=1")
	got.want(t, command.ExitDone, "resting as http://map.example/map?ref=1, found as robots",
		"it is visited as http://map.example/map?ref=1")
}

// explain finds a URL that was queued before its rules were known, in its queued form, and says what
// becomes of it. The crawl then does that.
func TestExplainQueuedRaw(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, explainSite())
	runCommand(t, v.CrawlArgs("http://puzzle.example/")...).want(t, command.ExitDone)
	runCommand(t, "frontier", "add", "--data", v.DataDir(),
		"http://puzzle.example/p?id=6&ref=10").want(t, command.ExitDone, "1 new")
	for _, form := range []string{"http://puzzle.example/p?id=6&ref=10", "http://puzzle.example/p?ref=10&id=6#there"} {
		says := []string{"→ http://puzzle.example/p?id=6", "unknown;"}
		if form == "http://puzzle.example/p?id=6&ref=10" {
			says = []string{"queued as http://puzzle.example/p?id=6&ref=10, found as seed", "allowed",
				"then http://puzzle.example/p?id=6 takes the place of http://puzzle.example/p?id=6&ref=10"}
		}
		runExplain(t, v, "--data", v.DataDir(), form).want(t, command.ExitDone, says...)
	}
	got := decodeJSON[api.URLExplanation](t,
		runExplain(t, v, "--data", v.DataDir(), "--format=json", "http://puzzle.example/p?id=6&ref=10").stdout)
	if got.URL != "http://puzzle.example/p?id=6" || got.FrontierState.State != "queued" ||
		got.FrontierState.KnownAs != "http://puzzle.example/p?id=6&ref=10" {
		t.Errorf("%+v", got.FrontierState)
	}
	runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitDone)
	for _, u := range daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile))) {
		if strings.Contains(u, "ref=") {
			t.Errorf("visited %s", u)
		}
	}
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/p?id=6&ref=10").want(t,
		command.ExitDone, "state        done")
	// Under rules that the crawl did not have, a visited page has another URL.
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
		"['http://puzzle.example/']\n"+
		"scope: {params: {drop: [id]}}\nstore: {path: "+v.DataDir()+"}\n")
	runExplain(t, v, "-c", file, "http://puzzle.example/p?id=6").want(t, command.ExitDone,
		"state        unknown, except for http://puzzle.example/p?id=6",
		"no: it was visited, or given up, as http://puzzle.example/p?id=6;")
}

// explain finds an http URL in the queue if the same URL on https does not exist.
func TestExplainHTTPVariant(t *testing.T) {
	v := daemontest.NewWebFixture(t, explainSite())
	runCommand(t, v.CrawlArgs("http://puzzle.example/")...).want(t, command.ExitDone)
	s, err := datadir.OpenBoltStore(datadir.StateDir(v.DataDir()).Path(datadir.StoreFile), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) decorum.URL {
		u, err := decorum.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	f := frontier.New(s, frontier.Config{})
	for range 3 {
		if err := f.RecordHTTPSEvidence(t.Context(), parse("http://puzzle.example/"), true, false); err != nil {
			t.Fatal(err)
		}
	}
	entries := []storage.Entry{{URL: parse("https://puzzle.example/there"), Source: storage.SourceLink},
		{URL: parse("http://puzzle.example/here"), Source: storage.SourceLink, HTTPSUpgradeTried: true},
		{URL: parse("https://puzzle.example/here"), HTTPSUpgradeTried: true}}
	if n, err := f.Discover(t.Context(), entries...); n != 3 || err != nil {
		t.Fatalf("%d are new, %v", n, err)
	}
	l, err := f.Next(t.Context())
	if err != nil || l.URL != entries[2].URL {
		t.Fatalf("leased %v, %v", l.URL, err)
	}
	if err := f.Ack(t.Context(), storage.Ack{Lease: l, Outcome: storage.Drop}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/there").want(t, command.ExitDone,
		"→ https://puzzle.example/there", "queued, found as link")
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/here").want(t, command.ExitDone,
		"→ https://puzzle.example/here",
		"queued as http://puzzle.example/here", "allowed", "it is visited as http://puzzle.example/here")
}

// Without a crawl explain uses the project, and --fetch requests robots.txt once.
func TestExplainByProject(t *testing.T) {
	v := daemontest.NewWebFixture(t, explainSite(), crawltest.Site{Host: "broken.example",
		Robots: crawltest.StaticRobots(
			crawltest.RobotsSpec{Response: crawltest.Status(http.StatusServiceUnavailable)})})
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nseeds: "+
		"['http://puzzle.example/', 'http://broken.example/']\n"+
		"fetch: {allow_private: true, connect_to: ['::"+v.Addr+"']}\nstore: {path: "+v.DataDir()+"}\n")
	runExplain(t, v, "-c", file, "http://puzzle.example/till").want(t, command.ExitDone, "the crawl fetches it first",
		"robots.txt is fetched first")
	if n := len(v.Web.Log()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	runExplain(t, v, "-c", file, "--fetch", "http://puzzle.example/till").want(t, command.ExitDone,
		"disallowed: disallow: /till (line 2", "fetched at")
	runExplain(t, v, "-c", file, "--fetch", "http://puzzle.example/p?sid=1").want(t, command.ExitDone,
		"→ http://puzzle.example/p")
	if got := requestedPaths(v.Web); got != "/robots.txt /robots.txt" {
		t.Errorf("requests for %s", got)
	}
	runExplain(t, v, "-c", file, "--fetch", "http://broken.example/").want(t, command.ExitFailed, "status 503")
	runExplain(t, v, "-c", file, "--data", v.DataDir(), "http://puzzle.example/").want(t,
		command.ExitUsage, "choose one")
	runExplain(t, v, "--data", v.DataDir(), "http://puzzle.example/").want(t, command.ExitUsage, "holds no crawl")
	runExplain(t, v, "-c", file, "no URL").want(t, command.ExitUsage, `"no URL" is not a URL`)
}

// requestedPaths returns the paths of the requests to a web.
func requestedPaths(web *crawltest.Web) string {
	var all []string
	for _, x := range web.Log() {
		_, rest, _ := strings.Cut(x.URL, "://")
		_, path, _ := strings.Cut(rest, "/")
		all = append(all, "/"+path)
	}
	return strings.Join(all, " ")
}
