package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon"
	"github.com/decorum-crawler/decorum/internal/testwait"
)

// commandEnv is the environment variable that makes the test binary the decorum command.
const commandEnv = "DECORUM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		daemon.Main(collyfetch.NamedCallbacks{"past": registerCallbacks})
	}
	testwait.SetTestParallelism(8)
	m.Run()
}

// registerCallbacks registers callbacks that follow links and post forms.
func registerCallbacks(c *collyfetch.Collector) {
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = collyfetch.FollowLink(e.Request, e.Attr("href")) })
	c.OnHTML("form[action]", func(e *colly.HTMLElement) {
		_ = e.Request.Post(e.Attr("action"), map[string]string{"form": e.Attr("action")})
	})
}

// An oldState is a copy of the files that a process left when it was killed.
type oldState struct {
	dir        string
	killedAt   time.Time
	requestLog []crawltest.Exchange // the log of its servers
}

// path returns the path of a file in the old state.
func (p oldState) path(names ...string) string {
	return filepath.Join(append([]string{p.dir}, names...)...)
}

// unpackOldState returns a copy of testdata/past/NAME.tar.zst.
func unpackOldState(t *testing.T, name string) oldState {
	t.Helper()
	p := oldState{dir: t.TempDir()}
	archive := tar.NewReader(bytes.NewReader(readCompressed(t, name+".tar.zst")))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p.unpackFile(t, h, archive)
	}
	var err error
	if p.killedAt, err = time.Parse(time.RFC3339Nano, string(readFile(t, p.path("killed")))); err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(p.path("log.jsonl")); err == nil {
		if p.requestLog, err = crawltest.ReadLog(bytes.NewReader(log)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// unpackFile writes one file of the archive. It does not write the zeros at the end of a database,
// which becomes a sparse file, so that a copy takes little time and space.
func (p oldState) unpackFile(t *testing.T, h *tar.Header, content io.Reader) {
	t.Helper()
	file := p.path(filepath.FromSlash(h.Name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	withoutZeros := bytes.TrimRight(text, "\x00")
	if err := os.WriteFile(file, withoutZeros, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, int64(len(text))); err != nil {
		t.Fatal(err)
	}
}

// readCompressed returns the content of a compressed file in testdata/past.
func readCompressed(t *testing.T, name string) []byte {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(readFile(t, filepath.Join("testdata", "past", name))))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newCommand returns the decorum command as a separate process, which ends with the test at the
// latest.
func newCommand(t *testing.T, s *webServer, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), commandEnv+"=1")
	if s != nil {
		c.Env = append(c.Env, "SSL_CERT_FILE="+s.caFile)
	}
	return c
}

// runCommand runs the decorum command, and returns its standard output and exit code.
func runCommand(t *testing.T, s *webServer, wantCode int, args ...string) []byte {
	t.Helper()
	c := newCommand(t, s, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != wantCode {
		t.Fatalf("decorum %s ended with %v, want exit code %d:\n%s%s",
			strings.Join(args, " "), err, wantCode, &stdout, &stderr)
	}
	return stdout.Bytes()
}

// judgeRequests judges the requests before the kill together with those after restart, when a process
// continued the crawl. The caller checks whether pages were visited twice, because these crawls revisit
// pages.
func judgeRequests(t *testing.T, web *crawltest.Web, before, after []crawltest.Exchange, restart time.Time) {
	t.Helper()
	r := web.JudgeLog(append(before[:len(before):len(before)], after...), crawltest.JudgeOptions{
		MinDelay: 200 * time.Millisecond, RequiredProductToken: "decorum", AllowRevisits: true,
		RestartTimes: []time.Time{restart}, CrashLossWindow: time.Second,
	})
	if !r.OK() {
		t.Errorf("the judge says:\n%s", r)
	}
}

// refetchedPages returns the requests in after for pages that were answered completely more than a
// second before the kill. The store writes every 200 ms, so it knows these answers.
func refetchedPages(p oldState, after []crawltest.Exchange) (repeated []string) {
	answered := map[string]bool{}
	for _, x := range p.requestLog {
		if x.Status != 0 && x.Status < 429 && !x.Incomplete && x.End.Before(p.killedAt.Add(-time.Second)) {
			answered[x.Method+" "+x.URL] = true
		}
	}
	for _, x := range after {
		if answered[x.Method+" "+x.URL] {
			repeated = append(repeated, fmt.Sprintf("%s %s", x.Method, x.URL))
		}
	}
	return repeated
}

// countRequests returns how often each URL was requested, by method and URL.
func countRequests(log []crawltest.Exchange) map[string]int {
	n := map[string]int{}
	for _, x := range log {
		n[x.Method+" "+x.URL]++
	}
	return n
}
