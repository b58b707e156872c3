package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// sitemapPage returns a sitemap that lists pages, or other sitemaps.
func sitemapPage(kind string, urls ...string) crawltest.PageFunc {
	outer, inner := "urlset", "url"
	if kind == "index" {
		outer, inner = "sitemapindex", "sitemap"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><%s xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, outer)
	for _, u := range urls {
		fmt.Fprintf(&b, "<%s><loc>%s</loc></%s>", inner, u, inner)
	}
	fmt.Fprintf(&b, "</%s>", outer)
	return crawltest.StaticPage(crawltest.ResponseOfType("application/xml", b.String()))
}

// numberedURLs returns prefix followed by each number from from up to, but not including, to.
func numberedURLs(prefix string, from, to int) (urls []string) {
	for i := from; i < to; i++ {
		urls = append(urls, prefix+fmt.Sprint(i))
	}
	return urls
}

// sitemapSite returns a site whose sitemaps list all its pages, with additional lines in its
// robots.txt. All its answers take a moment.
func sitemapSite(host, robots string, sitemaps map[string]crawltest.PageFunc) crawltest.Site {
	answer := crawltest.Text("User-agent: *\n" + robots)
	if _, age, ok := strings.Cut(robots, "# max-age "); ok {
		answer.Header.Set("Cache-Control", "max-age="+strings.TrimSpace(age))
	}
	return crawltest.Site{
		Host: host, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: answer}), Pages: sitemaps,
		Fallback: crawltest.StaticPage(crawltest.HTML("<title>x</title>" + strings.Repeat("x", 5000))),
		Latency:  crawltest.Latency{Base: 200 * time.Millisecond, Jitter: 100 * time.Millisecond, Seed: 7},
	}
}

// forecastSites returns sites whose pages are all in sitemaps, and whose crawls take times that are
// hard to forecast.
func forecastSites() (sites []crawltest.Site, seeds []string) {
	index := sitemapSite("index.test", "Disallow: /closed\nCrawl-delay: 3\nSitemap: http://index.test/index.xml\n",
		map[string]crawltest.PageFunc{
			"/index.xml": sitemapPage("index", "http://index.test/a.xml", "http://index.test/b.xml"),
			"/a.xml": sitemapPage("urls",
				append(numberedURLs("http://index.test/a", 0, 80),
					numberedURLs("http://index.test/closed/", 0, 30)...)...),
			"/b.xml": sitemapPage("urls", numberedURLs("http://index.test/a", 40, 120)...), // half of them again

			"/.well-known/tdmrep.json": crawltest.StaticPage(crawltest.ResponseOfType("application/json",
				`[{"location": "/a1", "tdm-reservation": 1}]`)),
		})
	refreshed := sitemapSite("refreshed.test", "Crawl-delay: 60\nSitemap: http://refreshed.test/all.xml\n# max-age "+
		"3600\n", map[string]crawltest.PageFunc{
		"/all.xml": sitemapPage("urls", numberedURLs("http://refreshed.test/", 0, 150)...),
	})
	moved := sitemapSite("moved.test", "", map[string]crawltest.PageFunc{
		"/rules.txt": crawltest.StaticPage(crawltest.Text("User-agent: *\nDisallow: /no\nSitemap: " +
			"http://moved.test/old.xml\n")),
		"/old.xml": crawltest.StaticPage(crawltest.Redirect(http.StatusMovedPermanently, "http://moved.test/new.xml")),
		"/new.xml": sitemapPage("urls", append(numberedURLs("http://moved.test/", 0, 50),
			numberedURLs("http://moved.test/no", 0, 5)...)...),
	})
	moved.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(http.StatusFound,
		"/rules.txt")})
	clean := sitemapSite("clean.test", "Clean-param: ref\nDisallow: /.well-known\nSitemap: http://clean.test/all.xml\n",
		map[string]crawltest.PageFunc{
			"/all.xml": sitemapPage("urls", append(numberedURLs("http://clean.test/?ref=1&amp;p=", 0, 40),
				numberedURLs("http://clean.test/?ref=2&amp;p=", 0, 40)...)...),
		})
	daily := sitemapSite("daily.test", "Visit-time: 0200-0210\nSitemap: http://daily.test/all.xml\n",
		map[string]crawltest.PageFunc{
			"/all.xml": sitemapPage("urls", numberedURLs("http://daily.test/", 0, 400)...),
		})
	slow := sitemapSite("slow.test", "Crawl-delay: 7200\nSitemap: http://slow.test/all.xml\n",
		map[string]crawltest.PageFunc{
			"/all.xml": sitemapPage("urls", numberedURLs("http://slow.test/", 0, 50)...),
		})
	sites = []crawltest.Site{index, refreshed, moved, clean, daily, slow}
	for _, s := range sites {
		seeds = append(seeds, "http://"+s.Host+"/")
	}
	return sites, seeds
}

