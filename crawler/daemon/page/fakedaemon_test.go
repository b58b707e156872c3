package page_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/page"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A fakeDaemon is a Daemon with one project. It returns the answers that a test sets, and records its
// calls, so that tests cover the page alone.
type fakeDaemon struct {
	api.Daemon    // nil: a method that fakeDaemon does not define panics
	project       api.Project
	host          string
	robots        string // the text of every robots.txt
	oldRobots     string // the text of the version before
	reason        string // the value of every field with a reason
	changeErr     error  // the error of every call that changes something
	lastHostQuery api.HostQuery
	calls         []string
	brakes        []api.Brake
	urls          []string
}

func newFakeDaemon() *fakeDaemon {
	return &fakeDaemon{
		project: api.Project{Name: "books", State: api.StateRunning, UserAgent: "examplebot/1.0", Workers: 4,
			Stats: api.ProjectStats{Pages: 1234567}, FrontierCounts: api.FrontierCounts{QueuedURLs: 42}},
		host: "shop.example", robots: "User-agent: examplebot\nDisallow: /private/\n", reason: "because",
	}
}

func (d *fakeDaemon) recordCall(format string, args ...any) error {
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
	return d.changeErr
}

func (d *fakeDaemon) Projects(context.Context) ([]api.Project, error) {
	return []api.Project{d.project}, nil
}

func (d *fakeDaemon) Project(_ context.Context, name string) (*api.Project, error) {
	if name != d.project.Name {
		return nil, api.NotFound("there is no project %q", name)
	}
	p := d.project
	return &p, nil
}

func (d *fakeDaemon) ReadProjectFile(context.Context, string) ([]byte, error) {
	return []byte("project: books\n"), nil
}

func (d *fakeDaemon) PutProject(_ context.Context, name string, file []byte) (bool, error) {
	return name != d.project.Name, d.recordCall("put %s %q", name, file)
}

func (d *fakeDaemon) DeleteProject(_ context.Context, name string) error {
	return d.recordCall("delete %s", name)
}

func (d *fakeDaemon) ControlProject(_ context.Context, name string, action api.ProjectAction) error {
	return d.recordCall("%s %s", action, name)
}

func (d *fakeDaemon) ReloadProjects(context.Context) ([]api.ProjectReloadResult, error) {
	return []api.ProjectReloadResult{{Project: "books", Outcome: "changed"}}, d.recordCall("reload")
}

func (d *fakeDaemon) AddURLs(_ context.Context, name string,
	lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	for line := range lines {
		d.urls = append(d.urls, line)
	}
	return &api.AddURLsResult{Added: len(d.urls), Refused: 1,
		Refusals: []api.RefusalSummary{{URLCount: 1, Rule: d.reason, Example: d.reason}}}, d.changeErr
}

func (d *fakeDaemon) fakeHost(name string) api.Host {
	h := api.Host{Host: name, State: "waiting", HoldReason: d.reason, DueAt: time.Now().Add(time.Minute),
		LastStatus: 200, MedianObservedDelay: api.Milliseconds(2 * time.Second),
		Origins: []string{"https://" + name, "http://" + name}, RobotsOutcome: "rules",
		RobotsFetchedAt: time.Now().Add(-time.Hour),
		Override:        map[string]any{"delay": d.reason}}
	h.QueuedURLs = 7
	if len(d.brakes) > 0 {
		h.Brake = &d.brakes[0]
	}
	return h
}

func (d *fakeDaemon) Hosts(_ context.Context, _ string, q api.HostQuery) (*api.HostListPage, error) {
	d.lastHostQuery = q
	p := &api.HostListPage{AsOf: time.Now(), Total: 100000, Offset: q.Offset,
		HostsByState: map[string]int{"waiting": 100000}}
	for range min(q.Limit, p.Total-q.Offset) {
		p.Hosts = append(p.Hosts, d.fakeHost(d.host))
	}
	return p, nil
}

