package page_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
)

// A bareDaemon is a fakeDaemon whose project has done nothing yet: its lists are empty, and most of
// its fields are zero.
type bareDaemon struct{ *fakeDaemon }

func (bareDaemon) Projects(context.Context) ([]api.Project, error) { return nil, nil }

func (bareDaemon) Hosts(context.Context, string, api.HostQuery) (*api.HostListPage, error) {
	return &api.HostListPage{}, nil
}

func (bareDaemon) HostDetail(_ context.Context, _, host string) (*api.HostDetail, error) {
	return &api.HostDetail{Host: api.Host{Host: host, State: "due", Origins: []string{"https://" + host}}}, nil
}

func (d bareDaemon) Inspector(_ context.Context, project string) (api.Inspector, error) {
	return fakeInspector{daemon: d, project: project}, nil
}

func (bareDaemon) ExplainURL(_ context.Context, _, text string) (*api.URLExplanation, error) {
	return &api.URLExplanation{Input: text, URL: text, RewriteSteps: []api.RewriteStep{{Step: "canonical", URL: text}},
		Scope: api.ExplainedScope{InScope: true}, Robots: api.ExplainedRules{Outcome: "unknown"},
		FrontierState: api.ExplainedFrontierState{State: "unknown"}, Visit: api.ExplainedNextVisit{When: "now"}}, nil
}

func (bareDaemon) ProjectReport(context.Context, string, api.ReportQuery) (*api.CrawlReport, error) {
	return &api.CrawlReport{}, nil
}

func (bareDaemon) RobotsFile(_ context.Context, _, origin, _ string) (*api.RobotsFile, error) {
	return &api.RobotsFile{Origin: origin, Outcome: "allow_all"}, nil
}

func (bareDaemon) ProjectActiveVisits(context.Context, string) ([]api.ActiveVisit, error) {
	return nil, nil
}

func (bareDaemon) ProjectThroughput(context.Context, string, bool) ([]api.ThroughputSample, error) {
	return nil, nil
}

func (bareDaemon) CrawlerIdentities() api.CrawlerIdentities {
	return api.CrawlerIdentities{Version: "1.2.3"}
}

func (bareDaemon) AddURLs(context.Context, string, iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	return &api.AddURLsResult{Added: 1}, nil
}

// A fullDaemon is a fakeDaemon whose lists have entries, and that leaves as few fields zero as
// possible.
type fullDaemon struct{ *fakeDaemon }

// newFullDaemon returns a fullDaemon with robots.txt files too long to be shown in full, and with
// brakes of both kinds.
func newFullDaemon() fullDaemon {
	d := fullDaemon{newFakeDaemon()}
	same := strings.Repeat("Disallow: /same\n", 2000)
	d.oldRobots = "User-agent: examplebot\n" + same + "Disallow: /old/\n"
	d.robots = "User-agent: examplebot\n" + same + "Disallow: /private/\n"
	d.project.StateReason, d.project.FileError, d.project.HandlerName = "failed",
		"books.yaml:1:1: unknown field", "books"
	d.project.FileLoadedAt, d.project.StateSince, d.project.LargestDelayShortfall = time.Now(), time.Now(),
		api.Milliseconds(time.Second)
	slow := api.Brake{Host: "shop.example", WithSubdomains: true, Delay: api.Milliseconds(time.Minute),
		Reason: "asked", By: "anna",
		Since: time.Now(), Expires: time.Now().Add(time.Hour)}
	stop := api.Brake{Host: "other.example", Stop: true, Reason: "asked", By: "anna", Since: time.Now()}
	d.brakes = []api.Brake{slow, stop, stop, stop}
	return d
}

// Projects returns a project in each state, and one in a state without a stateLabel.
func (d fullDaemon) Projects(context.Context) (list []api.Project, err error) {
	for _, state := range []api.ProjectState{api.StateRunning, api.StatePausing, api.StatePaused, api.StateStopped,
		api.StateDone, api.StateFailed, "new"} {
		p := d.project
		p.State = state
		list = append(list, p)
	}
	return list, nil
}

