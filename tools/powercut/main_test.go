package powercut

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
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/internal/testwait"
	"github.com/decorum-crawler/decorum/tools/powercut/disk"
	"github.com/decorum-crawler/decorum/tools/powercut/fusefs"
)

// How much is tested, more in .ci/proofs.
var (
	powerCuts     = flag.Int("cuts", 3, "how often the power is cut")
	damagedFiles  = flag.Int("damages", 3, "how many files are damaged")
	faultMoments  = flag.Int("faults", 1, "after how many operations each kind of them fails: so many moments are tried")
	firstSeed     = flag.Uint64("seed", 1, "seed of what is left to chance")
	testedCommand = flag.String("decorum", "", "test this program; empty: the one of this tree")
	perDirJournal = flag.Bool("strict", false, "names are on the disk only when their directory was synced")
)

// buildCommand builds the decorum command once, and returns its path.
var buildCommand = sync.OnceValues(func() (string, error) {
	if *testedCommand != "" {
		return filepath.Abs(*testedCommand)
	}
	dir, err := os.MkdirTemp("", "decorum")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "decorum")
	c := exec.Command("go", "build", "-o", program, "./cmd/decorum")
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	testwait.SetTestParallelism(6) // crawls wait most of the time
	code := m.Run()
	if program, err := buildCommand(); err == nil && *testedCommand == "" {
		os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// A machine is a disk, what is mounted of it, and a web that is crawled.
type machine struct {
	t        *testing.T
	disk     *disk.Disk
	mountDir string        // where it is mounted
	mount    *fusefs.Mount // nil: the power is off
	web      *crawltest.Web
	server   *crawltest.Server // of web

	startTimes   []time.Time // of processes that crawl
	failureTimes []time.Time // of the runs that were killed or failed
}

// newMachine returns a machine whose power is on. The test is skipped where there is no
// FUSE.
func newMachine(t *testing.T) *machine {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err == nil {
		f.Close()
	} else {
		t.Skipf("no FUSE: %v", err)
	}
	m := &machine{t: t, disk: disk.New(), mountDir: t.TempDir(), web: newWeb()}
	m.disk.PerDirJournal = *perDirJournal
	s, err := m.web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	m.server = s
	t.Cleanup(func() { s.Close() })
	// What the power takes away in its first moment is a crawl, and not its directory.
	if _, err := m.disk.CreateNode(m.disk.Root(), "data", true); err != nil {
		t.Fatal(err)
	}
	if err := m.disk.SyncNode(m.disk.Root(), "/"); err != nil {
		t.Fatal(err)
	}
	if err := m.powerOn(); err != nil {
		t.Skipf("no FUSE: %v", err)
	}
	t.Cleanup(m.powerOff)
	return m
}

func (m *machine) powerOn() (err error) {
	m.mount, err = fusefs.MountDisk(m.mountDir, m.disk)
	return err
}

// powerOff unmounts the disk. What the kernel has cached of it is gone then.
func (m *machine) powerOff() {
	if m.mount == nil {
		return
	}
	// The kernel may be busy for a moment with what a killed process had open.
	var err error
	for range 100 {
		if err = m.mount.Unmount(); err == nil {
			m.mount = nil
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	m.t.Errorf("unmount: %v", errors.Join(err, syscall.Unmount(m.mountDir, syscall.MNT_DETACH)))
	m.mount = nil
}

// cutPower cuts the power, and has it come back.
func (m *machine) cutPower(rnd *rand.Rand) {
	m.t.Helper()
	m.powerOff()
	m.disk.CutPower(rnd)
	if err := m.powerOn(); err != nil {
		m.t.Fatal(err)
	}
}

// logRepeatFlags names the flags of a test that has failed.
func (m *machine) logRepeatFlags(flags string) {
	if m.t.Failed() {
		m.t.Logf("%s repeats it", flags)
	}
}

// dataDir returns the data directory of the crawl.
func (m *machine) dataDir() string { return filepath.Join(m.mountDir, "data") }

// A commandResult is a process that has ended.
type commandResult struct {
	exitCode int // -1: it was killed
	stdout   string
	stderr   string
	timedOut bool // it had to be killed, being idle for longer than it may be
}

// runTimeout is for how long a process may run that is not killed. A crawl takes seconds.
const runTimeout = 45 * time.Second

// runCrawl starts the crawl, or goes on with it, and kills it after a time, 0: never.
func (m *machine) runCrawl(killAfter time.Duration) commandResult {
	args := []string{"--data", m.dataDir(), "--warc", filepath.Join(m.mountDir, "warc"),
		"--contact=mailto:bot@example.com", "--allow-private", "--connect-to=::" + m.server.Addr, "--delay", hostDelay.String(), "--max-depth=100", "--progress=none", "--log-level=error"}
	switch {
	case m.hasData("data/frontier.db") && m.hasData("data/crawl.yaml"):
		args = append(args, "--resume")
	case m.sinceFirstRequest() > unflushedWindow:
		m.t.Fatalf("the crawl is gone %v after its first request", m.sinceFirstRequest())
	default:
		// The crawl's first moment was lost as a whole. The new crawl knows of no
		// visit, so it must wait: no real machine restarts this fast.
		time.Sleep(3 * hostDelay)
		args = append(append(args, "--fresh"), m.web.CrawlSettings.Seeds...)
	}
	m.startTimes = append(m.startTimes, time.Now())
	return m.runCommand(killAfter, append([]string{"crawl"}, args...)...)
}

// hasData reports whether the disk has something of a file.
func (m *machine) hasData(path string) bool {
	n, err := m.disk.NodeAtPath(path)
	return err == nil && m.disk.FileSize(n) > 0
}

// sinceFirstRequest returns how long ago the first request of the crawl was; 0 if there was none.
func (m *machine) sinceFirstRequest() time.Duration {
	if log := m.web.Log(); len(log) > 0 {
		return time.Since(log[0].Start)
	}
	return 0
}

// runCommand runs the command, and kills it after a time, 0: never.
func (m *machine) runCommand(killAfter time.Duration, args ...string) commandResult {
	m.t.Helper()
	program, err := buildCommand()
	if err != nil {
		m.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr, c.WaitDelay = &stdout, &stderr, 10*time.Second
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	limit := killAfter
	if killAfter == 0 {
		limit = runTimeout
	}
	end := c.Process.Kill
	if killAfter == 0 { // it says where it hangs
		end = func() error { return c.Process.Signal(syscall.SIGQUIT) }
	}
	kill := time.AfterFunc(limit, func() { _ = end() })
	err = c.Wait()
	wasKilled := !kill.Stop()
	if err != nil {
		if err := m.server.AwaitDisconnects(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
		m.failureTimes = append(m.failureTimes, time.Now())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return commandResult{exitCode: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), timedOut: wasKilled && killAfter == 0}
}

// lastLine returns the last error that a process wrote, or the last line.
func (r commandResult) lastLine() string {
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "decorum: ") || strings.Contains(line, "level=ERROR") {
			return line
		}
	}
	return lines[len(lines)-1]
}