func (d *fakeDaemon) HostDetail(_ context.Context, _, host string) (*api.HostDetail, error) {
	if host != d.host {
		return nil, api.NotFound("the crawl has not met %s", host)
	}
	h := &api.HostDetail{Host: d.fakeHost(host)}
	h.ParkedByRule = []api.RefusalSummary{{URLCount: 3, RefusedBy: "robots", Rule: d.reason, RuleLine: 2,
		RuleFileURL: d.reason, Example: d.reason}}
	h.FailedPages = []api.FailedPage{{URL: d.reason, Status: 500}}
	h.LearnedDelay, h.BackoffReason = api.Milliseconds(3*time.Second), d.reason
	h.ActiveVisits = []api.ActiveVisit{{URL: d.reason, Kind: "page", RequestedAt: time.Now()}}
	return h, nil
}

// A fakeInspector is the Inspector of a project of one of the tests' daemons.
type fakeInspector struct {
	api.Inspector
	daemon interface {
		ExplainURL(ctx context.Context, project, url string) (*api.URLExplanation, error)
		ProjectReport(ctx context.Context, project string, q api.ReportQuery) (*api.CrawlReport, error)
		AddURLs(ctx context.Context, project string, lines iter.Seq2[string, error]) (*api.AddURLsResult, error)
	}
	project string
}

func (i fakeInspector) ExplainURL(ctx context.Context, url string) (*api.URLExplanation, error) {
	return i.daemon.ExplainURL(ctx, i.project, url)
}

func (i fakeInspector) Report(ctx context.Context, q api.ReportQuery, use func(*api.StreamedReport) error) error {
	r, err := i.daemon.ProjectReport(ctx, i.project, q)
	if err != nil {
		return err
	}
	return use(&api.StreamedReport{Totals: *r, Hosts: func(func(*api.Host, error) bool) {}})
}

func (i fakeInspector) AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*api.AddURLsResult, error) {
	return i.daemon.AddURLs(ctx, i.project, lines)
}

func (d *fakeDaemon) Inspector(_ context.Context, project string) (api.Inspector, error) {
	return fakeInspector{daemon: d, project: project}, nil
}

func (d *fakeDaemon) ExplainURL(_ context.Context, _, text string) (*api.URLExplanation, error) {
	u, err := decorum.ParseURL(text)
	if err != nil {
		return nil, api.InvalidInput("%w", err)
	}
	e := &api.URLExplanation{Input: text, URL: u.String(),
		RewriteSteps: []api.RewriteStep{{Step: "canonical", URL: u.String(), Changes: []string{d.reason}}},
		Visit:        api.ExplainedNextVisit{When: "never", Reason: d.reason}}
	e.Robots.Outcome, e.Robots.Reason = "rules", d.reason
	e.Robots.Explanation = gate.NewExplanation(robots.Parse([]byte(d.robots),
		robots.Google).RulesFor(robots.AgentFromName("examplebot")).Explain(u), "", nil)
	e.Robots.MayVisit, e.Robots.SHA256 = &e.Robots.Allowed, "abcdef0123456789"
	return e, nil
}

func (d *fakeDaemon) ProjectReport(context.Context, string, api.ReportQuery) (*api.CrawlReport, error) {
	return &api.CrawlReport{ParkedByRule: []api.RefusalSummary{{URLCount: 3, RefusedBy: "robots", Rule: d.reason,
		RuleLine: 2, RuleFileURL: d.reason, Example: d.reason}}}, nil
}

func (d *fakeDaemon) RobotsFile(_ context.Context, _, origin, version string) (*api.RobotsFile, error) {
	f := &api.RobotsFile{Origin: origin, Outcome: "rules", FetchedAt: time.Now(),
		SHA256: "abcdef0123456789", Bytes: len(d.robots),
		Text: strings.ToValidUTF8(d.robots, "\uFFFD"),
		History: []api.RobotsVersion{{SHA256: "abcdef0123456789", FirstFetchedAt: time.Now()},
			{SHA256: "fedcba9876543210", FirstFetchedAt: time.Now()}}}
	if version == f.History[1].SHA256 {
		f.SHA256, f.Text = version, d.oldRobots
	}
	return f, nil
}

