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

// A ledger that was continued has a record that a reader kept. A ledger that was rewritten from the start
// does not have it, although its chain is right.
func TestExpectedRecords(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	writeSample(t, dir, 1)
	early := verifySigned(t, dir).LastRecordHash
	// The rewritten ledger differs in one record, and has the chain that follows from that.
	files := readFiles(t, dir)
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
	fixSegmentHashes(t, files, all)
	replaceFiles(t, other, readFiles(t, dir), files)
	hashes, err := ParseRecordHashes([]byte("# kept\n\n" + early.String() + "\n"))
	if err != nil || !slices.Equal(hashes, []ExpectedRecordHash{early}) {
		t.Fatalf("%v, %v", hashes, err)
	}
	missing := ExpectedRecordHash{early.Number + 1, early.Hash}
	for _, tt := range []struct {
		name, dir  string
		hashes     []ExpectedRecordHash
		foundCount int
		want       string
	}{
		{"the ledger", dir, hashes, 1, ""},
		{"a rewritten one", other, hashes, 0, "is not the kept record"},
		{"one that ends before", dir, []ExpectedRecordHash{early, missing}, 1, "and is missing"},
	} {
		report, err := Verify(tt.dir, VerifyOptions{ExpectedRecordHashes: tt.hashes})
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(report.Findings, func(f Finding) bool {
			return strings.Contains(f.Message, "kept") && strings.Contains(f.Message, tt.want)
		})
		if report.ExpectedHashesFound != tt.foundCount || found != (tt.want != "") {
			t.Errorf("%s: %d kept records are in the ledger, found %v; want %d, %q", tt.name,
				report.ExpectedHashesFound, report.Findings, tt.foundCount, tt.want)
		}
	}
	if report, err := Verify(other, VerifyOptions{}); err != nil || !report.OK() {
		t.Errorf("the rewritten ledger has findings even without a kept record: %+v, %v", report, err)
	}
}

// ParseRecordHashes parses numbers with hashes, and records. It returns an error that names the line of
// anything else.
func TestParseRecordHashes(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, bad := range []string{"", "# none\n", "x " + hash, "0 " + hash, "1", "1 abc", "7 " + hash + " more",
		`{"hash":"` + hash + `"}`, hash} {
		if hashes, err := ParseRecordHashes([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, hashes)
		}
	}
	dir := t.TempDir()
	writeSample(t, dir, 1)
	files := readFiles(t, dir)
	for name, lines := range linesOf(t, files) {
		for _, line := range lines[:1] {
			hashes, err := ParseRecordHashes(line)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if report, err := Verify(dir, VerifyOptions{ExpectedRecordHashes: hashes}); err != nil ||
				report.ExpectedHashesFound != 1 || !report.OK() {
				t.Errorf("%s: the first record is not in the ledger: %+v, %v", name, report, err)
			}
		}
	}
	if _, err := ParseRecordHashes([]byte("1 " + hash + "\n2 x\n")); err == nil ||
		!strings.HasPrefix(err.Error(), "line 2:") {
		t.Errorf("%v", err)
	}
}

// A robotsVisit is a request for a robots.txt, and the status of its response.
type robotsVisit struct {
	url, referrer string
	status        int // 0: the process is killed before the response
}

// A page that is labelled as a robots.txt is a finding, unless a recorded redirect may lead to it. In a
// shared crawl it is a warning.
func TestRobotsRedirects(t *testing.T) {
	const home, file = "http://h0.test", "http://h0.test/robots.txt"
	for _, tt := range []struct {
		name    string
		visits  []robotsVisit
		wantURL string // the URL of the finding
	}{
		{"at its origin", []robotsVisit{{file, "", 200}}, ""},
		{"a redirect", []robotsVisit{{file, "", 301}, {"https://h1.test/r", file, 200}}, ""},
		{"two redirects", []robotsVisit{{file, "", 302}, {"http://h1.test/r", file, 307},
			{"http://h2.test/", "http://h1.test/r", 404}}, ""},
		{"an answer that was lost", []robotsVisit{{file, "", 0}, {"http://h1.test/r", file, 200}}, ""},
		{"a page", []robotsVisit{{home + "/closed/a", home + "/", 200}}, home + "/closed/a"},
		{"a page after a good answer", []robotsVisit{{file, "", 200}, {home + "/closed/a", file, 200}},
			home + "/closed/a"},
		{"a page with another's redirect", []robotsVisit{{"http://h1.test/robots.txt", "", 301},
			{home + "/closed/a", "http://h1.test/robots.txt", 200}}, home + "/closed/a"},
	} {
		for _, shared := range []bool{false, true} {
			report := writeRobotsVisits(t, tt.visits, shared)
			found := report.Findings
			if shared {
				found = report.Warnings
			}
			has := slices.ContainsFunc(found, func(f Finding) bool {
				return strings.Contains(f.Message, tt.wantURL+": it was requested as the robots.txt of "+home)
			})
			if has != (tt.wantURL != "") || shared && !report.OK() || !shared && tt.wantURL == "" && !report.OK() {
				t.Errorf("%s, shared %v: found %v, warnings %v", tt.name, shared, report.Findings, report.Warnings)
			}
		}
	}
}

// writeRobotsVisits writes a ledger of requests for robots.txt files, and returns its report.
func writeRobotsVisits(t *testing.T, visits []robotsVisit, shared bool) *VerifyReport {
	dir := filepath.Join(t.TempDir(), "ledger")
	synctest.Test(t, func(t *testing.T) {
		run := testRun()
		run.SharedCrawl = shared
		cfg := Config{Dir: dir, RunStart: run, SigningKey: testKey}
		w := &sampleWriter{t: t, ledger: openLedger(t, cfg)}
		for _, v := range visits {
			origin := "http://h0.test"
			if v.referrer == "" {
				origin = strings.TrimSuffix(v.url, "/robots.txt")
			}
			n := w.appendRecord(Record{Request: &Request{URL: v.url, Kind: KindRobotsTXT, Origin: origin,
				URLSource: storage.SourcePrerequisite.String(), Referrer: v.referrer, RequiredDelayMS: 60_000,
				ObservedDelayMS: 60_000, Slots: 1}})
			if v.status == 0 {
				closeAsKilled(t, w.ledger)
				w.ledger = openLedger(t, cfg)
			} else {
				w.appendRecord(Record{Response: &Response{RequestNumber: n,
					EndedAt: w.ledger.cfg.now(), Status: v.status}})
			}
			time.Sleep(time.Minute)
		}
		if err := w.ledger.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return verifySigned(t, dir)
}