// forecastProject returns the project of a crawl of forecastSites.
func forecastProject(seeds []string) project.Project {
	p := project.Default()
	p.Agent.Contact, p.Seeds, p.Discover.Links = "mailto:bot@example.com", seeds, false
	p.Politeness.Delay = project.Duration(2 * time.Second)
	return p
}

// newInMemoryEngineConfig returns the configuration of an engine that crawls web and leaves no files.
func newInMemoryEngineConfig(web *crawltest.Web) engine.Config {
	return engine.Config{
		Transport: web,
		Stores:    datadir.CrawlStores{Frontier: memory.New(memory.Config{}), Robots: memory.New(memory.Config{})},
		Outputs:   sinks.Outputs{JSONL: sinks.NewJSONLRecorder(io.Discard)}, Log: slog.New(slog.DiscardHandler),
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts()},
	}
}

// runDryRun returns the forecast for forecastSites, and the log of the servers.
func runDryRun(t *testing.T, p project.Project) (*dryRunForecast, []crawltest.Exchange) {
	t.Helper()
	sites, _ := forecastSites()
	web := crawltest.New(sites...)
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newDryRun(newInMemoryEngineConfig(web), projectForDryRun(p, ""), seedPerOrigin)
	if err != nil {
		t.Fatal(err)
	}
	runToEnd(t, s.Engine)
	f, err := s.newForecast(t.Context(), p, nil, defaultPageSize)
	if err != nil {
		t.Fatal(err)
	}
	return f, web.Log()
}

// crawlForecastSites returns the log of the servers of forecastSites after a crawl.
func crawlForecastSites(t *testing.T, p project.Project) []crawltest.Exchange {
	t.Helper()
	sites, _ := forecastSites()
	web := crawltest.New(sites...)
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newInMemoryEngineConfig(web).NewEngine(p, seedPerOrigin)
	if err != nil {
		t.Fatal(err)
	}
	runToEnd(t, r)
	return web.Log()
}