// Hosts returns a host in each state, and one that was not visited. It refuses an unknown sort key.
func (d fullDaemon) Hosts(_ context.Context, _ string, q api.HostQuery) (*api.HostListPage, error) {
	if q.Sort == "unknown" {
		return nil, api.InvalidInput("hosts cannot be sorted by %q", q.Sort)
	}
	p := &api.HostListPage{AsOf: time.Now(), Total: 1000, Offset: q.Offset}
	for i, state := range []string{"due", "waiting", "held", "set aside", "resting", "done"} {
		h := d.fakeHost(d.host)
		h.State, h.HeldUntil, h.Brake = state, time.Now().Add(time.Hour), &d.brakes[i%2]
		p.Hosts = append(p.Hosts, h)
	}
	p.Hosts = append(p.Hosts, api.Host{Host: "new.example", State: "due"})
	return p, nil
}

func (d fullDaemon) HostDetail(ctx context.Context, project, host string) (*api.HostDetail, error) {
	h, err := d.fakeDaemon.HostDetail(ctx, project, host)
	if err == nil {
		h.HeldUntil, h.LastVisit, h.Address = time.Now().Add(time.Hour), time.Now(), netip.MustParseAddr("192.0.2.1")
		h.LargestDelayShortfall, h.BlockedByTDMRep = api.Milliseconds(time.Second), 2
		h.Connections, h.ResumedHandshakes = 3, 2
	}
	return h, err
}

func (d fullDaemon) Inspector(_ context.Context, project string) (api.Inspector, error) {
	return fakeInspector{daemon: d, project: project}, nil
}

func (d fullDaemon) ExplainURL(ctx context.Context, project, text string) (*api.URLExplanation, error) {
	e, err := d.fakeDaemon.ExplainURL(ctx, project, text)
	if err != nil {
		return nil, err
	}
	e.RewriteSteps = append(e.RewriteSteps, api.RewriteStep{Step: "https", URL: e.URL, Changes: []string{"one", "two"}})
	e.Scope = api.ExplainedScope{InScope: true, Detail: "a seed", CountedPattern: "/private/*"}
	e.Robots.FetchedAt, e.Robots.OriginPostponedReason, e.Robots.OriginPostponedUntil = time.Now(),
		"it asked for a pause", time.Now().Add(time.Hour)
	e.Robots.IndexingVerdict = &robots.Verdict{Rule: "disallow: /", Line: 2}
	e.FrontierState = api.ExplainedFrontierState{State: "queued", KnownAs: "http://shop.example/", URLsAhead: 3,
		Entry: &api.FrontierURL{Source: "link", Depth: 2, Referrer: "https://shop.example/"}}
	e.Visit = api.ExplainedNextVisit{When: "after", NotBefore: time.Now().Add(time.Hour), Reason: "others go first"}
	return e, nil
}

func (d fullDaemon) ProjectReport(context.Context, string, api.ReportQuery) (*api.CrawlReport, error) {
	r := &api.CrawlReport{RefusalCounts: []frontier.RefusalCount{{Host: d.host, Reason: frontier.DeepLink, Count: 2},
		{Reason: frontier.OutsideScope, Count: 1}}}
	r.BlockedByTDMRep = 5
	for _, why := range []string{"robots", "tdmrep", "scope", "nothing"} {
		r.ParkedByRule = append(r.ParkedByRule, api.RefusalSummary{URLCount: 3, RefusedBy: why, Rule: "disallow: /",
			RuleLine: 2, RuleFileURL: "https://shop.example/robots.txt"})
	}
	return r, nil
}

