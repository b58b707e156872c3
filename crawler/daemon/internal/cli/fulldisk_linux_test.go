package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A diskShortage takes the disk space away from one process, or from all, and gives it back.
type diskShortage struct {
	name       string
	killsCrawl bool // kill the crawl during the shortage
	dir        func(*testing.T) string
	begin      func(t *testing.T, dir string, pid int)
	end        func(t *testing.T, dir string, pid int)
}

var diskShortages = []diskShortage{
	{"limit of file size", false, func(t *testing.T) string { return t.TempDir() },
		func(t *testing.T, _ string, pid int) { limitFileSize(t, pid, 1) },
		func(t *testing.T, _ string, pid int) { limitFileSize(t, pid, unix.RLIM_INFINITY) }},
	{"full file system", true, testfile.MountSmallFileSystem,
		func(t *testing.T, dir string, _ int) { testfile.FillDisk(t, filepath.Join(dir, "ballast")) },
		func(t *testing.T, dir string, _ int) {
			if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
				t.Error(err)
			}
		}},
}

// limitFileSize makes the process fail to write beyond the given number of bytes of any file.
func limitFileSize(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk fills the disk in the middle of a crawl. The crawl reports it, pauses, and continues by
// itself when there is space. Every page has exactly one record and is archived, and the server saw no
// rule broken. A crawl that is killed meanwhile loses nothing either.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, s := range diskShortages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			testFullDisk(t, s)
		})
	}
}

func testFullDisk(t *testing.T, s diskShortage) {
	const delay = 50 * time.Millisecond
	dir := s.dir(t)
	web := daemontest.KillTestWeb(delay, 30, nil)
	server := daemontest.StartWeb(t, web)
	archive := filepath.Join(dir, "warc")
	flags := []string{"crawl", "--data", filepath.Join(dir, "data"), "--warc", archive,
		"--contact=mailto:bot@example.com", "--allow-private",
		"--connect-to=::" + server.Addr, "--delay", delay.String(), "--max-depth=100", "--progress=none",
		"--sitemap-xml=false"}
	run := func(args ...string) (*exec.Cmd, *syncBuffer) {
		var stderr syncBuffer
		c, _ := newCommandProcess(t, append(slices.Clone(flags), args...)...)
		c.Stdout, c.Stderr = io.Discard, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() })
		return c, &stderr
	}
	c, stderr := run(web.CrawlSettings.Seeds...)
	waitWithOutput(t, "the crawl to begin", stderr, func() bool { return len(web.Log()) > 20 })
	s.begin(t, dir, c.Process.Pid)
	waitWithOutput(t, "the pause", stderr, func() bool { return strings.Contains(stderr.String(), "the crawl pauses") })
	var restarts []time.Time
	if s.killsCrawl {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if err := server.AwaitDisconnects(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.end(t, dir, os.Getpid())
		restarts = []time.Time{time.Now()}
		c, stderr = run("--resume")
	} else {
		before := len(web.Log())
		s.end(t, dir, c.Process.Pid)
		waitWithOutput(t, "the crawl to continue", stderr, func() bool {
			return strings.Contains(stderr.String(), "the crawl continues") && len(web.Log()) > before
		})
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("the crawl ended with %v\n%s", err, stderr)
	}
	answered := slices.DeleteFunc(daemontest.ReadRecords(t, filepath.Join(dir, "data", datadir.OutputFile)),
		func(r sinks.OutputRecord) bool { return r.Status == 503 })
	got := daemontest.SortedURLs(answered)
	if s.killsCrawl {
		got = slices.Compact(got)
	}
	if diff := cmp.Diff(web.ReachablePages(), got); diff != "" {
		t.Errorf("pages that should be in the output (-), and that are (+):\n%s", diff)
	}
	checkArchived(t, archive, got)
	data := filepath.Join(dir, "data")
	if ledgerReport := verifyCleanLedger(t, data); !s.killsCrawl && ledgerReport.UnansweredRequests != 0 {
		t.Errorf("%d requests have no answer in the ledger", ledgerReport.UnansweredRequests)
	}
	checkLedgerAgainstLog(t, data, web.Log())
	if report := web.Judge(crawltest.JudgeOptions{MinDelay: delay, RequiredProductToken: "decorum",
		RestartTimes: restarts}); !report.OK() {
		t.Errorf("the judge says:\n%s", report)
	}
}
