//go:build unix

package cli

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// hangupSite returns a shop whose first page sends SIGHUP, twice, to the process that arrives on pids.
func hangupSite(t *testing.T, pids <-chan int) crawltest.Site {
	site := daemontest.ShopSite()
	site.Pages["/"] = func(crawltest.PageRequest) crawltest.Response {
		pid := <-pids
		for range 2 {
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		}
		return crawltest.Response{HeaderDelay: 50 * time.Millisecond,
			Header: http.Header{"Content-Type": {"text/html"}}, Body: "<a href=/a>"}
	}
	return site
}

// SIGHUP stops a crawl as an interrupt does, and a repeated SIGHUP aborts no visit. A crawl that
// ignored SIGHUP at its start continues.
func TestHangupOfCrawl(t *testing.T) {
	if testing.Short() {
		t.Skip("the crawl is a separate process")
	}
	t.Parallel()
	for _, tt := range []struct {
		name    string
		ignored bool
		code    int
		says    []string
	}{
		{"sent", false, command.ExitStopped,
			[]string{"stopping: the visits in flight finish first", "pages: 1 (", "left: 1 queued"}},
		{"ignored", true, command.ExitDone, []string{"pages: 2 (", "left: 0 queued"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pids := make(chan int, 1)
			v := daemontest.NewWebFixture(t, hangupSite(t, pids))
			c, stderr := newCommandProcess(t, v.CrawlArgs("http://shop.example/")...)
			if tt.ignored {
				ignoring := exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)...)
				ignoring.Env, ignoring.Stderr = c.Env, c.Stderr
				c = ignoring
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			pids <- c.Process.Pid
			_ = c.Wait()
			commandResult{code: c.ProcessState.ExitCode(), stderr: stderr.String()}.want(t, tt.code, tt.says...)
		})
	}
}

// At SIGHUP a daemon reads its project files again. Here the folder is a link that names another
// folder meanwhile, which file systems do not report.
func TestHangupOfDaemon(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemon is a separate process")
	}
	t.Parallel()
	f := newCommandFixture(t)
	f.PutProjectFile("a", daemontest.MinimalProject)
	folder := filepath.Join(f.Dir, "link")
	if err := os.Symlink(t.TempDir(), folder); err != nil {
		t.Fatal(err)
	}
	c, _ := newCommandProcess(t, "serve", "--listen=127.0.0.1:0", "--data", f.WebFixture.DataDir(),
		"--projects", folder)
	c.Stderr = nil
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	await := func(says ...string) { // in any order
		for len(says) > 0 && lines.Scan() {
			says = slices.DeleteFunc(says, func(s string) bool { return strings.Contains(lines.Text(), s) })
		}
		if len(says) > 0 {
			t.Errorf("the daemon ended without %q: %v", says, lines.Err())
		}
	}
	await("the daemon runs")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.ProjectFilesPath(), folder); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Error(err)
	}
	await("the project files are read again", `msg="the project file is followed" project=a`)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	await("nothing is lost")
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != command.ExitStopped {
		t.Errorf("exit code %d, want %d", code, command.ExitStopped)
	}
}
