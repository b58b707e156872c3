package daemon

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/internal/testwait"
)

// asCommand in the environment makes the test binary the decorum command.
const asCommand = "DECORUM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main(nil)
	}
	if addr := os.Getenv(asStrangers); addr != "" {
		beStrangers(addr)
	}
	if name := os.Getenv(asPeer); name != "" {
		bePeer(name)
	}
	testwait.Together(12)
	m.Run()
}

// longAlone skips a test of one goroutine with -short: it is long where races are
// looked for, and has none.
func longAlone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long, and of one goroutine")
	}
}

// command returns the decorum command, to be run as a process of its own.
func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	return c, &stderr
}

// How the crawls of TestKill are killed, more often in .ci/proofs.
var (
	killTimes = flag.Int("kills", 36, "how often TestKill kills a crawl")
	killSeed  = flag.Uint64("kill-seed", 1, "seed of what TestKill leaves to chance")
)

// killDelay is the rest of a host in TestKill.
const killDelay = 100 * time.Millisecond

// killFile is how large a file of output grows in TestKill: it holds a few lines.
const killFile = 2 << 10

// unflushed is how old a visit may be that a kill can undo: the store writes every
// 200 ms, and a disk that many tests write to at once takes its time.
const unflushed = 4 * time.Second

// A sum is what all crawls of TestKill come to.
type sum struct {
	mu                                            sync.Mutex
	crawls, kills, pages, requests, repeats, lost int
	oldest                                        time.Duration
	proven                                        int64 // verdicts that were derived again from the ledgers
	unseen                                        int   // records of requests that a kill cut off before they were sent
}

// TestKill: crawls that are killed at random moments and go on, several at a
// time. The output of all runs of a crawl together, in many small files of whole
// lines, covers every page, and so do its WARC files, all of which can be read; every
// request that the server saw is in the ledger, and every verdict there can be
// derived again; the
// server sees no gap that is too short and no page that is closed, across the
// restarts too; and no page is asked for again but those that were in hand or
// had been visited in the moment that the store had not written yet.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("the crawls that are killed are processes of their own")
	}
	t.Parallel() // TestServeKill mostly waits
	const crawls = 6
	var total sum
	var wg sync.WaitGroup
	for i := range crawls {
		chance := rand.New(rand.NewPCG(*killSeed, uint64(i)))
		wg.Go(func() {
			for left := (*killTimes + crawls - 1) / crawls; left > 0 && !t.Failed(); {
				n, err := killed(t, chance, min(left, 25), &total)
				if err != nil {
					t.Errorf("crawls %d: %v", i, err)
				}
				left -= n
			}
		})
	}
	wg.Wait()
	t.Logf("seed %d: %d crawls, %d kills: %d pages, %d requests, %d of them repeated after a kill (the oldest %v before it), %d pauses lost that were asked for in the last moment; %d verdicts derived again, %d records of requests that a kill cut off before they were sent",
		*killSeed, total.crawls, total.kills, total.pages, total.requests, total.repeats, total.oldest, total.lost, total.proven, total.unseen)
}

// A victim is a crawl that is killed time and again.
type victim struct {
	t             *testing.T
	chance        *rand.Rand
	web           *crawltest.Web
	addr, data    string
	project       string // its file
	starts, kills []time.Time
}

// killed runs a crawl to its end, killing it at most so many times on the way,
// and returns how many times it did.
func killed(t *testing.T, chance *rand.Rand, maxKills int, total *sum) (int, error) {
	v := &victim{t: t, chance: chance, web: killWeb(killDelay, 15, chance), data: filepath.Join(t.TempDir(), "data"),
		project: write(t, "p.yaml", fmt.Sprintf("output: {jsonl_max_size: %dB, ledger_refusals: true, ledger_max_size: %dB}\n", killFile, 8*killFile))}
	server, err := v.web.Start("")
	if err != nil {
		return 0, err
	}
	v.addr = server.Addr
	for ended := false; !ended && err == nil; {
		ended, err = v.run(len(v.kills) < maxKills)
	}
	if err := errors.Join(err, server.Close()); err != nil {
		return len(v.kills), err
	}
	v.examine(total)
	return len(v.kills), nil
}

// archive is where the victim's WARC files are.
func (v *victim) archive() string { return v.data + "-warc" }

// run starts the crawl, or goes on with it, and reports whether it came to its
// end: it may be killed before.
func (v *victim) run(kill bool) (ended bool, err error) {
	args := []string{"crawl", "--data", v.data, "--warc", v.archive(), "--contact=mailto:bot@example.com", "--allow-private",
		"--connect-to=::" + v.addr, "--delay", killDelay.String(), "--max-depth=100", "--progress=none", "--log-level=error"}
	if holds, err := stateDir(v.data).holdsCrawl(); err != nil {
		return false, err
	} else if holds {
		args = append(args, "--resume")
	} else {
		args = append(append(args, "-c", v.project), v.web.CrawlPlan.Seeds...)
	}
	v.starts = append(v.starts, time.Now())
	c, stderr := command(v.t, args...)
	if err := c.Start(); err != nil {
		return false, err
	}
	over := make(chan error, 1)
	go func() { over <- c.Wait() }()
	var death <-chan time.Time
	if kill {
		death = time.After(life(v.chance))
	}
	var killed time.Time
	select {
	case err = <-over:
	case killed = <-death:
		c.Process.Signal(syscall.SIGKILL) // it may have ended just now
		err = <-over
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && !exit.Exited():
		v.kills = append(v.kills, killed)
		return false, nil
	}
	return false, fmt.Errorf("run %d ended with %w:\n%s", len(v.starts), err, stderr)
}

// examine asks the judge, the output and the log.
func (v *victim) examine(total *sum) {
	v.t.Helper()
	out := filepath.Join(v.data, outputFile)
	linesIn(v.t, out, killFile)
	if full, err := rotatedFiles(out); err != nil || len(full) < 10 {
		v.t.Errorf("full files of output %v (%v), want more", full, err)
	}
	got := slices.Compact(urls(records(v.t, out)))
	if diff := cmp.Diff(v.web.ReachablePages(), got); diff != "" {
		v.t.Errorf("pages that should be in the output (-), and that are (+):\n%s", diff)
	}
	inArchive(v.t, v.archive(), got)
	proven, unseen := verifyIn(v.t, v.data), inLedger(v.t, v.data, v.web.Log())
	if limit := int64(len(v.kills) * killHosts); proven.Interrupted > limit || unseen > int(proven.Interrupted) {
		v.t.Errorf("%d records of requests are without an answer, and %d of them of none that a server saw", proven.Interrupted, unseen)
	}
	report := v.web.Judge(crawltest.JudgeOptions{MinDelay: killDelay, RequiredProductToken: "decorum",
		RestartTimes: v.starts[1:], CrashLossWindow: unflushed})
	if !report.OK() {
		v.t.Errorf("the judge says:\n%s", report)
	}
	again := repeats(v.web.Log(), v.kills)
	total.mu.Lock()
	defer total.mu.Unlock()
	for _, r := range again {
		total.oldest = max(total.oldest, r.lost)
		if r.lost > unflushed {
			v.t.Errorf("%s was asked for again, though it had been answered %v before a kill", r.url, r.lost)
		}
	}
	total.crawls++
	total.kills += len(v.kills)
	total.pages += len(got)
	total.requests += report.Requests
	total.repeats += len(again)
	total.lost += report.LostPauses
	total.proven += proven.Verdicts
	total.unseen += unseen
}
