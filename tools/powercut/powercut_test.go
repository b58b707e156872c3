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

// unflushed is how old a visit may be that a power cut can undo: the store writes every
// 200 ms, and takes its time on a busy machine.
const unflushed = 4 * time.Second

// cutsOfOne is how many power cuts one crawl has.
const cutsOfOne = 12

// TestPowerCuts: the power is cut while a crawl runs, time and again, and of what was
// not synced any part is on the disk. The crawl goes on after each cut and comes to its
// end: every page is in its output, which has whole lines alone; every host had its rest;
// and the ledger can be verified.
func TestPowerCuts(t *testing.T) {
	for crawl := range (*cuts + cutsOfOne - 1) / cutsOfOne {
		seed := *seed + uint64(crawl)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			cutPower(t, seed, min(cutsOfOne, *cuts-crawl*cutsOfOne))
		})
	}
}

// cutPower crawls a web to its end, with so many power cuts on the way.
func cutPower(t *testing.T, seed uint64, cuts int) {
	m, chance := newMachine(t), rand.New(rand.NewPCG(seed, 0))
	defer m.sayHowToRepeat(fmt.Sprintf("-run TestPowerCuts -cuts %d -seed %d", cuts, seed))
	for cut := 0; ; cut++ {
		life := time.Duration(0)
		if cut < cuts {
			life = time.Duration(100+chance.IntN(1200)) * time.Millisecond
		}
		r := m.crawl(life)
		switch {
		case r.hung:
			t.Fatalf("the crawl was idle after %d cuts:\n%s", cut, r.stderr)
		case r.code == 0:
			m.examine()
			return
		case r.code > 0:
			t.Fatalf("the crawl cannot go on after %d cuts: %s", cut, r.lastLine())
		}
		m.cutPower(chance)
	}
}

// examine checks a crawl that has come to its end.
func (m *machine) examine() {
	m.t.Helper()
	m.checkOutput()
	m.checkLedger()
	report := m.web.Judge(crawltest.JudgeOptions{
		MinDelay: delay, RequiredProductToken: "decorum", RestartTimes: m.starts[1:], CrashLossWindow: unflushed,
	})
	if !report.OK() {
		m.t.Errorf("the judge says:\n%s", report)
	}
}

// checkOutput checks that every page is in the output, and that its lines are whole.
func (m *machine) checkOutput() {
	m.t.Helper()
	if _, torn := m.output(); torn != "" {
		m.t.Errorf("a line of the output is not whole: %.80q", torn)
	}
	if missing := m.missing(); len(missing) > 0 {
		m.t.Errorf("%d pages are not in the output: %q", len(missing), missing)
	}
}

// output returns the URLs that are in the output, and a line that is not whole, if
// there is one.
func (m *machine) output() (urls map[string]bool, torn string) {
	urls = map[string]bool{}
	m.disk.Walk(func(name string, n *disk.Node) {
		if dir, file := path.Split(name); dir != "data/" || !strings.HasPrefix(file, "pages") {
			return
		}
		for line := range bytes.Lines(m.disk.Content(n)) {
			var r struct{ URL string }
			if err := json.Unmarshal(line, &r); err != nil || !bytes.HasSuffix(line, []byte("\n")) {
				torn = string(line)
			}
			urls[r.URL] = true
		}
	})
	return urls, torn
}

// missing returns the pages that are not in the output.
func (m *machine) missing() []string {
	urls, _ := m.output()
	return slices.DeleteFunc(m.web.ReachablePages(), func(url string) bool { return urls[url] })
}
