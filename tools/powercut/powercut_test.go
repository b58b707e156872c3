package powercut

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/tools/powercut/disk"
)

// unflushedWindow is how old a visit may be that a power cut can undo: the store writes every
// 200 ms, and takes its time on a busy machine.
const unflushedWindow = 4 * time.Second

// cutsPerCrawl is how many power cuts one crawl has.
const cutsPerCrawl = 12

// TestPowerCuts: the power is cut while a crawl runs, time and again, and of what was
// not synced any part is on the disk. The crawl goes on after each cut and comes to its
// end: every page is in its output, which has whole lines alone; every host had its rest;
// and the ledger can be verified.
func TestPowerCuts(t *testing.T) {
	for crawl := range (*powerCuts + cutsPerCrawl - 1) / cutsPerCrawl {
		seed := *firstSeed + uint64(crawl)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testPowerCuts(t, seed, min(cutsPerCrawl, *powerCuts-crawl*cutsPerCrawl))
		})
	}
}

// testPowerCuts crawls a web to its end, with so many power cuts on the way.
func testPowerCuts(t *testing.T, seed uint64, cuts int) {
	m, rnd := newMachine(t), rand.New(rand.NewPCG(seed, 0))
	defer m.logRepeatFlags(fmt.Sprintf("-run TestPowerCuts -cuts %d -seed %d", cuts, seed))
	for cut := 0; ; cut++ {
		killAfter := time.Duration(0)
		if cut < cuts {
			killAfter = time.Duration(100+rnd.IntN(1200)) * time.Millisecond
		}
		r := m.runCrawl(killAfter)
		switch {
		case r.timedOut:
			t.Fatalf("the crawl was idle after %d cuts:\n%s", cut, r.stderr)
		case r.exitCode == 0:
			m.checkFinishedCrawl()
			return
		case r.exitCode > 0:
			t.Fatalf("the crawl cannot go on after %d cuts: %s", cut, r.lastLine())
		}
		m.cutPower(rnd)
	}
}

// checkFinishedCrawl checks a crawl that has come to its end.
func (m *machine) checkFinishedCrawl() {
	m.t.Helper()
	m.checkOutput()
	m.checkLedger()
	report := m.web.Judge(crawltest.JudgeOptions{
		MinDelay: hostDelay, RequiredProductToken: "decorum", RestartTimes: m.startTimes[1:], CrashLossWindow: unflushedWindow,
	})
	if !report.OK() {
		m.t.Errorf("the judge says:\n%s", report)
	}
}

// checkOutput checks that every page is in the output, and that its lines are whole.
func (m *machine) checkOutput() {
	m.t.Helper()
	if _, torn := m.outputURLs(); torn != "" {
		m.t.Errorf("a line of the output is not whole: %.80q", torn)
	}
	if missing := m.missingPages(); len(missing) > 0 {
		m.t.Errorf("%d pages are not in the output: %q", len(missing), missing)
	}
}

// outputURLs returns the URLs that are in the output, and a line that is not whole, if
// there is one.
func (m *machine) outputURLs() (urls map[string]bool, torn string) {
	urls = map[string]bool{}
	m.disk.WalkFiles(func(name string, n *disk.Node) {
		if dir, file := path.Split(name); dir != "data/" || !strings.HasPrefix(file, "pages") {
			return
		}
		for line := range bytes.Lines(m.disk.CurrentContent(n)) {
			var r struct{ URL string }
			if err := json.Unmarshal(line, &r); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
				torn = string(line)
			}
			urls[r.URL] = true
		}
	})
	return urls, torn
}

// missingPages returns the pages that are not in the output.
func (m *machine) missingPages() []string {
	urls, _ := m.outputURLs()
	return slices.DeleteFunc(m.web.ReachablePages(), func(url string) bool { return urls[url] })
}
