package cli

import (
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
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

// startAPI starts the fixture's daemon and serves its API.
func (f *commandFixture) startAPI() *apiFixture {
	f.T.Helper()
	f.Start(true)
	audit, err := api.OpenAuditLog(filepath.Join(f.Dir, "audit.jsonl"), api.AuditRotationLimits{})
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(func() { audit.Close() })
	s := &apiFixture{commandFixture: f, token: "a-token-of-the-tests", audit: audit}
	s.server = httptest.NewServer(api.NewServer(f.Supervisor,
		api.ServerConfig{APIKeys: []api.APIKey{api.APIKeyFromToken("operator", api.RoleOperate, s.token)},
			AuditLog: audit}))
	f.T.Cleanup(s.server.Close)
	return s
}

// runCommand runs a command that calls the daemon.
func (s *apiFixture) runCommand(args ...string) commandResult {
	s.T.Helper()
	return runCommand(s.T, append(args, "--server", s.server.URL, "--token-file", s.writeToken())...)
}

// writeToken writes the token to a file and returns the file's name.
func (s *apiFixture) writeToken() string {
	s.T.Helper()
	file := filepath.Join(s.Dir, "the-token")
	if err := os.WriteFile(file, []byte(s.token+"\n"), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return file
}

func TestBrakeCommand(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 1000), daemontest.ChainSite("b.example", 1000))
	for _, name := range []string{"a", "b"} {
		f.PutProjectFile(name, f.ProjectYAML("http://"+name+".example/0", "politeness: {delay: 20ms, adaptive: 0}",
			"scope: {max_depth: 2000}"))
	}
	s := f.startAPI()
	for _, name := range []string{"a", "b"} {
		daemontest.WaitUntil(t, name+" visits pages", func() bool { return f.GetProject(name).Stats.Pages > 2 })
	}
	s.runCommand("brake").want(t, command.ExitDone, "no brake is on")
	s.runCommand("brake", "A.example", "--reason", "they wrote").want(t, command.ExitDone,
		"a.example: stopped, until it is lifted")
	at := time.Now()
	before := f.GetProject("b").Stats.Pages
	daemontest.WaitUntil(t, "the other host is visited on", func() bool {
		return f.GetProject("b").Stats.Pages > before+5
	})
	var late []string
	for _, x := range f.Web.Log() {
		if x.Start.After(at) && strings.HasPrefix(x.URL, "http://a.example/") {
			late = append(late, fmt.Sprint(x.URL, " after ", x.Start.Sub(at)))
		}
	}
	if len(late) > 1 { // one request may have been under way when the brake was set
		t.Errorf("requests came after the brake was on: %q", late)
	}
	s.runCommand("brake", "b.example", "--domain", "--delay", "30s", "--for", "2h", "--reason", "a sale").want(t,
		command.ExitDone, "*.b.example: a visit every 30s, until 2")
	s.runCommand("brake").want(t, command.ExitDone, "HOST", "a.example", "they wrote",
		"*.b.example", "a sale", "operator")
	pages := f.GetProject("a").Stats.Pages
	s.runCommand("brake", "a.example", "--lift", "--reason", "it is fine").want(t, command.ExitDone, "no brake now")
	daemontest.WaitUntil(t, "a is visited again", func() bool { return f.GetProject("a").Stats.Pages > pages })
}

