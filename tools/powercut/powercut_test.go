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

// unflushedWindow is the maximum age of a visit that a power cut can undo. The store writes every
// 200 ms, and takes longer on a busy machine.
const unflushedWindow = 4 * time.Second

// cutsPerCrawl is how many times the power of one crawl is cut.
const cutsPerCrawl = 12

// TestPowerCuts: the power is cut several times while a crawl runs, and any part of the unsynced
// data is lost. The crawl can be resumed after each cut and completes: its output has every page
// and only whole lines, every host had its delays, and the ledger verifies.
func TestPowerCuts(t *testing.T) {
	for crawl := range (*powerCuts + cutsPerCrawl - 1) / cutsPerCrawl {
		seed := *firstSeed + uint64(crawl)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testPowerCuts(t, seed, min(cutsPerCrawl, *powerCuts-crawl*cutsPerCrawl))
		})
	}
}

// testPowerCuts runs a crawl to its end, with the given number of power cuts.
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
			t.Fatalf("the crawl cannot be resumed after %d cuts: %s", cut, r.lastLine())
		}
		m.cutPower(rnd)
	}
}

// checkFinishedCrawl checks the output, the ledger and the politeness of a complete crawl.
func (m *machine) checkFinishedCrawl() {
	m.t.Helper()
	m.checkOutput()
	m.checkLedger()
	report := m.web.Judge(crawltest.JudgeOptions{
		MinDelay: hostDelay, RequiredProductToken: "decorum", RestartTimes: m.startTimes[1:],
		CrashLossWindow: unflushedWindow,
	})
	if !report.OK() {
		m.t.Errorf("the judge reports:\n%s", report)
	}
}

// checkOutput checks that the output has every page and only whole lines.
func (m *machine) checkOutput() {
	m.t.Helper()
	if _, torn := m.outputURLs(); torn != "" {
		m.t.Errorf("a line of the output is incomplete: %.80q", torn)
	}
	if missing := m.missingPages(); len(missing) > 0 {
		m.t.Errorf("%d pages are not in the output: %q", len(missing), missing)
	}
}

// outputURLs returns the URLs in the output, and an incomplete line or "".
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

// missingPages returns the reachable pages that the output lacks.
func (m *machine) missingPages() []string {
	urls, _ := m.outputURLs()
	return slices.DeleteFunc(m.web.ReachablePages(), func(url string) bool { return urls[url] })
}
