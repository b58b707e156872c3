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
)

// A script is a Daemon of one project that says what a test wants to hear, and
// remembers what it was asked to do. With it what the page makes of answers is
// tested, and nothing else.
type script struct {
	api.Daemon // what is not scripted is not asked
	project    api.Project
	host       string
	robots     string // the text of every robots.txt
	old        string // that of the version before
	why        string // of everything that has a reason
	refuse     error  // what changes something is refused so
	asked      api.HostQuery
	deeds      []string
	brakes     []api.Brake
	urls       []string
}

func newScript() *script {
	return &script{
		project: api.Project{Name: "books", State: api.Running, UserAgent: "examplebot/1.0", Workers: 4,
			Stats: api.Stats{Pages: 1234567}, Counts: api.Counts{Queued: 42}},
		host: "shop.example", robots: "User-agent: examplebot\nDisallow: /private/\n", why: "because",
	}
}

func (d *script) did(format string, args ...any) error {
	d.deeds = append(d.deeds, fmt.Sprintf(format, args...))
	return d.refuse
}

func (d *script) Projects(context.Context) ([]api.Project, error) {
	return []api.Project{d.project}, nil
}

func (d *script) Project(_ context.Context, name string) (*api.Project, error) {
	if name != d.project.Name {
		return nil, api.NotFound("there is no project %q", name)
	}
	p := d.project
	return &p, nil
}

func (d *script) ProjectFile(context.Context, string) ([]byte, error) {
	return []byte("project: books\n"), nil
}

func (d *script) PutProject(_ context.Context, name string, file []byte) (bool, error) {
	return name != d.project.Name, d.did("put %s %q", name, file)
}

func (d *script) DeleteProject(_ context.Context, name string) error { return d.did("delete %s", name) }

func (d *script) Do(_ context.Context, name string, action api.Action) error {
	return d.did("%s %s", action, name)
}

func (d *script) Reload(context.Context) ([]api.Reloaded, error) {
	return []api.Reloaded{{Project: "books", Change: "changed"}}, d.did("reload")
}

func (d *script) AddURLs(_ context.Context, name string, lines iter.Seq2[string, error]) (*api.Intake, error) {
	for line := range lines {
		d.urls = append(d.urls, line)
	}
	return &api.Intake{Added: len(d.urls), Refused: 1, Refusals: []api.Refusal{{URLs: 1, Rule: d.why, Example: d.why}}}, d.refuse
}

func (d *script) known(name string) api.Host {
	h := api.Host{Host: name, State: "waiting", Why: d.why, DueAt: time.Now().Add(time.Minute), LastStatus: 200, Median: api.Milliseconds(2 * time.Second),
		Origins: []string{"https://" + name, "http://" + name}, Robots: "rules", RobotsFetched: time.Now().Add(-time.Hour),
		Override: map[string]any{"delay": d.why}}
	h.Queued = 7
	if len(d.brakes) > 0 {
		h.Brake = &d.brakes[0]
	}
	return h
}

func (d *script) Hosts(_ context.Context, _ string, q api.HostQuery) (*api.HostPage, error) {
	d.asked = q
	p := &api.HostPage{At: time.Now(), Total: 100000, Offset: q.Offset, States: map[string]int{"waiting": 100000}}
	for range min(q.Limit, p.Total-q.Offset) {
		p.Hosts = append(p.Hosts, d.known(d.host))
	}
	return p, nil
}

func (d *script) Host(_ context.Context, _, host string) (*api.HostDetail, error) {
	if host != d.host {
		return nil, api.NotFound("the crawl has not met %s", host)
	}
	h := &api.HostDetail{Host: d.known(host)}
	h.Refusals = []api.Refusal{{URLs: 3, Why: "robots", Rule: d.why, Line: 2, File: d.why, Example: d.why}}
	h.Visits = []api.LiveVisit{{URL: d.why, Kind: "page", Since: time.Now()}}
	return h, nil
}

func (d *script) Explain(_ context.Context, _, text string) (*api.Explanation, error) {
	u, err := decorum.ParseURL(text)
	if err != nil {
		return nil, api.Invalid("%w", err)
	}
	e := &api.Explanation{Input: text, URL: u.String(), Steps: []api.Rewriting{{Step: "canonical", URL: u.String(), Why: []string{d.why}}},
		Visit: api.ExplainedVisit{When: "never", Why: d.why}}
	e.Robots.Outcome, e.Robots.Reason = "rules", d.why
	e.Robots.Explanation = robots.Parse([]byte(d.robots), robots.Google).For(robots.Named("examplebot")).Explain(u)
	e.Robots.Judged, e.Robots.SHA256 = &e.Robots.Allowed, "abcdef0123456789"
	return e, nil
}

