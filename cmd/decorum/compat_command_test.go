package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// resumeMaxTime is for how long the program goes on with a crawl in these tests: each host
// has its first visits, and those with a long Crawl-delay have no second one.
const resumeMaxTime = "4s"

// resumeArgs are the arguments with which the program goes on with a crawl.
func (s *webServer) resumeArgs(p oldState) []string {
	args := []string{"crawl", "--resume", "--data", p.path("data"), "--warc", p.path("warc"),
		"--max-time=" + resumeMaxTime, "--progress=none", "--log-level=error"}
	for _, to := range s.connectToRules() {
		args = append(args, "--connect-to="+to)
	}
	return args
}

// TestCompatCommand: today's program goes on with what a killed one left, now: whatever
// was due then is due. Of a host that rests for 57 years no page is visited.
func TestCompatCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("the program is a process of its own, and waits for hosts")
	}
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, oldState){
		"as it was left":          func(*testing.T, oldState) {},
		"with half written lines": appendTornLines,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := unpackOldState(t, "crawl")
			damage(t, p)
			checkResume(t, p, readExport(t, readCompressed(t, "export.jsonl.zst")))
			checkOutputLines(t, p)
		})
	}
}

// appendTornLines writes half a line to the output and to the ledger, as a process does that
// is killed while it writes.
func appendTornLines(t *testing.T, p oldState) {
	t.Helper()
	segments, err := filepath.Glob(p.path("data", "ledger", "ledger-*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %q, %v; want one that is not full", segments, err)
	}
	for _, file := range []string{p.path("data", "pages.jsonl"), segments[0]} {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(readFile(t, file), []byte("\n"))
		last := lines[len(lines)-2]
		if _, err := f.Write(last[:len(last)/2]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// checkResume goes on with a crawl for a while, and checks what it makes of the past.
func checkResume(t *testing.T, p oldState, before frontierExport) {
	t.Helper()
	web := readWeb(t, p.killedAt)
	s := startWebServers(t, web)
	restart := time.Now()
	runCommand(t, s, daemon.ExitStopped, s.resumeArgs(p)...)
	log := web.Log()
	judgeRequests(t, web, p.requestLog, log, restart)
	checkFrozenHost(t, log)
	if n := countRequests(log); n["POST http://form.example/waiting"] != 1 {
		t.Errorf("a form that waited was sent %d times, want once", n["POST http://form.example/waiting"])
	}
	after := readExport(t, runCommand(t, nil, daemon.ExitDone, "frontier", "export", "--data", p.path("data")))
	checkNothingLost(t, before, after, countRequests(log))
	runCommand(t, nil, daemon.ExitDone, "report", "--data", p.path("data"))
	runCommand(t, nil, daemon.ExitDone, "ledger", "verify", "--data", p.path("data"))
}

// checkFrozenHost checks that no page was visited that is due in 57 years.
func checkFrozenHost(t *testing.T, log []crawltest.Exchange) {
	t.Helper()
	if len(log) < 5 {
		t.Errorf("the crawl went on with %d requests", len(log))
	}
	for _, x := range log {
		if strings.HasPrefix(x.URL, "http://frozen.example/") {
			t.Errorf("%s was requested, though its host is to be left alone until 2083", x.URL)
		}
	}
}

// checkOutputLines checks that each line of the output is JSON, and that every page that
// was answered is in it.
func checkOutputLines(t *testing.T, p oldState) {
	t.Helper()
	files, err := filepath.Glob(p.path("data", "pages*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, file := range files {
		text := readFile(t, file)
		for line := range bytes.Lines(text) {
			var r struct{ URL string }
			if err := json.Unmarshal(line, &r); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
				t.Errorf("%s: a line that is no JSON: %q", file, line)
			}
			lines[r.URL] = true
		}
	}
	for _, x := range p.requestLog {
		own := strings.HasSuffix(x.URL, ".txt") || strings.HasSuffix(x.URL, ".xml") || strings.HasSuffix(x.URL, "/tdmrep.json")
		page := x.Method == "GET" && x.Status == 200 && !x.Incomplete && !own
		if page && !lines[x.URL] {
			t.Errorf("%s was answered, and is not in the output", x.URL)
		}
	}
}

// TestCompatImport: an export of then is imported now, an import that was broken off is
// refused and can be repeated, and both crawls go on.
func TestCompatImport(t *testing.T) {
	if testing.Short() {
		t.Skip("the program is a process of its own, and waits for hosts")
	}
	t.Parallel()
	export := readCompressed(t, "export.jsonl.zst")
	before := readExport(t, export)
	for _, name := range []string{"new", "broken off"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crawl := unpackOldState(t, "crawl")
			p := oldState{dir: t.TempDir(), killedAt: crawl.killedAt, requestLog: crawl.requestLog}
			if name == "broken off" {
				p.dir = unpackOldState(t, "import").dir
				runCommand(t, nil, daemon.ExitUsage, "crawl", "--resume", "--data", p.path("data"))
			}
			importExport(t, p, export)
			checkResume(t, p, before)
		})
	}
}

func importExport(t *testing.T, p oldState, export []byte, args ...string) {
	t.Helper()
	c := newCommand(t, nil, append([]string{"frontier", "import", "--data", p.path("data")}, args...)...)
	c.Stdin = bytes.NewReader(export)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("import: %v\n%s", err, out)
	}
}

// interrupt ends a process by a signal, and returns what it ends with.
func interrupt(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit code says it
	return c.ProcessState.ExitCode()
}
