package ledger

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// TestHolds: a ledger that was continued has a record that a reader kept. A ledger that
// was written from the start again does not, although its chain is right.
func TestHolds(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	sample(t, dir, 1)
	early := verify(t, dir).Last
	// The rewritten ledger has the same records but for one, and a chain of its own.
	files := readAll(t, dir)
	all := linesOf(t, files)
	for name := range all {
		for i, line := range all[name] {
			all[name][i] = []byte(strings.Replace(string(line), `"bytes":1234`, `"bytes":1235`, 1))
		}
	}
	rechain(all)
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	restate(t, files, all)
	become(t, other, readAll(t, dir), files)
	holds, err := ParseHolds([]byte("# kept\n\n" + early.String() + "\n"))
	if err != nil || !slices.Equal(holds, []Hold{early}) {
		t.Fatalf("%v, %v", holds, err)
	}
	longer := Hold{early.N + 1, early.Hash}
	for _, tt := range []struct {
		name, dir string
		holds     []Hold
		held      int
		finds     string
	}{
		{"the ledger", dir, holds, 1, ""},
		{"a rewritten one", other, holds, 0, "is not the one that is held"},
		{"one that ends before", dir, []Hold{early, longer}, 1, "and is not there"},
	} {
		report, err := Verify(tt.dir, VerifyOptions{Holds: tt.holds})
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(report.Findings, func(f Finding) bool { return strings.Contains(f.What, "held") && strings.Contains(f.What, tt.finds) })
		if report.Held != tt.held || found != (tt.finds != "") {
			t.Errorf("%s: %d are held, found %v; want %d, %q", tt.name, report.Held, report.Findings, tt.held, tt.finds)
		}
	}
	if report, err := Verify(other, VerifyOptions{}); err != nil || !report.OK() {
		t.Errorf("the rewritten one is found out without a hold, so that this proves nothing: %+v, %v", report, err)
	}
}

// TestParseHolds: text that is not a Hold is an error that names the line.
func TestParseHolds(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, bad := range []string{"", "# none\n", "x " + hash, "0 " + hash, "1", "1 abc", "7 " + hash + " more", `{"hash":"` + hash + `"}`, hash} {
		if holds, err := ParseHolds([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, holds)
		}
	}
	dir := t.TempDir()
	sample(t, dir, 1)
	files := readAll(t, dir)
	for name, lines := range linesOf(t, files) {
		for _, line := range lines[:1] {
			holds, err := ParseHolds(line)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if report, err := Verify(dir, VerifyOptions{Holds: holds}); err != nil || report.Held != 1 || !report.OK() {
				t.Errorf("%s: the first record is not held: %+v, %v", name, report, err)
			}
		}
	}
	if _, err := ParseHolds([]byte("1 " + hash + "\n2 x\n")); err == nil || !strings.HasPrefix(err.Error(), "line 2:") {
		t.Errorf("%v", err)
	}
}

// A robotsVisit is a request for a robots.txt, and the status of its answer.
type robotsVisit struct {
	url, referrer string
	status        int // 0: it has no answer, and the process is killed
}

// TestRobotsRedirects: a page that is labelled as a robots.txt is found out, and one that
// a recorded redirect leads to is not.
func TestRobotsRedirects(t *testing.T) {
	const home, file = "http://h0.test", "http://h0.test/robots.txt"
	for _, tt := range []struct {
		name   string
		visits []robotsVisit
		wrong  string // the URL of the finding
	}{
		{"at its origin", []robotsVisit{{file, "", 200}}, ""},
		{"a redirect", []robotsVisit{{file, "", 301}, {"https://h1.test/r", file, 200}}, ""},
		{"two redirects", []robotsVisit{{file, "", 302}, {"http://h1.test/r", file, 307}, {"http://h2.test/", "http://h1.test/r", 404}}, ""},
		{"an answer that was lost", []robotsVisit{{file, "", 0}, {"http://h1.test/r", file, 200}}, ""},
		{"a page", []robotsVisit{{home + "/closed/a", home + "/", 200}}, home + "/closed/a"},
		{"a page after a good answer", []robotsVisit{{file, "", 200}, {home + "/closed/a", file, 200}}, home + "/closed/a"},
		{"a page with another's redirect", []robotsVisit{{"http://h1.test/robots.txt", "", 301}, {home + "/closed/a", "http://h1.test/robots.txt", 200}}, home + "/closed/a"},
	} {
		for _, shared := range []bool{false, true} {
			report := visitRobots(t, tt.visits, shared)
			found := report.Findings
			if shared {
				found = report.Warnings
			}
			has := slices.ContainsFunc(found, func(f Finding) bool {
				return strings.Contains(f.What, tt.wrong+": it is asked for as the robots.txt of "+home)
			})
			if has != (tt.wrong != "") || shared && !report.OK() || !shared && tt.wrong == "" && !report.OK() {
				t.Errorf("%s, shared %v: found %v, warnings %v", tt.name, shared, report.Findings, report.Warnings)
			}
		}
	}
}

// visitRobots writes a ledger of requests for robots.txt files, and verifies it.
func visitRobots(t *testing.T, visits []robotsVisit, shared bool) *Report {
	dir := filepath.Join(t.TempDir(), "ledger")
	synctest.Test(t, func(t *testing.T) {
		run := testRun()
		run.Shared = shared
		cfg := Config{Dir: dir, Run: run, Key: testKey}
		w := &writer{t: t, l: open(t, cfg)}
		for _, v := range visits {
			origin := "http://h0.test"
			if v.referrer == "" {
				origin = strings.TrimSuffix(v.url, "/robots.txt")
			}
			n := w.append(Record{Request: &Request{URL: v.url, Kind: RobotsTXT, Origin: origin,
				Source: storage.Robots.String(), Referrer: v.referrer, RequiredMS: 60_000, ObservedMS: 60_000, Slots: 1}})
			if v.status == 0 {
				kill(t, w.l)
				w.l = open(t, cfg)
			} else {
				w.append(Record{Answer: &Answer{Request: n, End: w.l.cfg.now(), Status: v.status}})
			}
			time.Sleep(time.Minute)
		}
		if err := w.l.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return verify(t, dir)
}
