package cli

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// An apiFixture is a commandFixture with the API served.
type apiFixture struct {
	*commandFixture
	server *httptest.Server
	token  string
	audit  *api.AuditLog
}

// startAPI starts the daemon of a farm, and serves its API.
func (f *commandFixture) startAPI() *apiFixture {
	f.T.Helper()
	f.Start(true)
	audit, err := api.OpenAuditLog(filepath.Join(f.Dir, "audit.jsonl"), api.AuditRotationLimits{})
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(func() { audit.Close() })
	s := &apiFixture{commandFixture: f, token: "a-token-of-the-tests", audit: audit}
	s.server = httptest.NewServer(api.NewServer(f.Supervisor, api.Config{APIKeys: []api.APIKey{api.APIKeyFromToken("operator", api.RoleOperate, s.token)}, AuditLog: audit}))
	f.T.Cleanup(s.server.Close)
	return s
}

// runCommand calls a command that speaks to the daemon.
func (s *apiFixture) runCommand(args ...string) commandResult {
	s.T.Helper()
	file := filepath.Join(s.Dir, "the-token")
	if err := os.WriteFile(file, []byte(s.token+"\n"), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return runCommand(s.T, append(args, "--server", s.server.URL, "--token-file", file)...)
}

func TestBrakeCommand(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 1000), daemontest.ChainSite("b.example", 1000))
	for _, name := range []string{"a", "b"} {
		f.PutProjectFile(name, f.ProjectYAML("http://"+name+".example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	}
	s := f.startAPI()
	for _, name := range []string{"a", "b"} {
		daemontest.WaitUntil(t, name+" visits pages", func() bool { return f.GetProject(name).Stats.Pages > 2 })
	}
	s.runCommand("brake").want(t, ExitDone, "no brake is on")
	s.runCommand("brake", "A.example", "--reason", "they wrote").want(t, ExitDone, "a.example: stopped, until it is lifted")
	at := time.Now()
	before := f.GetProject("b").Stats.Pages
	daemontest.WaitUntil(t, "the other host is visited on", func() bool { return f.GetProject("b").Stats.Pages > before+5 })
	for _, x := range f.Web.Log() {
		if x.Start.After(at) && strings.HasPrefix(x.URL, "http://a.example/") {
			t.Errorf("%s was asked for %v after the brake was on", x.URL, x.Start.Sub(at))
		}
	}
	s.runCommand("brake", "b.example", "--domain", "--delay", "30s", "--for", "2h", "--reason", "a sale").want(t, ExitDone, "*.b.example: a visit every 30s, until 2")
	s.runCommand("brake").want(t, ExitDone, "HOST", "a.example", "they wrote", "*.b.example", "a sale", "operator")
	pages := f.GetProject("a").Stats.Pages
	s.runCommand("brake", "a.example", "--lift", "--reason", "it is fine").want(t, ExitDone, "no brake any more")
	daemontest.WaitUntil(t, "a is visited again", func() bool { return f.GetProject("a").Stats.Pages > pages })
}

func TestBrakeCommandIsRefused(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, says string }{
		{"a.example", "--reason is compulsory"},
		{"a.example --reason x --stop --delay 3s", "either stops or slows"},
		{"a.example --reason x --lift --delay 3s", "leave out the other flags"},
		{"a.example --reason x --delay soon", "is not a duration"},
		{"a/b --reason x", "is not the name of a host"},
		{"a.example --reason x --server nowhere", "is not a URL"},
		{"a.example --reason x --token-file /none", "cannot read the token"},
		{"a.example b.example", "accepts at most 1 arg"},
		{"--stop --reason x", "--stop: no HOST is named"},
		{"--lift", "--lift: no HOST is named"},
	} {
		args := append([]string{"brake", "--token-file", token}, strings.Fields(tt.args)...)
		runCommand(t, args...).want(t, ExitUsage, tt.says)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	runCommand(t, "brake", "--token-file", token, "--server", closed.URL).want(t, ExitFailed, "is decorum serve running?")
}

// startHungDaemon takes connections, each of which it tells of, and answers nobody.
func startHungDaemon(t *testing.T, onAccept func()) (server string) {
	return "http://" + startTCPServer(t, func(c net.Conn) {
		t.Cleanup(func() { c.Close() })
		onAccept()
	})
}

// A daemon that takes calls and answers none does not hold who calls: a signal ends
// the wait, and so does a time.
func TestHungDaemon(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"brake", "brake a.example --reason x", "top"} {
		signals := make(chan os.Signal, 10)
		// A daemon each: a connection may be kept from a call that was ended.
		server := startHungDaemon(t, func() { signals <- os.Interrupt })
		runCommandWithSignals(t, signals, append(strings.Fields(args), "--token-file", token, "--server", server)...).want(t, ExitStopped)
	}
	r := daemonClientOptions{serverURL: startHungDaemon(t, func() {}), tokenFile: token}
	c, err := r.newClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.HTTP.Timeout != clientTimeout {
		t.Errorf("it waits for %v", c.HTTP.Timeout)
	}
	c.HTTP.Timeout = time.Millisecond
	_, err = c.Brakes(t.Context())
	if err := r.explainError(t.Context(), err); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("after that time: %v", err)
	}
}