func runToEnd(t *testing.T, r *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(time.Duration(r.Project.Limits.Duration), 1000*time.Hour))
	defer cancel()
	if err := r.QueueSeeds(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Crawler.Run(ctx); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// requestsByHost returns how many requests each host got, and how long after the first request of all
// its last one ended.
func requestsByHost(log []crawltest.Exchange) (requests map[string]int64, lastRequestEnds map[string]time.Duration) {
	requests, lastRequestEnds = map[string]int64{}, map[string]time.Duration{}
	for _, x := range log {
		_, rest, _ := strings.Cut(x.URL, "://")
		host, _, _ := strings.Cut(rest, "/")
		requests[host]++
		lastRequestEnds[host] = max(lastRequestEnds[host], x.End.Sub(log[0].Start))
	}
	return requests, lastRequestEnds
}

// Forecasts of the same sites under settings that each change the crawl in another way.
var forecastTests = []struct {
	name   string
	change func(*project.Project)
	// shared says that the hosts compete for a common limit. Their order is then a matter of chance,
	// and only the crawl as a whole can be forecast.
	competing bool
}{
	{name: "as it is", change: func(*project.Project) {}},
	{name: "one worker", change: func(p *project.Project) { p.Limits.Workers = 1 }},
	{name: "hours", change: func(p *project.Project) {
		p.Politeness.Window = project.Window{Hours: "00:00-00:03,02:00-03:00"}
	}},
	{name: "another pace for a host", change: func(p *project.Project) {
		p.Politeness.Hosts = map[string]project.HostPoliteness{"moved.test": {Delay: new(
			project.Duration(20 * time.Second))}}
	}},
	{name: "requests a second", change: func(p *project.Project) { p.Limits.RequestsPerSecond = 0.2 }, competing: true},
	{name: "a purpose", change: func(p *project.Project) { p.Robots.Purposes = []string{"ai-train"} }},
	{name: "a purpose, and files that hold for an hour", change: func(p *project.Project) {
		p.Robots.Purposes, p.Robots.MaxTTL = []string{"ai-train"}, project.Duration(time.Hour)
	}},
	{name: "files that hold for an hour", change: func(p *project.Project) {
		p.Robots.MaxTTL = project.Duration(time.Hour)
	}},
	{name: "a purpose, and pages of a host", change: func(p *project.Project) {
		p.Robots.Purposes, p.Scope.MaxPagesPerHost = []string{"ai-train"}, 25
	}},
	{name: "a purpose, files that hold for an hour, and pages of a host", change: func(p *project.Project) {
		p.Robots.Purposes, p.Robots.MaxTTL, p.Scope.MaxPagesPerHost = []string{"ai-train"},
			project.Duration(time.Hour), 25
	}},
	{name: "files that hold for an hour, one of them behind a redirect, for a slow host",
		change: func(p *project.Project) {
			p.Robots.MaxTTL = project.Duration(time.Hour)
			p.Politeness.Hosts = map[string]project.HostPoliteness{"moved.test": {Delay: new(
				project.Duration(3 * time.Minute))}}
		}},
	{name: "pages of a host", change: func(p *project.Project) { p.Scope.MaxPagesPerHost = 25 }},
	{name: "time", change: func(p *project.Project) { p.Limits.Duration = project.Duration(time.Hour) }},
}

// The crawl does what its dry run forecasts: as many requests to each host, and in the same time to
// within 5 %. The dry run itself visits only robots.txt and sitemaps.
func TestForecastAgainstTheCrawl(t *testing.T) {
	t.Parallel()
	for _, tt := range forecastTests {
		t.Run(tt.name, func(t *testing.T) {
			_, seeds := forecastSites()
			p := forecastProject(seeds)
			tt.change(&p)
			var f *dryRunForecast
			var log, dryRunLog []crawltest.Exchange
			synctest.Test(t, func(t *testing.T) { f, dryRunLog = runDryRun(t, p) })
			synctest.Test(t, func(t *testing.T) { log = crawlForecastSites(t, p) })
			for _, x := range dryRunLog {
				if !slices.Contains([]string{".txt", ".xml", ".json"}, path.Ext(x.URL)) {
					t.Errorf("the dry run visited %s", x.URL)
				}
			}
			requests, lastRequestEnds := requestsByHost(log)
			for _, h := range f.hosts {
				if h.Requests != h.RobotsRequests+h.TDMRepRequests+h.SitemapRequests+h.PageRequests {
					t.Errorf("%s: %+v, which is not what its requests are for", h.Host, h.forecastTotals)
				}
				n := requests[h.Host]
				delete(requests, h.Host)
				if p.Limits.Duration > 0 { // the number depends on how long each request takes
					checkWithin5Percent(t, h.Host+": requests", h.Requests, n)
				} else if h.Requests != n {
					t.Errorf("%s: %d requests were foreseen, there were %d", h.Host, h.Requests, n)
				}
				if !tt.competing {
					checkWithin5Percent(t, h.Host+": time", time.Duration(h.Duration), lastRequestEnds[h.Host])
				}
			}
			if len(requests) > 0 {
				t.Errorf("requests to hosts that the forecast lacks: %v", requests)
			}
			if p.Limits.Duration == 0 {
				checkWithin5Percent(t, "the whole time", time.Duration(f.Duration),
					slices.Max(slices.Collect(maps.Values(lastRequestEnds))))
			}
		})
	}
}

// checkWithin5Percent checks that a forecast number is within 5 % of the actual one.
func checkWithin5Percent[N int64 | time.Duration](t *testing.T, what string, forecast, actual N) {
	t.Helper()
	if math.Abs(float64(forecast-actual)) > 0.05*float64(actual) {
		t.Errorf("%s: %v was foreseen, it was %v", what, forecast, actual)
	}
}

// The forecast says which line of robots.txt disallows which URLs, and why a host is suspended.
func TestForecastSaysWhatIsClosed(t *testing.T) {
	_, seeds := forecastSites()
	synctest.Test(t, func(t *testing.T) {
		f, _ := runDryRun(t, forecastProject(seeds))
		var b strings.Builder
		if err := f.writeTable(&b); err != nil {
			t.Fatal(err)
		}
		for _, says := range []string{
			"30 URLs  disallow: /closed  http://index.test/robots.txt (line 2)",
			"5 URLs  disallow: /no      http://moved.test/robots.txt (line 2)",
			"slow.test: 2 URLs left, because its Crawl-delay of 2h is longer than max_crawl_delay, 1h",
			"only links of other pages",
			"assumes 100KiB a page",
		} {
			if !strings.Contains(b.String(), says) {
				t.Errorf("the output lacks %q", says)
			}
		}
		if t.Failed() {
			t.Log(b.String())
		}
	})
}

// The duration is a minimum unless a limit ends the crawl, its pages can lead to no others, or to others on
// more hosts that exhaust a limit.
func TestForecastOfTheEnd(t *testing.T) {
	_, seeds := forecastSites()
	for _, tt := range []struct {
		name   string
		change func(*project.Project)
		says   string
	}{
		{"links", func(p *project.Project) { p.Discover.Links = true },
			"The crawl would end after at least 2h34m40s, and later if links lead to more pages: no page is left"},
		{"callbacks", func(p *project.Project) { p.Handler, p.Scope.MaxDepth = "books", 0 },
			"The crawl would end after at least 2m1s, and later if links"},
		{"links to other hosts, and a limit of pages", func(p *project.Project) {
			p.Discover.Links, p.Scope.ScopeMode, p.Limits.Pages = true, "any", 1e6
		}, "The crawl would end after 2h34m40s, and earlier or later if links lead to more pages: no page is left"},
		{"links to other hosts, and a limit of bytes", func(p *project.Project) {
			p.Discover.Links, p.Scope.ScopeMode, p.Limits.Bytes = true, "domain", 1<<40
		}, "The crawl would end after 2h34m40s, and earlier or later if links"},
		{"links to other hosts", func(p *project.Project) { p.Discover.Links, p.Scope.ScopeMode = true, "any" },
			"The crawl would end after at least 2h34m40s"},
		{"links on two hosts, and a limit of pages", func(p *project.Project) {
			p.Discover.Links, p.Seeds, p.Limits.Pages = true, seeds[:2], 1e6
		}, ", and earlier or later if links"},
		{"links on one host, and a limit of pages", func(p *project.Project) {
			p.Discover.Links, p.Limits.Pages = true, 1e6
		}, "The crawl would end after at least 2h34m40s"},
		{"seeds only", func(p *project.Project) { p.Discover.Links, p.Scope.MaxDepth = true, 0 },
			"The crawl would end after 2m1s: no page is left"},
		{"sitemaps only", func(p *project.Project) {
			p.Discover = project.DiscoverySettings{Sitemaps: true, MaxSitemapsPerHost: 9}
		}, "The crawl would end after 2h34m40s: no page is left"},
		{"time", func(p *project.Project) { p.Limits.Duration = project.Duration(time.Hour) },
			"The crawl would end after 1h: limits.duration is reached"},
		{"pages", func(p *project.Project) { p.Limits.Pages = 1 },
			"The crawl would end after 2m1s: limits.pages is reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := forecastProject(seeds[1:2])
				tt.change(&p)
				f, _ := runDryRun(t, p)
				var b strings.Builder
				if err := f.writeTable(&b); err != nil || !strings.Contains(b.String(), tt.says) {
					t.Errorf("%v, the output lacks %q:\n%s", err, tt.says, b.String())
				}
				if says := strings.Contains(b.String(), "at least"); says != f.DurationIsMinimum {
					t.Errorf("the table says at least: %v, the JSON Lines: %v", says, f.DurationIsMinimum)
				}
			})
		})
	}
}

