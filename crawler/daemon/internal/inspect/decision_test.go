package inspect

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A decisionCase is a URL that a crawl leases, in a given state of its origin.
type decisionCase struct {
	name        string
	url         string // default http://a.test/page
	robots      decorum.Response
	robotsErr   error  // the fetch of robots.txt failed with this error
	tdmrep      string // body of the served tdmrep.json
	tdmrepNote  string // stored note on tdmrep.json
	purposes    []string
	exclude     string // pattern that the scope excludes since the URL was queued
	window      string
	maxFailures int // failed fetches of robots.txt that suspend the origin
	want        decorum.Decision
	wantText    string // reason in the explanation; empty: the one for a visit to a due host
}

// TestExplainShowsTheDecisionOfTheCrawl checks that ExplainURL shows the Decision of the crawl at
// the same moment. It does not check decisions that need a reservation of shared resources, such as
// a slot of a host.
func TestExplainShowsTheDecisionOfTheCrawl(t *testing.T) {
	file := func(text string) decorum.Response { return decorum.Response{Status: http.StatusOK, Body: []byte(text)} }
	open := file("User-agent: *\nAllow: /\n")
	reserved := `[{"location": "/other", "tdm-reservation": 0},` + "\n" + `{"location": "/page", "tdm-reservation": 1}]`
	for _, tt := range []decisionCase{
		{name: "may be visited", robots: open},
		{name: "scope", robots: open, exclude: "/page",
			want:     decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonScope},
			wantText: "it is out of scope: matches an exclude pattern"},
		{name: "scope goes before robots.txt", robots: file("User-agent: *\nDisallow: /\n"), exclude: "/page",
			want:     decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonScope},
			wantText: "it is out of scope: matches an exclude pattern"},
		{name: "robots.txt", robots: file("User-agent: *\nDisallow: /p\n"), window: "02:00-03:00",
			want: decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonRobots,
				Rule: "disallow: /p", Line: 2},
			wantText: "robots.txt closes it, by disallow: /p (line 2"},
		{name: "robots.txt fails", robots: decorum.Response{Status: http.StatusServiceUnavailable},
			want:     decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonRobotsUnreachable},
			wantText: "its robots.txt is fetched again then: "},
		{name: "robots.txt fails again", robotsErr: errors.New("reset"), maxFailures: 1,
			want:     decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonRobotsUnreachable},
			wantText: "its robots.txt is fetched again then: "},
		{name: "robots.txt redirects", robots: decorum.Response{Status: http.StatusFound,
			Header: http.Header{"Location": {"http://b.test/r"}}},
			want:     decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonRobotsPending},
			wantText: "its robots.txt is fetched again then: "},
		{name: "tdmrep.json", robots: open, tdmrep: reserved, purposes: []string{"ai-train"},
			want: decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonTDMRep,
				Rule: "tdm-reservation: 1", Line: 2},
			wantText: "tdmrep.json reserves it, by tdm-reservation: 1 (line 2"},
		{name: "tdmrep.json fails", robots: open, purposes: []string{"ai-train"},
			tdmrepNote: `{"failures":1,"until":"2000-01-01T01:00:00Z"}`,
			want:       decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonTDMRepUnreachable},
			wantText:   "its tdmrep.json is fetched again then, after a failure"},
		{name: "hours", robots: open, window: "02:00-03:00",
			want:     decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonVisitHours},
			wantText: "the hours of visits begin then"},
		{name: "hours of robots.txt", robots: file("User-agent: *\nVisit-time: 0200-0300\n"),
			want:     decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonVisitHours},
			wantText: "the hours of visits begin then"},
		{name: "Crawl-delay", robots: file("User-agent: *\nCrawl-delay: 90000\n"),
			want:     decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonCrawlDelay},
			wantText: "its Crawl-delay of 25h0m0s is longer than max_crawl_delay"},
		{name: "port", url: "http://a.test:22/page", robots: open,
			want:     decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonPort},
			wantText: "port 22 is for a service other than http"},
	} {
		t.Run(tt.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testDecision(t, tt) }) })
	}
}