// TestReadKeys: a key that ends is heard though nobody takes the keys before it.
func TestReadKeys(t *testing.T) {
	keys, ended := make(chan byte, 2), false
	readKeypresses(strings.NewReader("jkjkjkq"), keys, func() { ended = true }, t.Context().Done())
	if !ended || len(keys) != 2 {
		t.Errorf("ended: %v, %d keys wait", ended, len(keys))
	}
}

// TestTop: what is no terminal gets what there is to see, once.
func TestTop(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("a", f.ProjectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	s := f.startAPI()
	daemontest.WaitUntil(t, "it visits pages", func() bool { return f.GetProject("a").Stats.Pages > 2 })
	s.runCommand("top").want(t, ExitDone, "projects: 1", "no rest was cut short", ">  a", "running", "a.example", "in hand:", "no brake is on")
}

// A project that cannot be looked into does not hide the daemon's others.
func TestTopOfABadFile(t *testing.T) {
	f := newCommandFixture(t, daemontest.ChainSite("b.example", 1000))
	f.PutProjectFile("a", "project: a\nwhither: there\n")
	f.PutProjectFile("b", f.ProjectYAML("http://b.example/0"))
	f.startAPI().runCommand("top").want(t, ExitDone, ">  a", "b  ", "a cannot be looked into: a has no project file that makes sense", `unknown field "…"`, "no brake is on")
}

// TestTopRender pins what is shown of a daemon, and that what strangers wrote does
// not play with the terminal.
func TestTopRender(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
	v := daemonSnapshot{
		selectedProject: "books",
		projects: []api.Project{
			{Name: "books", State: api.StateRunning, RecentThroughput: api.ThroughputSample{PagesPerSecond: 2.5}, Stats: api.ProjectStats{Pages: 100, Errors: 3}, FrontierCounts: api.FrontierCounts{QueuedHosts: 2, DueHosts: 1, QueuedURLs: 40}},
			{Name: "news", State: api.StateFailed, StateReason: "no \x1b[2Jroom"},
		},
		throughputSamples: []api.ThroughputSample{{PagesPerSecond: 0}, {PagesPerSecond: 1}, {PagesPerSecond: 4}, {PagesPerSecond: 2}},
		hostListPage:      &api.HostListPage{Hosts: []api.Host{{Host: "a.example", State: "due", CrawlDelay: api.Milliseconds(2 * time.Second), LastStatus: 200}}},
		activeVisits:      []api.ActiveVisit{{URL: "http://a.example/x", RequestedAt: now.Add(-1500 * time.Millisecond)}},
		brakes:            []api.Brake{{Host: "b.example", Stop: true, Reason: "asked to", By: "operator", Since: now}},
	}
	want := `decorum, 2026-11-22 03:04:05Z   projects: 2   no rest was cut short

   PROJECT  STATE    PAGES/S  PAGES  ERRORS  HOSTS  DUE  QUEUED  
>  books    running  2.5      100    3       2      1    40      
   news     failed   0.0      0      0       0      0    0       no �[2Jroom

books, pages a second: ▁▂█▄  (most: 4.0)

HOST       STATE  QUEUED  DECLARED  CONFIGURED  MEDIAN  LAST  FAILED
a.example  due    0       2s        0s          0s      200   0

in hand: 1
    1.5s  http://a.example/x

HOST       DOES     UNTIL               BY        SINCE                 REASON
b.example  stopped  until it is lifted  operator  2026-11-22 03:04:05Z  asked to
`
	if got := v.render(now).String(); got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
	if got := (daemonSnapshot{}).render(now).String(); !strings.Contains(got, "projects: 0") {
		t.Errorf("of nothing it shows\n%s", got)
	}
}

// TestLongTokenFile: a file that cannot be a token's is wrong usage.
func TestLongTokenFile(t *testing.T) {
	long := testfile.Write(t, "long", strings.Repeat("x", inputfile.MaxSmallBytes+1))
	runCommand(t, "top", "--token-file", long).want(t, ExitUsage, long+" is longer than 1048576 bytes")
}