// The forecast of a crawl that mines text and data has one more column, for tdmrep.json.
func TestForecastWithTDMRep(t *testing.T) {
	_, seeds := forecastSites()
	p := forecastProject(seeds[:1])
	p.Robots.Purposes = []string{"ai-train"}
	synctest.Test(t, func(t *testing.T) {
		f, _ := runDryRun(t, p)
		var b strings.Builder
		if err := f.writeTable(&b); err != nil {
			t.Fatal(err)
		}
		for _, says := range []string{
			"HOST        REQUESTS  ROBOTS  TDMREP  SITEMAPS  PAGES",
			"index.test  95        1       1       3         90 ",
			"31 URLs  tdm-reservation: 1  http://index.test/.well-known/tdmrep.json (line 1)",
		} {
			if !strings.Contains(b.String(), says) {
				t.Errorf("the output lacks %q:\n%s", says, b.String())
			}
		}
	})
}

// The command, over sockets: the crawl after the dry run makes the forecast requests, and its state is
// the same as without a dry run.
func TestDryRunCommand(t *testing.T) {
	t.Parallel()
	sites := []crawltest.Site{sitemapSite("index.test", "Disallow: /closed\nSitemap: http://index.test/index.xml\n",
		map[string]crawltest.PageFunc{
			"/index.xml": sitemapPage("index", "http://index.test/a.xml"),
			"/a.xml": sitemapPage("urls",
				append(numberedURLs("http://index.test/a", 0, 12), "http://index.test/closed/1")...),
		})}
	sites[0].Latency = crawltest.Latency{}
	v := daemontest.NewWebFixture(t, sites...)
	lines := filepath.Join(v.Dir, "forecast.jsonl")
	runCommand(t, v.CrawlArgs("--dry-run", "--output="+lines, "--page-size=2KiB", "http://index.test/")...).
		want(t, command.ExitDone, "index.test  16        1       2         13     0     1 ",
			"disallow: /closed", "assumes 2KiB a page")
	if _, err := os.Stat(v.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dry run left a data directory: %v", err)
	}
	text := testfile.RotatedLines(t, lines, 0)
	total, host := decodeJSON[map[string]any](t, text[0]), decodeJSON[map[string]any](t, text[1])
	for name, line := range map[string]map[string]any{"totals": total, "host": host} {
		got := map[string]any{}
		for _, field := range []string{"type", "requests", "robots", "sitemaps", "pages", "left",
			"blocked_by_robots", "bytes_from"} {
			got[field] = line[field]
		}
		if diff := gocmp.Diff(map[string]any{"type": name, "requests": 16.0, "robots": 1.0, "sitemaps": 2.0,
			"pages": 13.0, "left": 0.0,
			"blocked_by_robots": 1.0, "bytes_from": "assumed"}, got); diff != "" {
			t.Error(diff)
		}
	}
	dryRunRequests := len(v.Web.Log())
	runCommand(t, v.CrawlArgs("http://index.test/")...).want(t, command.ExitDone)
	if n := len(v.Web.Log()) - dryRunRequests; n != 16 {
		t.Errorf("the crawl made %d requests, want the 16 of the forecast", n)
	}
	// The earlier crawl tells what the next one costs the host: as much, for as many requests.
	report := runCommand(t, "report", "--data", v.DataDir(), "--format=json")
	report.want(t, command.ExitDone)
	lines = filepath.Join(v.Dir, "second.jsonl")
	runCommand(t, v.CrawlArgs("--dry-run", "--output="+lines, "http://index.test/")...).want(t, command.ExitDone,
		"answers in the earlier crawl.", "Traffic: as in the earlier crawl, ")
	earlier := decodeJSON[map[string]any](t, report.stdout)
	total = decodeJSON[map[string]any](t, testfile.RotatedLines(t, lines, 0)[0])
	for _, field := range []string{"requests", "wire_bytes_received", "connections"} {
		if total[field] != earlier[field] || total[field] == nil {
			t.Errorf("%s: %v are forecast, the earlier crawl had %v", field, total[field], earlier[field])
		}
	}
}