// RobotsFile withholds the text of files from http origins.
func (d fullDaemon) RobotsFile(ctx context.Context, project, origin, version string) (*api.RobotsFile, error) {
	f, err := d.fakeDaemon.RobotsFile(ctx, project, origin, version)
	if err != nil {
		return nil, err
	}
	f.OriginPostponedReason, f.OriginPostponedUntil, f.ExpiresAt = "it asked for a pause",
		time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	f.CrawlDelay = api.Milliseconds(time.Second)
	if strings.HasPrefix(origin, "http://") {
		f.Text, f.TextWithheldReason = "", "it is the answer of another host"
	}
	return f, nil
}

func (d fullDaemon) CheckReady(context.Context) error { return errors.New("books has failed") }

func (d fullDaemon) CrawlerIdentities() api.CrawlerIdentities {
	about := d.fakeDaemon.CrawlerIdentities()
	about.Identities[0].SigningKeyDirectoryURL = "https://example.org/keys"
	about.RobotsMaxTTL = api.Milliseconds(90 * 24 * time.Hour)
	return about
}

// branchPaths holds the pages that execute branches which pagePaths do not execute.
var branchPaths = []string{
	"/projects/books?offset=100&sort=queued&order=asc&state=held", "/projects/books?sort=unknown",
	"/projects/books/hosts/shop.example?url=mailto:a@b",
	"/projects/books/hosts/shop.example?origin=http://shop.example",
	"/projects/books/hosts/shop.example?version=fedcba9876543210",
	"/projects/books/hosts/shop.example?against=fedcba9876543210",
	"/login?failed=1&wait=2", "/audit?before=1", "/nothing",
}

// TestTemplateBranches executes each branch of each template, because a missing field is an error only
// when its branch is executed. The escaped templates must give the same pages.
func TestTemplateBranches(t *testing.T) {
	r := page.NewBranchRecorder()
	for _, d := range []api.Daemon{newFakeDaemon(), bareDaemon{newFakeDaemon()}, newFullDaemon()} {
		for _, token := range []string{operateToken, readToken, ""} {
			b := openPage(t, d, token, r.New)
			for _, path := range slices.Concat(pagePaths, branchPaths) {
				b.get(path)
			}
			sendForms(b)
			b.post("/login", url.Values{"token": {operateToken}})
			b.get("/audit") // it shows calls of an unknown caller
		}
	}
	sendRefusedForms(t, r.New)
	for _, branch := range r.Missed() {
		t.Errorf("no request executes a branch of a template: %s", branch)
	}
	for _, difference := range r.Different() {
		t.Errorf("the escaped templates give another page than html/template: %s", difference)
	}
}

// sendForms sends forms whose result a page shows.
func sendForms(b *browser) {
	b.t.Helper()
	b.post("/projects/books/pause", url.Values{"back": {"/brakes"}, "reason": {"asked"}})
	b.post("/projects/books/urls", url.Values{"urls": {"https://shop.example/"}})
}

// sendRefusedForms sends so many forms that the daemon refuses that the audit has more than one page.
func sendRefusedForms(t *testing.T, newPage func(api.Daemon, *api.AuditLog) http.Handler) {
	t.Helper()
	d := newFakeDaemon()
	d.changeErr = api.InvalidInput("books.yaml:1:1: unknown field")
	b := openPage(t, d, operateToken, newPage)
	for _, path := range []string{"/new", "/projects/books/file", "/projects/books/urls"} {
		b.post(path, url.Values{"file": {"nonsense"}, "urls": {"https://shop.example/"}})
	}
	for range 100 {
		b.post("/reload", nil)
	}
	b.get("/audit")
}

// TestBlockedPageNamesTDMRep: URLs that a tdmrep.json reserves are shown with that file, and counted.
func TestBlockedPageNamesTDMRep(t *testing.T) {
	body := openBrowser(t, newFullDaemon(), operateToken).get("/projects/books/blocked").text
	for _, want := range []string{`<td data-label="Why">tdmrep.json</td>`, "5 by tdmrep.json"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}
