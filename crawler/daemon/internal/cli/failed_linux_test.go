package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// breakSync replaces a file that this process has open by /dev/null: writes to it succeed, but fsync
// fails with EINVAL.
func breakSync(t *testing.T, name string) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer null.Close()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Error(err)
	}
	broken := 0
	for _, link := range fds {
		if target, err := os.Readlink(link); err != nil || target != name {
			continue
		}
		var fd int
		for _, digit := range filepath.Base(link) {
			fd = 10*fd + int(digit-'0')
		}
		if err := unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Error(err)
		}
		broken++
	}
	if broken == 0 {
		t.Errorf("%s is not open", name)
	}
}

// busyOnceSite returns a site that answers the first request for its page with a Retry-After of ten
// minutes, after it has called during.
func busyOnceSite(during func()) crawltest.Site {
	return crawltest.Site{Host: "a.example",
		Pages: map[string]crawltest.PageFunc{"/": func(r crawltest.PageRequest) crawltest.Response {
			if r.NthForURL > 1 {
				return crawltest.HTML("a page")
			}
			during()
			busy := crawltest.Status(503)
			busy.Header.Set("Retry-After", "600")
			return busy
		}}}
}

// outputFiles returns the files of the crawl in a directory whose fsync can fail.
func outputFiles(dir string) map[string]func() string {
	return map[string]func() string{
		"output": func() string { return filepath.Join(dir, datadir.OutputFile) },
		"ledger": func() string { return filepath.Join(dir, datadir.LedgerDir, "ledger-000001.jsonl") },
	}
}

// TestFailedSyncEndsTheCrawl checks that a failed fsync of the output or of the ledger ends the crawl
// with exit code 1, even with no visit in flight. The resumed crawl repeats the visit.
func TestFailedSyncEndsTheCrawl(t *testing.T) {
	for name := range outputFiles("") {
		t.Run(name, func(t *testing.T) {
			var file string
			v := daemontest.NewWebFixture(t, busyOnceSite(func() { breakSync(t, file) }))
			file = outputFiles(v.DataDir())[name]()
			runCommand(t, v.CrawlArgs("http://a.example/")...).want(t, command.ExitFailed,
				"nothing can be written any more", "invalid argument", "--resume")
			runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitDone)
			if got := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)); len(got) == 0 ||
				got[len(got)-1].Status != 200 {
				t.Errorf("records %+v, want the page in the end", got)
			}
		})
	}
}

// TestFailedSyncFailsTheProject checks that in a daemon the project fails, that /readyz names it, and
// that the project continues when it is started again.
func TestFailedSyncFailsTheProject(t *testing.T) {
	for name := range outputFiles("") {
		t.Run(name, func(t *testing.T) {
			var file string
			f := newCommandFixture(t, busyOnceSite(func() { breakSync(t, file) }))
			f.PutProjectFile("books", f.ProjectYAML("http://a.example/", daemontest.NoDelayYAML))
			f.Start(false)
			file = outputFiles(filepath.Join(f.WebFixture.DataDir(), datadir.ProjectsDir, "books"))[name]()
			f.DoActions("books", api.ActionStart)
			p := f.WaitForState("books", api.StateFailed)
			if !strings.Contains(p.StateReason, "may not be on the disk") {
				t.Errorf("the project failed with the reason %q", p.StateReason)
			}
			if err := f.CheckReady(t.Context()); err == nil || !strings.Contains(err.Error(), "books") {
				t.Errorf("ready: %v, want that books has failed", err)
			}
			f.DoActions("books", api.ActionStart)
			f.WaitForState("books", api.StateDone)
			if err := f.CheckReady(t.Context()); err != nil {
				t.Errorf("ready: %v", err)
			}
		})
	}
}
