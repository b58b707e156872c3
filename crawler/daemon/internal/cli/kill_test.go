package cli

import (
	"bytes"
	"context"
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
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/internal/testwait"
)

// commandEnv is the environment variable that makes the test binary the decorum command.
const commandEnv = "DECORUM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		Main(nil)
	}
	if addr := os.Getenv(asIdleClientsEnv); addr != "" {
		runIdleClients(addr)
	}
	if name := os.Getenv(asPeerEnv); name != "" {
		runPeer(name)
	}
	testwait.SetTestParallelism(12)
	m.Run()
}

// skipIfShort skips a test with -short, as under the race detector: the test is long, and has only one
// goroutine.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long, with one goroutine")
	}
}

// newCommandProcess returns the decorum command as a separate process, which is not started yet.
func newCommandProcess(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), commandEnv+"=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	return c, &stderr
}

// How often TestKill kills its crawls; more often in .ci/proofs.
var (
	killTimes = flag.Int("kills", 36, "how often TestKill kills a crawl")
	killSeed  = flag.Uint64("kill-seed", 1, "seed of what TestKill leaves to chance")
)

// killDelay is the delay of a host in TestKill.
const killDelay = 100 * time.Millisecond

// killOutputFileSize is the size of an output file in TestKill, which holds a few lines.
const killOutputFileSize = 2 << 10

// maxUnflushedAge is the largest age of a visit that a kill can undo. The store writes every 200 ms,
// and a disk to which many tests write at once is slow.
const maxUnflushedAge = 4 * time.Second

// A killTotals holds the sums over all crawls of TestKill.
type killTotals struct {
	mu                                                  sync.Mutex
	crawls, kills, pages, requests, repeats, lostDelays int
	oldestRepeat                                        time.Duration
	rederivedVerdicts                                   int64 // verdicts that were derived again from the ledgers
	unsentRequests                                      int   // recorded requests that were not sent because of a kill
}

// TestKill kills several crawls at random moments and resumes them. For each crawl, over all its runs:
//
//   - The output, in many small files of whole lines, has every page. So have the WARC files, and all
//     of them can be read.
//   - Every request that the server saw is in the ledger, and every verdict in the ledger can be
//     derived again.
//   - The server sees no delay that is too short and no request for a disallowed page, across the
//     restarts too.
//   - The only pages requested twice are those that were in flight at a kill, or were visited since
//     the last write of the store.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("the killed crawls are separate processes")
	}
	t.Parallel() // TestServeKill mostly waits
	const crawls = 6
	var total killTotals
	var wg sync.WaitGroup
	for i := range crawls {
		rnd := rand.New(rand.NewPCG(*killSeed, uint64(i)))
		wg.Go(func() {
			for left := (*killTimes + crawls - 1) / crawls; left > 0 && !t.Failed(); {
				n, err := runAndKill(t, rnd, min(left, 25), &total)
				if err != nil {
					t.Errorf("crawls %d: %v", i, err)
				}
				left -= n
			}
		})
	}
	wg.Wait()
	t.Logf("seed %d: %d crawls, %d kills: %d pages, %d requests, %d of them repeated after a kill (the oldest %v "+
		"before it), %d pauses lost that were requested in the last moment; %d verdicts derived again, %d records "+
		"of requests that a kill cut off before they were sent",
		*killSeed, total.crawls, total.kills, total.pages, total.requests, total.repeats, total.oldestRepeat,
		total.lostDelays, total.rederivedVerdicts, total.unsentRequests)
}

// A killedCrawl is a crawl that is killed and resumed repeatedly.
type killedCrawl struct {
	t             *testing.T
	web           *crawltest.Web
	server        *crawltest.Server // of web
	data          string
	project       string // its file
	starts, kills []time.Time
}

func newKilledCrawl(t *testing.T, web *crawltest.Web, server *crawltest.Server) *killedCrawl {
	t.Helper()
	project := fmt.Sprintf("output: {jsonl_max_size: %dB, ledger_refusals: true, ledger_max_size: %dB}\n",
		killOutputFileSize, 8*killOutputFileSize)
	return &killedCrawl{t: t, web: web, server: server,
		data: filepath.Join(t.TempDir(), "data"), project: testfile.Write(t, "p.yaml", project)}
}