// TestForecastOfTraffic: traffic is forecast in proportion to an earlier crawl whose counts cover all of its
// requests. They do not if more bytes of bodies came than were received or saved by compression: an earlier
// version made some of the visits.
func TestForecastOfTraffic(t *testing.T) {
	for _, tt := range []struct {
		earlier                          crawler.HostTraffic
		wantWireBytes, wantConnections   int64
		wantTotalBytes, wantTotalOfConns int64
	}{
		{crawler.HostTraffic{Requests: 10, Bytes: 3000, WireBytesReceived: 2000, SavedByCompression: 1000,
			Connections: 2}, 4000, 4, 4300, 5},
		{crawler.HostTraffic{Requests: 10, Bytes: 3000, WireBytesReceived: 1999, SavedByCompression: 1000,
			Connections: 2}, 0, 0, 0, 0},
		{crawler.HostTraffic{Requests: 10}, 0, 0, 0, 0},
		{crawler.HostTraffic{}, 0, 0, 0, 0},
	} {
		host := &hostForecast{Host: "a.test", forecastTotals: forecastTotals{Requests: 20}}
		other := &hostForecast{Host: "b.test", forecastTotals: forecastTotals{Requests: 1}}
		p := dryRunForecast{hosts: []*hostForecast{host, other, {Host: "not visited"}}}
		p.setTraffic(map[string]hostAverages{"a.test": {traffic: tt.earlier},
			"b.test": {traffic: crawler.HostTraffic{Requests: 1, WireBytesReceived: 300, Connections: 1}}})
		if host.WireBytesReceived != tt.wantWireBytes || host.Connections != tt.wantConnections ||
			p.WireBytesReceived != tt.wantTotalBytes || p.Connections != tt.wantTotalOfConns {
			t.Errorf("after %+v: %+v, in all %+v", tt.earlier, host.forecastTotals, p.forecastTotals)
		}
	}
}

// A dry run whose reader closes the pipe exits as a crawl does, with the forecast as JSON Lines or as a table.
func TestReaderOfForecastLeaves(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	for _, flags := range [][]string{{"--dry-run", "--output=-"}, {"--dry-run"}} {
		code, output := runCommandInto(t, openBrokenPipe(t), v.CrawlArgs(append(flags, "http://shop.example/")...)...)
		if code != command.ExitStopped || strings.Contains(output, "decorum:") {
			t.Errorf("%s: exit code %d; it says %q", flags, code, output)
		}
	}
}

func TestDryRunUsage(t *testing.T) {
	for _, flag := range []string{"--resume", "--fresh", "--warc=w"} {
		runCommand(t, "crawl", "--dry-run", flag, "--contact=mailto:a@b.example", "http://a.test/").want(t,
			command.ExitUsage, "leave out --")
	}
	runCommand(t, "crawl", "--page-size=1KiB", "--contact=mailto:a@b.example", "http://a.test/").want(t,
		command.ExitUsage, "--dry-run")
}
