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

// resumeMaxTime is how long the command continues a crawl in these tests: each host gets its first
// visits, and hosts with a long Crawl-delay get no second one.
const resumeMaxTime = "4s"

// resumeArgs returns the arguments with which the command continues a crawl.
func (s *webServer) resumeArgs(p oldState) []string {
	args := []string{"crawl", "--resume", "--data", p.path("data"), "--warc", p.path("warc"),
		"--max-time=" + resumeMaxTime, "--progress=none", "--log-level=error"}
	for _, to := range s.connectToRules() {
		args = append(args, "--connect-to="+to)
	}
	return args
}

// TestCompatCommand checks that today's command continues, at the present time, a crawl that a killed
// old version left: everything that was due then is due now. A host that is due in 57 years gets no
// visit.
func TestCompatCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("the command is a separate process, and waits for hosts")
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

// appendTornLines appends half a line to the output and to the ledger, as a process does that is
// killed during a write.
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

// checkResume continues a crawl for a while, and checks how it uses the old state.
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
		t.Errorf("a queued form was sent %d times, want once", n["POST http://form.example/waiting"])
	}
	after := readExport(t, runCommand(t, nil, daemon.ExitDone, "frontier", "export", "--data", p.path("data")))
	checkNothingLost(t, before, after, countRequests(log))
	runCommand(t, nil, daemon.ExitDone, "report", "--data", p.path("data"))
	runCommand(t, nil, daemon.ExitDone, "ledger", "verify", "--data", p.path("data"))
}

// checkFrozenHost checks that the host that is due in 57 years got no visit.
func checkFrozenHost(t *testing.T, log []crawltest.Exchange) {
	t.Helper()
	if len(log) < 5 {
		t.Errorf("the resumed crawl made %d requests", len(log))
	}
	for _, x := range log {
		if strings.HasPrefix(x.URL, "http://frozen.example/") {
			t.Errorf("%s was requested, though its host is to be left alone until 2083", x.URL)
		}
	}
}

// checkOutputLines checks that each line of the output is JSON, and that the output has every answered
// page.
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
		own := strings.HasSuffix(x.URL, ".txt") || strings.HasSuffix(x.URL, ".xml") ||
			strings.HasSuffix(x.URL, "/tdmrep.json")
		page := x.Method == "GET" && x.Status == 200 && !x.Incomplete && !own
		if page && !lines[x.URL] {
			t.Errorf("%s was answered, and is not in the output", x.URL)
		}
	}
}

// TestCompatImport checks that today's command imports an export of the old version, that it rejects
// the state of an interrupted old import until the import is repeated, and that both crawls continue.
func TestCompatImport(t *testing.T) {
	if testing.Short() {
		t.Skip("the command is a separate process, and waits for hosts")
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

// interrupt ends a process by a signal, and returns its exit code.
func interrupt(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the caller checks the exit code
	return c.ProcessState.ExitCode()
}