func (d *fakeDaemon) ProjectActiveVisits(context.Context, string) ([]api.ActiveVisit, error) {
	return []api.ActiveVisit{{URL: d.reason, Kind: "page", RequestedAt: time.Now()}}, nil
}

func (d *fakeDaemon) ProjectThroughput(context.Context, string, bool) ([]api.ThroughputSample, error) {
	return []api.ThroughputSample{{At: time.Now().Add(-time.Second), PagesPerSecond: 3}}, nil
}

func (d *fakeDaemon) Brakes(context.Context) ([]api.Brake, error) { return d.brakes, nil }

func (d *fakeDaemon) SetBrake(_ context.Context, b api.Brake) error {
	d.brakes = append(d.brakes, b)
	return d.recordCall("brake %s", b.Host)
}

func (d *fakeDaemon) LiftBrake(_ context.Context, host string) error {
	return d.recordCall("lift %s", host)
}

func (d *fakeDaemon) CheckReady(context.Context) error { return nil }

func (d *fakeDaemon) CrawlerIdentities() api.CrawlerIdentities {
	return api.CrawlerIdentities{Version: "1.2.3",
		Identities: []api.CrawlerIdentity{{ProductToken: d.project.Name + "bot",
			UserAgent: d.project.UserAgent, Contact: d.reason}}}
}

// The tokens of the tests.
const (
	operateToken = "a-token-that-may-operate"
	readToken    = "a-token-that-may-read"
)

// A browser requests pages of a daemon from a real api.Server, with cookies.
type browser struct {
	t       *testing.T
	client  *http.Client
	base    string
	checked map[string]bool // the assets that checkAsset has checked, by path
}

// openBrowser serves the page of a daemon and logs in to it, unless token is empty.
func openBrowser(t *testing.T, d api.Daemon, token string) *browser {
	t.Helper()
	return openPage(t, d, token, page.New)
}

// openPage is openBrowser with the page that newPage returns.
func openPage(t *testing.T, d api.Daemon, token string, newPage func(api.Daemon, *api.AuditLog) http.Handler) *browser {
	t.Helper()
	audit, err := api.OpenAuditLog(filepath.Join(t.TempDir(), "audit.jsonl"), api.AuditRotationLimits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { audit.Close() })
	server := httptest.NewServer(api.NewServer(d, api.ServerConfig{AuditLog: audit, PageHandler: newPage(d, audit),
		APIKeys: []api.APIKey{api.APIKeyFromToken("anna", api.RoleOperate, operateToken),
			api.APIKeyFromToken("ben", api.RoleRead, readToken)}}))
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t, &http.Client{Jar: jar}, server.URL, map[string]bool{}}
	if token != "" {
		b.post("/login", url.Values{"token": {token}})
	}
	return b
}

// A pageResponse is the answer to a request, after redirects.
type pageResponse struct {
	status int
	path   string // of the last redirect, with the query
	text   string
	header http.Header
}

func (b *browser) do(r *http.Request) pageResponse {
	b.t.Helper()
	r.Header.Set("Accept", "text/html")
	res, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode == http.StatusInternalServerError { // a template failed
		b.t.Errorf("%s %s: %s", r.Method, r.URL.RequestURI(), text)
	}
	return pageResponse{res.StatusCode, res.Request.URL.RequestURI(), string(text), res.Header}
}

func (b *browser) get(path string) pageResponse {
	b.t.Helper()
	r, err := http.NewRequest("GET", b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

func (b *browser) post(path string, form url.Values) pageResponse {
	b.t.Helper()
	r, err := http.NewRequest("POST", b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.base)
	return b.do(r)
}

// document parses a page.
func (a pageResponse) document(t *testing.T) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(a.text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// elements returns the elements of a page with the given name.
func elements(doc *html.Node, name string) (list []*html.Node) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			list = append(list, n)
		}
	}
	return list
}

// textOf returns the text of an element, with each run of space as one blank.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