func testDecision(t *testing.T, tt decisionCase) {
	page := parseTestURL(t, "http://a.test/page")
	if tt.url != "" {
		page = parseTestURL(t, tt.url)
	}
	q, c := newDecisionCrawl(t, page, tt)
	if tt.tdmrepNote != "" {
		if err := q.FrontierStore.SetNote(t.Context(), page.Origin(), "tdmrep", []byte(tt.tdmrepNote)); err != nil {
			t.Fatal(err)
		}
	}
	clearance, err := q.Gate.Check(t.Context(), time.Now(), page)
	if err != nil {
		t.Fatal(err)
	}
	answer := &tt.robots
	if answer.URL = clearance.URL(); tt.robotsErr != nil {
		answer = nil
	}
	if _, err := q.Gate.RecordFetch(t.Context(), time.Now(), clearance, answer, tt.robotsErr); err != nil {
		t.Fatal(err)
	}
	entry := storage.Entry{URL: page, Source: storage.SourceSeed, PriorityClass: storage.ClassEarly}
	if _, err := q.FrontierStore.Add(t.Context(), []storage.Entry{entry}, 0); err != nil {
		t.Fatal(err)
	}
	var made decorum.Decision
	var explained *api.URLExplanation
	explain := func(d decorum.Decision) {
		q.AsOf = time.Now()
		e, err := q.ExplainURL(t.Context(), page.String())
		if err != nil {
			t.Fatal(err)
		}
		made, explained = d, e
	}
	c.Hooks.VisitRefused = func(l storage.Lease, d decorum.Decision) {
		if l.URL == page && explained == nil {
			explain(d)
		}
	}
	c.Hooks.Visited = func(v *crawler.Visit) {
		if d, _ := decorum.DecisionOf(v.Err); v.URL() == page {
			explain(d)
		}
	}
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the crawl visits tdmrep.json before the page
		if explained == nil {
			if err := c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if explained == nil {
		t.Fatal("the crawl did not reach the page")
	}
	want := tt.want
	if made.Action != want.Action || made.Reason != want.Reason || made.Rule != want.Rule || made.Line != want.Line {
		t.Errorf("the crawl decides %+v, want %+v", made, want)
	}
	checkExplainedDecision(t, explained, made)
	if tt.wantText != "" && !strings.HasPrefix(explained.Visit.Reason, tt.wantText) {
		t.Errorf("explain says %q, want %q", explained.Visit.Reason, tt.wantText)
	}
}

// checkExplainedDecision checks that an explanation shows the Decision that a crawl made.
func checkExplainedDecision(t *testing.T, e *api.URLExplanation, made decorum.Decision) {
	t.Helper()
	var want *api.ExplainedDecision
	if made.Action != decorum.Proceed {
		want = &api.ExplainedDecision{Action: made.Action.String(),
			Reason: string(made.Reason), Until: made.Until.UTC(),
			Rule: made.Rule, Line: made.Line}
	}
	if diff := cmp.Diff(want, e.Visit.Decision); diff != "" {
		t.Errorf("explain shows another decision than the crawl's (-crawl +explain):\n%s", diff)
	}
	isUntil := made.Action == decorum.Postpone || made.Action == decorum.Suspend &&
		made.Reason != decorum.ReasonCrawlDelay
	switch {
	case made.Action == decorum.Proceed:
		if e.Visit.When != "now" {
			t.Errorf("the crawl visits the URL, but explain says %s", e.Visit.When)
		}
	case isUntil && (e.Visit.When != "at" || !e.Visit.NotBefore.Equal(made.Until)):
		t.Errorf("the crawl waits until %v, but explain says %s %v", made.Until, e.Visit.When, e.Visit.NotBefore)
	case !isUntil && e.Visit.When != "never":
		t.Errorf("the crawl decides to %v, but explain says %s", made.Action, e.Visit.When)
	}
}

// newDecisionCrawl returns a crawl before its first visit, and its Inspector.
func newDecisionCrawl(t *testing.T, page decorum.URL, tt decisionCase) (*Inspector, *crawler.Crawler) {
	t.Helper()
	p := project.Default()
	p.Agent.Product, p.Agent.Contact = "testbot", "mailto:bot@example.com"
	p.Robots.Purposes, p.Politeness.Window.Hours = tt.purposes, tt.window
	gateConfig, err := p.GateConfig()
	if err != nil {
		t.Fatal(err)
	}
	gateConfig.SuspendAfterFailures = tt.maxFailures
	var scope frontier.ScopeConfig
	if tt.exclude != "" {
		scope.Exclude = []*regexp.Regexp{regexp.MustCompile(tt.exclude)}
	}
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
		Pages: map[string]crawltest.PageFunc{"/.well-known/tdmrep.json": crawltest.StaticPage(crawltest.ResponseOfType(
			"application/json", tt.tdmrep))}})
	fetch := httpfetch.Config{UserAgent: p.UserAgent(), Transport: web}
	if tt.want.Reason == decorum.ReasonPort {
		fetch.Transport = nil // a fetcher with its own dialer checks ports before it looks up names
	}
	fetcher, err := httpfetch.New(fetch)
	if err != nil {
		t.Fatal(err)
	}
	store, limiter := memory.New(memory.Config{}), politeness.NewLimiter(politeness.LimiterConfig{})
	c := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{Budget: limiter,
			Scope: frontier.NewScope(scope, []decorum.URL{page})}),
		Gate:   gate.New(gateConfig, memory.New(memory.Config{})),
		Policy: p.PolitenessPolicy(), Limiter: limiter, Fetcher: fetcher,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	q := &Inspector{Project: p, FrontierStore: store, Gate: c.Gate, ParamCleaner: c.Frontier.ParamCleaner(),
		Scope: func() *frontier.Scope { return frontier.NewScope(scope, []decorum.URL{page}) }}
	return q, c
}

func parseTestURL(t *testing.T, text string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