// TestControlCommands starts, pauses, stops and reloads projects of a daemon, which the commands find by its
// data directory, or by that of a project.
func TestControlCommands(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 1000))
	valid := f.ProjectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}")
	f.PutProjectFile("a", valid)
	f.PutProjectFile("b", f.ProjectYAML("http://a.example/0"))
	f.Start(false)
	f.serveSocket()
	data := "--data=" + string(f.Supervisor.DataDir)
	run := func(code int, commandLine string, says ...string) {
		t.Helper()
		runCommand(t, append(strings.Fields(commandLine), data)...).want(t, code, says...)
	}
	run(command.ExitUsage, "start a project", `the daemon has no project "project": it has a, b`)
	run(command.ExitUsage, "report --project project", `the daemon has no project "project": it has a, b`)
	run(command.ExitUsage, "frontier stats --project c", `the daemon has no project "c": did you mean a or b? it has a, b`)
	if s := f.GetProject("a").State; s != api.StateStopped {
		t.Errorf("with the wrong name of another project, a is %s; want stopped", s)
	}
	run(command.ExitUsage, "pause", "PROJECT is missing, as in decorum pause books ")
	run(command.ExitDone, "start a", "a: running")
	f.WaitForState("a", api.StateRunning)
	run(command.ExitFailed, "pause b a", "b is stopped: only a running project can pause", "a: paus")
	f.WaitForState("a", api.StatePaused)
	data = "--data=" + f.Supervisor.DataDir.Path(filepath.Join(datadir.ProjectsDir, "a"))
	run(command.ExitDone, "start a", "a: running")
	run(command.ExitDone, "top", ">  a")
	f.PutProjectFile("a", "whither: there\nlimits: {pages: -1}\n")
	run(command.ExitDone, "start a", "a: running; it follows its last valid file, because the present one is invalid: ",
		" errors:\n  ", "a.yaml:1:1: unknown field whither; expected one of ", "a.yaml:2:17: limits.pages: -1 is out")
	f.PutProjectFile("a", valid)
	run(command.ExitDone, "stop a --reason maintenance", "a: ")
	f.WaitForState("a", api.StateStopped)
	if audit, err := os.ReadFile(f.Supervisor.DataDir.Path(datadir.AuditFile)); err != nil ||
		!strings.Contains(string(audit), `"reason":"maintenance"`) {
		t.Errorf("the audit has %s, %v; want the reason of the last command", audit, err)
	}
	run(command.ExitDone, "reload", "a: unchanged", "b: unchanged")
	f.PutProjectFile("b", "whither: there\n")
	f.PutProjectFile("c", f.ProjectYAML("http://a.example/0"))
	run(command.ExitDone, "reload c", "c: ") // new, unless the daemon has read the file already
	run(command.ExitUsage, "reload", "b: refused: ", "b.yaml:1:1: unknown field", "project files refused: 1")
	run(command.ExitUsage, "stop d", `the daemon has no project "d": did you mean a or b or c? it has a, b, c`)
}

// TestTokenRotateCommand replaces the tokens of a daemon while it runs.
func TestTokenRotateCommand(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t)
	f.Start(false)
	f.serveSocket()
	dir := f.Supervisor.DataDir
	read := func(file string) string {
		t.Helper()
		info, err := os.Stat(dir.Path(file))
		text, err2 := os.ReadFile(dir.Path(file))
		if err := errors.Join(err, err2); err != nil || info.Mode() != 0o600 {
			t.Fatalf("%s has the mode %v: %v", file, info.Mode(), err)
		}
		return string(text)
	}
	operate, readOnly := read(server.TokenFile), read(server.ReadTokenFile)
	oldFile := testfile.Write(t, "old", operate)
	topWith := func(tokenFile string, code int, says string) {
		t.Helper()
		runCommand(t, "top", "--server", dir.DaemonURL(), "--token-file", tokenFile).want(t, code, says)
	}
	topWith(oldFile, command.ExitDone, "projects: 0")
	runCommand(t, "token", "rotate", "--data", string(dir), "--reason", "leaked").want(t, command.ExitDone,
		"token is replaced", dir.Path(server.TokenFile))
	if now := read(server.TokenFile); now == operate || len(now) < 20 || read(server.ReadTokenFile) != readOnly {
		t.Errorf("token is %q after %q, token-read %q after %q", now, operate, read(server.ReadTokenFile), readOnly)
	}
	topWith(oldFile, command.ExitFailed, "the token is not valid for this daemon")
	topWith(dir.Path(server.TokenFile), command.ExitDone, "projects: 0")
	// A caller by the address may replace tokens as well, with the role operate.
	byAddress := func(tokenFile string) commandResult {
		return runCommand(t, "token", "rotate", "--role=read", "--server", dir.DaemonURL(), "--token-file", tokenFile)
	}
	byAddress(dir.Path(server.ReadTokenFile)).want(t, command.ExitFailed, "this call needs the role operate")
	byAddress(dir.Path(server.TokenFile)).want(t, command.ExitDone, "token-read is replaced")
	if read(server.ReadTokenFile) == readOnly {
		t.Error("token-read is unchanged")
	}
	runCommand(t, "token", "rotate", "--role=all").want(t, command.ExitUsage, `"all" is not one of operate, read`)
}