// runAndKill runs a crawl to its end, kills it at most the given number of times on the way, and
// returns how often it did.
func runAndKill(t *testing.T, rnd *rand.Rand, maxKills int, total *killTotals) (int, error) {
	web := daemontest.KillTestWeb(killDelay, 15, rnd)
	server, err := web.Start("")
	if err != nil {
		return 0, err
	}
	v := newKilledCrawl(t, web, server)
	for ended := false; !ended && err == nil; {
		var kill <-chan time.Time
		if len(v.kills) < maxKills {
			kill = time.After(randomLifetime(rnd))
		}
		ended, err = v.run(kill)
	}
	if err := errors.Join(err, server.Close()); err != nil {
		return len(v.kills), err
	}
	v.checkResult(total)
	return len(v.kills), nil
}

// archiveDir returns the directory of the crawl's WARC files.
func (v *killedCrawl) archiveDir() string { return v.data + "-warc" }

// run starts or resumes the crawl, and reports whether it finished. A time sent on kill kills it
// before. When run returns, the log has all requests of a killed crawl.
func (v *killedCrawl) run(kill <-chan time.Time) (ended bool, err error) {
	args := []string{"crawl", "--data", v.data, "--sitemap-xml=false", "--warc", v.archiveDir(),
		"--contact=mailto:bot@example.com", "--allow-private",
		"--connect-to=::" + v.server.Addr, "--delay", killDelay.String(), "--max-depth=100",
		"--progress=none", "--log-level=error"}
	if hasCrawl, err := datadir.StateDir(v.data).HasCrawl(); err != nil {
		return false, err
	} else if hasCrawl {
		args = append(args, "--resume")
	} else {
		args = append(append(args, "-c", v.project), v.web.CrawlSettings.Seeds...)
	}
	v.starts = append(v.starts, time.Now())
	c, stderr := newCommandProcess(v.t, args...)
	if err := c.Start(); err != nil {
		return false, err
	}
	exited := make(chan error, 1)
	go func() { exited <- c.Wait() }()
	var killed time.Time
	select {
	case err = <-exited:
	case killed = <-kill:
		c.Process.Signal(syscall.SIGKILL) // it may have ended just now
		err = <-exited
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && !exit.Exited():
		v.kills = append(v.kills, killed)
		ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
		defer cancel()
		return false, v.server.AwaitDisconnects(ctx)
	}
	return false, fmt.Errorf("run %d ended with %w:\n%s", len(v.starts), err, stderr)
}

// checkResult checks the crawl by the judge's report, the output and the log of the server.
func (v *killedCrawl) checkResult(total *killTotals) {
	v.t.Helper()
	out := filepath.Join(v.data, datadir.OutputFile)
	testfile.RotatedLines(v.t, out, killOutputFileSize)
	if full, err := sinks.RotatedJSONLFiles(out); err != nil || len(full) < 10 {
		v.t.Errorf("full files of output %v (%v), want more", full, err)
	}
	got := slices.Compact(daemontest.SortedURLs(daemontest.ReadRecords(v.t, out)))
	if diff := cmp.Diff(v.web.ReachablePages(), got); diff != "" {
		v.t.Errorf("pages that should be in the output (-), and that are (+):\n%s", diff)
	}
	checkArchived(v.t, v.archiveDir(), got)
	ledgerReport, unsent := verifyCleanLedger(v.t, v.data), checkLedgerAgainstLog(v.t, v.data, v.web.Log())
	if limit := int64(len(v.kills) * daemontest.KillTestHosts); ledgerReport.UnansweredRequests > limit ||
		unsent > int(ledgerReport.UnansweredRequests) {
		v.t.Errorf("%d records of requests are without an answer, and %d of them of none that a server saw",
			ledgerReport.UnansweredRequests, unsent)
	}
	report := v.web.Judge(crawltest.JudgeOptions{MinDelay: killDelay, RequiredProductToken: "decorum",
		RestartTimes: v.starts[1:], CrashLossWindow: maxUnflushedAge})
	if !report.OK() {
		v.t.Errorf("the judge says:\n%s%s", report, v.describeViolations(report))
	}
	repeated := repeatedRequests(v.web.Log(), v.starts, v.kills)
	total.mu.Lock()
	defer total.mu.Unlock()
	for _, r := range repeated {
		total.oldestRepeat = max(total.oldestRepeat, r.ageAtKill)
		if r.ageAtKill > maxUnflushedAge {
			v.t.Errorf("%s was requested again, although it was answered %v before a kill", r.url, r.ageAtKill)
		}
	}
	total.crawls++
	total.kills += len(v.kills)
	total.pages += len(got)
	total.requests += report.Requests
	total.repeats += len(repeated)
	total.lostDelays += report.LostPauses
	total.rederivedVerdicts += ledgerReport.CheckedVerdicts
	total.unsentRequests += unsent
}
