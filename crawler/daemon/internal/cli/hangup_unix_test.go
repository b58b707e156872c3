//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// hangupDeadline is how long the processes of these tests may take.
const hangupDeadline = time.Minute

// hangupSite returns a shop whose first page calls hangUp before it answers.
func hangupSite(hangUp func()) crawltest.Site {
	site := daemontest.ShopSite()
	site.Pages["/"] = func(crawltest.PageRequest) crawltest.Response {
		hangUp()
		return crawltest.Response{Header: http.Header{"Content-Type": {"text/html"}}, Body: "<a href=/a>"}
	}
	return site
}

// A stderrReader starts a process and reads the lines of its standard error.
type stderrReader struct {
	t     *testing.T
	lines *bufio.Scanner
	text  strings.Builder // what await has read
}

// startWithStderr starts c. The end of the test, or hangupDeadline, kills it.
func startWithStderr(t *testing.T, c *exec.Cmd) *stderrReader {
	t.Helper()
	c.Stderr = nil
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(hangupDeadline, func() {
		t.Errorf("the process runs for more than %v", hangupDeadline)
		_ = c.Process.Kill()
	})
	t.Cleanup(func() {
		deadline.Stop()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return &stderrReader{t: t, lines: bufio.NewScanner(stderr)}
}

// await reads lines until each of says has occurred, in any order.
func (r *stderrReader) await(says ...string) {
	r.t.Helper()
	for len(says) > 0 && r.lines.Scan() {
		fmt.Fprintln(&r.text, r.lines.Text())
		says = slices.DeleteFunc(says, func(s string) bool { return strings.Contains(r.lines.Text(), s) })
	}
	if len(says) > 0 {
		r.t.Errorf("the process ended without %q: %v", says, r.lines.Err())
	}
}

// readAll reads the remaining lines, and returns all lines.
func (r *stderrReader) readAll() string {
	for r.lines.Scan() {
		fmt.Fprintln(&r.text, r.lines.Text())
	}
	return r.text.String()
}

// awaitRequest waits until first is closed.
func awaitRequest(t *testing.T, first <-chan struct{}) {
	t.Helper()
	select {
	case <-first:
	case <-time.After(hangupDeadline):
		t.Error("the crawl does not request the page")
	}
}

// sendHangup sends SIGHUP to the process of c.
func sendHangup(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Error(err)
	}
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
			first, answer := make(chan struct{}), make(chan struct{})
			arrive := sync.OnceFunc(func() { close(first) })
			v := daemontest.NewWebFixture(t, hangupSite(func() { arrive(); <-answer }))
			c, _ := newCommandProcess(t, v.CrawlArgs("http://shop.example/")...)
			if tt.ignored {
				ignoring := exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`}, c.Args...)...)
				ignoring.Env = c.Env
				c = ignoring
			}
			stderr := startWithStderr(t, c)
			// The page answers after the second signal. Two signals in a row could arrive as one.
			awaitRequest(t, first)
			sendHangup(t, c)
			if !tt.ignored {
				stderr.await(tt.says[0])
			}
			sendHangup(t, c)
			close(answer)
			text := stderr.readAll()
			_ = c.Wait()
			commandResult{code: c.ProcessState.ExitCode(), stderr: text}.want(t, tt.code, tt.says...)
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
	stderr := startWithStderr(t, c)
	stderr.await("the daemon runs", "page=http://127.0.0.1:", "token_file="+filepath.Join(f.WebFixture.DataDir(), "token"))
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(f.ProjectFilesPath(), folder); err != nil {
		t.Fatal(err)
	}
	sendHangup(t, c)
	stderr.await("the project files are read again", `msg="the project file is followed" project=a`)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	stderr.await("nothing is lost")
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != command.ExitStopped {
		t.Errorf("exit code %d, want %d", code, command.ExitStopped)
	}
}