// The commands that control a daemon refuse a crawl in the foreground, though its directory has a socket too.
func TestControlCommandOfForegroundCrawl(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	l, err := lockUntilEnd(t, dir).ListenSocket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	runCommand(t, "stop", "a", "--data", string(dir)).want(t, command.ExitUsage, "a crawl in the foreground")
}

func TestBrakeCommandIsRefused(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, says string }{
		{"a.example", "--reason is required"},
		{"a.example --reason x --stop --delay 3s", "either stops or slows"},
		{"a.example --reason x --lift --delay 3s", "leave out the other flags"},
		{"a.example --reason x --delay soon", "is not a duration"},
		{"a/b --reason x", "is not a host name such as example.com"},
		{"a.example --reason x --server nowhere", "is not a URL"},
		{"a.example --reason x --token-file /none", "cannot read the token"},
		{"a.example b.example", `unexpected argument "b.example"`},
		{"--stop --reason x", "--stop: HOST is missing"},
		{"--lift", "--lift: HOST is missing"},
	} {
		args := append([]string{"brake", "--token-file", token}, strings.Fields(tt.args)...)
		runCommand(t, args...).want(t, command.ExitUsage, tt.says)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	runCommand(t, "brake", "--token-file", token, "--server", closed.URL).want(t, command.ExitFailed,
		"is decorum serve running?")
}

// startHungDaemon starts a server that accepts connections, signals each, and never answers.
func startHungDaemon(t *testing.T, onAccept func()) (server string) {
	return "http://" + startTCPServer(t, func(c net.Conn) {
		t.Cleanup(func() { c.Close() })
		onAccept()
	})
}

// A signal ends a command that waits for a daemon which never answers.
func TestHungDaemon(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"brake", "brake a.example --reason x", "top"} {
		signals := make(chan os.Signal, 10)
		// Each case has its own daemon: a connection of a cancelled call may stay open.
		server := startHungDaemon(t, func() { signals <- os.Interrupt })
		runCommandWithSignals(t, signals,
			append(strings.Fields(args), "--token-file", token, "--server", server)...).want(t, command.ExitStopped)
	}
}

// TestTop checks that decorum top prints the daemon's state once if the output is not a terminal.
func TestTop(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("a", f.ProjectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}",
		"scope: {max_depth: 2000}"))
	s := f.startAPI()
	daemontest.WaitUntil(t, "it visits pages", func() bool { return f.GetProject("a").Stats.Pages > 2 })
	s.runCommand("top").want(t, command.ExitDone, "projects: 1", "no delay was cut short", ">  a", "running",
		"a.example", "in flight:", "no brake is on")
}

// A project that cannot be inspected does not hide the daemon's other projects.
func TestTopOfABadFile(t *testing.T) {
	f := newCommandFixture(t, daemontest.ChainSite("b.example", 1000))
	f.PutProjectFile("a", "project: a\nwhither: there\n")
	f.PutProjectFile("b", f.ProjectYAML("http://b.example/0"))
	f.startAPI().runCommand("top").want(t, command.ExitDone, ">  a", "b  ",
		"cannot inspect a: a has no valid project file", `unknown field whither`, "no brake is on")
}

// TestLongTokenFile checks that a file too long to hold a token is wrong usage.
func TestLongTokenFile(t *testing.T) {
	long := testfile.Write(t, "long", strings.Repeat("x", inputfile.MaxSmallBytes+1))
	runCommand(t, "top", "--token-file", long).want(t, command.ExitUsage, long+" is longer than 1048576 bytes")
}
