package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// TestCompatDaemon starts a daemon on the state that a killed old daemon left. The running project
// continues, the paused and the stopped one stay paused and stopped, the brakes are on, and the tokens
// are the same.
func TestCompatDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemon is a separate process, and makes no visits at first")
	}
	t.Parallel()
	p := unpackOldState(t, "daemon")
	web := readWeb(t, p.killedAt)
	s := startWebServers(t, web)
	writeProjects(t, p, s)
	restart := time.Now()
	client, c, stderr := startDaemon(t, p, s)
	checkDaemonState(t, client)

	// A daemon visits no host in its first ten seconds: it cannot know which visits a kill hid.
	waitUntil(t, "the project continues", func() bool { return len(web.Log()) >= 4 })
	checkDaemonState(t, client)
	if code := interrupt(t, c); code != daemon.ExitStopped {
		t.Errorf("the daemon ended with exit code %d:\n%s", code, stderr)
	}
	log := web.Log()
	judgeRequests(t, web, p.requestLog, log, restart)
	for _, x := range log {
		host := parseURL(t, x.URL).Origin().Host()
		switch {
		case host == "many.example", host == "clean.example", host == "cookie.example", host == "frozen.example":
			t.Errorf("%s was requested: it has a brake on, is of a project that does not run, or is not due until 2083",
				x.URL)
		case x.Start.Before(restart.Add(10 * time.Second)):
			t.Errorf("%s was requested %v after the start", x.URL, x.Start.Sub(restart))
		}
	}
	if r := repeatedPageURLs(p.requestLog, log); len(r) > 0 {
		t.Errorf("requested again: %q", r)
	}
	for _, name := range []string{"going", "paused", "stopped"} {
		dir := p.path("data", "projects", name)
		readExport(t, runCommand(t, nil, daemon.ExitDone, "frontier", "export", "--data", dir))
	}
}

// repeatedPageURLs returns the pages that were requested again although they had been answered long
// before the kill. The project of the daemon does not revisit pages.
func repeatedPageURLs(before, after []crawltest.Exchange) (repeated []string) {
	answered := map[string]bool{}
	for _, x := range before[:len(before)*2/3] {
		answered[x.URL] = x.Status == 200 && !strings.HasSuffix(x.URL, "/robots.txt")
	}
	for _, x := range after {
		if answered[x.URL] {
			repeated = append(repeated, x.URL)
		}
	}
	return repeated
}

// writeProjects writes the project files with the addresses of this test's servers.
func writeProjects(t *testing.T, p oldState, s *webServer) {
	t.Helper()
	for _, name := range []string{"going", "paused", "stopped"} {
		text := string(readFile(t, filepath.Join("testdata", "past", "projects", name+".yaml")))
		text = strings.ReplaceAll(text, "$CONNECT_TO", "'"+strings.Join(s.connectToRules(), "', '")+"'")
		if err := os.WriteFile(p.path("projects", name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// startDaemon starts a daemon, and returns when it answers a client with the old token.
func startDaemon(t *testing.T, p oldState, s *webServer) (*api.Client, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(readFile(t, p.path("data", "token"))))
	c := newCommand(t, s, "serve", "--listen", listen, "--data", p.path("data"), "--projects", p.path("projects"),
		"--log-level=error")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	client := &api.Client{Server: "http://" + listen, Token: token}
	waitUntil(t, "the daemon answers", func() bool {
		_, err := client.Projects(context.Background())
		return err == nil
	})
	return client, c, &stderr
}

// checkDaemonState checks that the daemon has the brakes and the states of projects that were set
// before the kill.
func checkDaemonState(t *testing.T, client *api.Client) {
	t.Helper()
	want := map[string]api.ProjectState{"going": api.StateRunning, "paused": api.StatePaused,
		"stopped": api.StateStopped}
	projects, err := client.Projects(t.Context())
	if err != nil || len(projects) != len(want) {
		t.Fatalf("projects %+v, %v", projects, err)
	}
	for _, p := range projects {
		if p.State != want[p.Name] {
			t.Errorf("%s is %s, want %s: %s", p.Name, p.State, want[p.Name], p.StateReason)
		}
	}
	brakes, err := client.Brakes(t.Context())
	if err != nil || len(brakes) != 2 {
		t.Fatalf("brakes %+v, %v", brakes, err)
	}
	for _, b := range brakes {
		switch {
		case b.Host == "many.example" && b.Stop && b.Reason == "its owner asked":
		case b.Host == "tdm.example" && time.Duration(b.Delay) == 20*time.Second &&
			b.Reason == "its owner asked for less":
		default:
			t.Errorf("brake %+v", b)
		}
	}
}

// waitUntil waits until a condition is true, and ends the test if it does not become true in time.
func waitUntil(t *testing.T, description string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waiting in vain until %s", description)
		}
	}
}
