package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// scrape reads the metrics as Prometheus does, and returns the value of each series.
func scrape(t *testing.T, m *metrics.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	series := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); ok && err == nil && !strings.HasPrefix(line, "#") {
			series[name] = number
		}
	}
	return series
}

// staticProjects returns a function that lists the given projects.
func staticProjects(all ...api.Project) func(context.Context) ([]api.Project, error) {
	return func(context.Context) ([]api.Project, error) { return all, nil }
}

// runCrawl crawls web from the seeds until nothing is left. m counts the crawl as project.
func runCrawl(t *testing.T, m *metrics.Metrics, web *crawltest.Web, project string, seeds ...string) {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(filepath.Join(t.TempDir(), "frontier.db"), bolt.Options{OnCommitted: m.ObserveCommit})
	if err != nil {
		t.Fatal(err)
	}
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)", Transport: web})
	if err != nil {
		t.Fatal(err)
	}
	limits := politeness.NewLimiter(politeness.LimiterConfig{})
	scope := frontier.NewScope(frontier.ScopeConfig{Mode: frontier.HostScope},
		[]decorum.URL{parseURL(t, "http://town.test/")})
	c := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{Budget: limits, Scope: scope, OnNewURLQueued: m.CountNewURLQueued,
			OnRefused: m.CountRefusedURL}),
		Gate: gate.New(gate.Config{Agent: agent}, store), Limiter: limits, Fetcher: fetcher,
		Policy:   politeness.Policy{JitterFunc: func() float64 { return 0 }},
		Settings: crawler.Settings{ProductToken: "testbot"},
		Log:      slog.New(slog.DiscardHandler), Hooks: m.Hooks(project),
	}
	c.Handler = func(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
		if strings.HasSuffix(v.URL().String(), "/panic") {
			panic("oh")
		}
		return c.LinksToFollow(ctx, v)
	}
	for _, s := range seeds {
		if _, err := c.Frontier.Discover(t.Context(), storage.Entry{URL: parseURL(t, s)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(c.Run(t.Context()), store.Close()); err != nil {
		t.Fatal(err)
	}
}

func parseURL(t *testing.T, text string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestMetricsAgreeWithTheServer compares the counters with the web's log, request by request.
func TestMetricsAgreeWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := func(html string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(html)) }
		web := crawltest.New(crawltest.Site{
			Host: "town.test", Latency: crawltest.Latency{Base: 40 * time.Millisecond},
			Robots: crawltest.StaticRobots(
				crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /no\n"),
					IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/no") }}),
			Pages: map[string]crawltest.PageFunc{
				"/": page(
					`<a href="/a"></a><a href="/no"></a><a href="/gone"></a><a href="/panic"></a><a href="/reset"></a><a href="/busy"></a><a href="http://else.test/"></a>`),
				"/a":     page(`<a href="/"></a>`),
				"/panic": page("oh"),
				"/busy":  crawltest.StaticPage(crawltest.Status(503)),
				"/reset": crawltest.StaticPage(crawltest.Response{Fault: crawltest.Reset}),
			},
		})
		m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
		runCrawl(t, m, web, "books", "http://town.test/")
		got := scrape(t, m)
		want := map[string]float64{}
		for _, x := range web.Log() {
			class := "none"
			if x.Status > 0 {
				class = strconv.Itoa(x.Status/100) + "xx"
			}
			want[`decorum_visits_total{project="books",status_class="`+class+`"}`]++
			want["decorum_visit_seconds_count"]++
		}
		if len(want) < 5 {
			t.Fatalf("the web answered too few kinds: %v", want)
		}
		want[`decorum_discovered_total{source="seed"}`] = 1
		want[`decorum_discovered_total{source="link"}`] = 6
		want[`decorum_refused_total{reason="within"}`] = 1
		want[`decorum_refused_total{reason="robots"}`] = 1
		want[`decorum_robots_fetch_total{outcome="rules"}`] = 1
		want["decorum_callback_panics_total"] = 1
		want[`decorum_retries_total{reason="throttled"}`] = 9
		want[`decorum_retries_total{reason="passing"}`] = 2
		for name, v := range want {
			if got[name] != v {
				t.Errorf("%s is %v, want %v", name, got[name], v)
			}
		}
		if got["decorum_store_commit_seconds_count"] == 0 || got["decorum_bytes_total"] == 0 {
			t.Errorf("commits and bytes are not counted: %v", got)
		}
		if t.Failed() {
			for name, v := range got {
				if strings.HasPrefix(name, "decorum_") && !strings.Contains(name, "_bucket") {
					t.Log(name, v)
				}
			}
		}
		m.DeleteProject("books")
		for name := range scrape(t, m) {
			if strings.Contains(name, "books") {
				t.Errorf("%s is not forgotten", name)
			}
		}
	})
}