func (d *script) Report(context.Context, string, api.ReportQuery) (*api.Report, error) {
	return &api.Report{Refusals: []api.Refusal{{URLs: 3, Why: "robots", Rule: d.why, Line: 2, File: d.why, Example: d.why}}}, nil
}

func (d *script) Robots(_ context.Context, _, origin, version string) (*api.RobotsFile, error) {
	f := &api.RobotsFile{Origin: origin, Outcome: "rules", Fetched: time.Now(), SHA256: "abcdef0123456789", Bytes: len(d.robots),
		Text: strings.ToValidUTF8(d.robots, "\uFFFD"), History: []api.RobotsVersion{{SHA256: "abcdef0123456789", Fetched: time.Now()}, {SHA256: "fedcba9876543210", Fetched: time.Now()}}}
	if version == f.History[1].SHA256 {
		f.SHA256, f.Text = version, d.old
	}
	return f, nil
}

func (d *script) Visits(context.Context, string) ([]api.LiveVisit, error) {
	return []api.LiveVisit{{URL: d.why, Kind: "page", Since: time.Now()}}, nil
}

func (d *script) Throughput(context.Context, string, bool) ([]api.Sample, error) {
	return []api.Sample{{At: time.Now().Add(-time.Second), Pages: 3}}, nil
}

func (d *script) Brakes(context.Context) ([]api.Brake, error) { return d.brakes, nil }

func (d *script) SetBrake(_ context.Context, b api.Brake) error {
	d.brakes = append(d.brakes, b)
	return d.did("brake %s", b.Host)
}

func (d *script) LiftBrake(_ context.Context, host string) error { return d.did("lift %s", host) }

func (d *script) Ready(context.Context) error { return nil }

func (d *script) About() api.About {
	return api.About{Version: "1.2.3", Products: []api.Product{{Token: d.project.Name + "bot", UserAgent: d.project.UserAgent, Contact: d.why}}}
}

// Tokens of the tests.
const (
	operateToken = "a-token-that-may-operate"
	readToken    = "a-token-that-may-read"
)

// A browser looks at the page of a daemon, logged in, through the real server.
type browser struct {
	t       *testing.T
	client  *http.Client
	base    string
	checked map[string]bool // assets
}

// open serves the page of a daemon, and logs in to it; with an empty token it does
// not.
func open(t *testing.T, d api.Daemon, token string) *browser {
	t.Helper()
	return openPage(t, d, token, page.New)
}

// openPage does what open does, with the page that newPage returns.
func openPage(t *testing.T, d api.Daemon, token string, newPage func(api.Daemon, *api.Audit) http.Handler) *browser {
	t.Helper()
	audit, err := api.OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), api.AuditConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { audit.Close() })
	server := httptest.NewServer(api.NewServer(d, api.Config{Audit: audit, Page: newPage(d, audit),
		Keys: []api.Key{api.NewKey("anna", api.Operate, operateToken), api.NewKey("ben", api.Read, readToken)}}))
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

// An answer is a page, or what is there instead.
type answer struct {
	status int
	path   string // where redirects have led
	text   string
	header http.Header
}

func (b *browser) send(r *http.Request) answer {
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
	if res.StatusCode == http.StatusInternalServerError { // a template cannot be executed
		b.t.Errorf("%s %s: %s", r.Method, r.URL.RequestURI(), text)
	}
	return answer{res.StatusCode, res.Request.URL.RequestURI(), string(text), res.Header}
}

func (b *browser) get(path string) answer {
	b.t.Helper()
	r, err := http.NewRequest("GET", b.base+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.send(r)
}

func (b *browser) post(path string, form url.Values) answer {
	b.t.Helper()
	r, err := http.NewRequest("POST", b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.base)
	return b.send(r)
}

// document parses a page.
func (a answer) document(t *testing.T) *html.Node {
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

// elements are those of a page with that name.
func elements(doc *html.Node, name string) (list []*html.Node) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			list = append(list, n)
		}
	}
	return list
}

// textOf returns all text of an element, blanks folded.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