// Each scrape shows the present state of the projects, and has a gap if the daemon cannot list them.
func TestProjectGauges(t *testing.T) {
	m := metrics.New(staticProjects(
		api.Project{Name: "a", State: api.StateRunning,
			FrontierCounts: api.FrontierCounts{QueuedURLs: 5, QueuedHosts: 4, DueHosts: 1, SuspendedURLs: 2,
				LeasedURLs: 1, ParkedURLs: 8, AwaitingRevisit: 9}},
		api.Project{Name: "b", State: api.StatePaused, FrontierCounts: api.FrontierCounts{QueuedURLs: 7, QueuedHosts: 3,
			DueHosts: 3}, LargestDelayShortfall: api.Milliseconds(1500 * time.Millisecond)},
	), slog.New(slog.DiscardHandler))
	m.RegisterBrakes(func(context.Context) ([]api.Brake, error) {
		return []api.Brake{{Host: "a.test", Stop: true}, {Host: "b.test", Stop: true}, {Host: "c.test", Delay: 5}}, nil
	})
	got := scrape(t, m)
	for name, want := range map[string]float64{
		`decorum_brakes{effect="stop"}`: 2, `decorum_brakes{effect="slow"}`: 1,
		`decorum_project_urls{project="a",state="queued"}`: 3, `decorum_project_urls{project="a",state="suspended"}`: 2,
		`decorum_project_urls{project="a",state="leased"}`: 1, `decorum_project_urls{project="a",state="parked"}`: 8,
		`decorum_project_urls{project="a",state="resting"}`: 9, `decorum_project_urls{project="b",state="queued"}`: 7,
		`decorum_project_hosts{project="a",state="due"}`: 1, `decorum_project_hosts{project="a",state="waiting"}`: 3,
		`decorum_project_state{project="a",state="running"}`: 1, `decorum_project_state{project="b",state="running"}`: 0,
		`decorum_project_state{project="b",state="paused"}`: 1,
		"decorum_queued": 12, `decorum_hosts{state="due"}`: 4, `decorum_hosts{state="waiting"}`: 3,
		"decorum_delay_shortfall_seconds":   1.5,
		`decorum_projects{state="running"}`: 1, `decorum_projects{state="paused"}`: 1,
		`decorum_projects{state="failed"}`: 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	m = metrics.New(func(context.Context) ([]api.Project, error) {
		return nil, errors.New("no")
	}, slog.New(slog.DiscardHandler))
	if got := scrape(t, m); len(got) == 0 {
		t.Error("the log has no warning")
	} else if _, ok := got["decorum_queued"]; ok {
		t.Error("a number is made up")
	}
}

// TestBuildInfo checks that build_info names the version of decorum and of Go.
func TestBuildInfo(t *testing.T) {
	m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
	for name, v := range scrape(t, m) {
		if strings.HasPrefix(name, `decorum_build_info{goversion="`+runtime.Version()+`",revision="`) &&
			strings.HasSuffix(name, `",version="`+decorum.Version()+`"}`) && v == 1 {
			return
		}
	}
	t.Error("decorum_build_info is absent")
}

// The number of series does not grow with hosts and URLs.
func TestSeriesAreBounded(t *testing.T) {
	m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
	m.CountRefusedURL(storage.Entry{}, errors.New("http://a.test/"))
	before := len(scrape(t, m))
	for i := range 1000 {
		u := parseURL(t, "http://h"+strconv.Itoa(i)+".test/")
		m.CountNewURLQueued(storage.Entry{URL: u})
		m.CountRefusedURL(storage.Entry{URL: u}, errors.New(u.String()))
		m.Hooks("books").VisitRefused(storage.Lease{Entry: storage.Entry{URL: u}},
			decorum.Decision{Action: decorum.Refuse, Reason: decorum.DecisionReason(u.String())})
	}
	got := scrape(t, m)
	if n := len(got) - before; n > 3 {
		t.Errorf("%d series were added", n)
	}
	hostLabel := regexp.MustCompile(`h\d+\.test`)
	for name := range got {
		if hostLabel.MatchString(name) {
			t.Errorf("a host is a label: %s", name)
		}
	}
}

// Each reason not to visit a URL maps to one of the label values that dashboards use.
func TestRefusedByReason(t *testing.T) {
	outside := &decorum.Error{Kind: decorum.OutOfScope, Err: &frontier.Refusal{Reason: frontier.Excluded}}
	for d, want := range map[decorum.Decision]string{
		{Action: decorum.Refuse, Reason: decorum.ReasonScope, Cause: outside}: "exclude",
		{Action: decorum.Refuse, Reason: decorum.ReasonRobots}:                "robots",
		{Action: decorum.Refuse, Reason: decorum.ReasonTDMRep}:                "tdmrep",
		{Action: decorum.Postpone, Reason: decorum.ReasonRobotsPending}:       "robots_awaited",
		{Action: decorum.Suspend, Reason: decorum.ReasonRobotsUnreachable}:    "robots_awaited",
		{Action: decorum.Postpone, Reason: decorum.ReasonTDMRepPending}:       "robots_awaited",
		{Action: decorum.Postpone, Reason: decorum.ReasonTDMRepUnreachable}:   "robots_awaited",
		{Action: decorum.Postpone, Reason: decorum.ReasonVisitHours}:          "robots_awaited",
		{Action: decorum.Suspend, Reason: decorum.ReasonCrawlDelay}:           "robots_awaited",
		{Action: decorum.Suspend, Reason: decorum.ReasonHostPages}:            "robots_awaited",
		{Action: decorum.Suspend, Reason: decorum.ReasonHostBytes}:            "robots_awaited",
		{Action: decorum.Postpone, Reason: decorum.ReasonHostRest}:            "not_due",
		{Action: decorum.Postpone, Reason: decorum.ReasonHostBusy}:            "not_due",
		{Action: decorum.Postpone, Reason: decorum.ReasonAddressBusy}:         "not_due",
		{Action: decorum.Postpone, Reason: decorum.ReasonRequestRate}:         "not_due",
		{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses}:      "not_due",
		{Action: decorum.Suspend, Reason: decorum.ReasonBrake}:                "not_due",
		{Action: decorum.Postpone, Reason: decorum.ReasonNetwork}:             "not_due",
		{Action: decorum.Postpone, Reason: decorum.ReasonLocalFailure}:        "local",
		{Action: decorum.Postpone, Reason: decorum.ReasonBodyMemory}:          "local",
		{Action: decorum.Suspend, Reason: decorum.ReasonPageLimit}:            "limit",
		{Action: decorum.Suspend, Reason: decorum.ReasonByteLimit}:            "limit",
		{Action: decorum.Refuse, Reason: decorum.ReasonDropped}:               "dropped",
		{Action: decorum.Refuse, Reason: decorum.ReasonRobotsRedirect}:        "dropped",
	} {
		m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
		m.Hooks("books").VisitRefused(storage.Lease{}, d)
		got := scrape(t, m)
		if got[`decorum_refused_total{reason="`+want+`"}`] != 1 ||
			(got["decorum_local_failures_total"] == 1) != (want == "local") {
			t.Errorf("%s does not count as %s", d.Reason, want)
		}
	}
}
