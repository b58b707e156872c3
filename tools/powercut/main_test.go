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

// The flags of the tests. The defaults are for a quick run.
var (
	powerCuts     = flag.Int("cuts", 3, "number of power cuts")
	damagedFiles  = flag.Int("damages", 3, "number of damaged files")
	faultMoments  = flag.Int("faults", 1, "number of moments at which each kind of operation fails")
	firstSeed     = flag.Uint64("seed", 1, "seed of the first random choices")
	testedCommand = flag.String("decorum", "", "program to test; empty: the decorum command of this tree")
	perDirJournal = flag.Bool("strict", false, "a name is on the disk only after a sync of its directory")
)

// buildCommand builds the decorum command once, and returns its path. With -decorum it returns that
// path.
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
	testwait.SetTestParallelism(6) // crawls mostly wait
	code := m.Run()
	if program, err := buildCommand(); err == nil && *testedCommand == "" {
		os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// A machine is a disk, its mount, and the web that crawls on the machine visit.
type machine struct {
	t        *testing.T
	disk     *disk.Disk
	mountDir string        // where disk is mounted
	mount    *fusefs.Mount // nil: the power is off
	web      *crawltest.Web
	server   *crawltest.Server // of web

	startTimes   []time.Time // of crawls
	failureTimes []time.Time // of the runs that were killed or failed
}

// newMachine returns a machine whose power is on. It skips the test where the disk cannot be
// mounted.
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
	// The data directory exists, so that even an early power cut loses only the crawl in it.
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

// powerOn mounts the disk.
func (m *machine) powerOn() (err error) {
	m.mount, err = fusefs.MountDisk(m.mountDir, m.disk)
	return err
}

// powerOff unmounts the disk, which drops the kernel's cache of it.
func (m *machine) powerOff() {
	if m.mount == nil {
		return
	}
	// The kernel may need a moment to close the files of a killed process.
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

// cutPower cuts the power and turns it on again.
func (m *machine) cutPower(rnd *rand.Rand) {
	m.t.Helper()
	m.powerOff()
	m.disk.CutPower(rnd)
	if err := m.powerOn(); err != nil {
		m.t.Fatal(err)
	}
}

// logRepeatFlags logs the flags that repeat a failed test.
func (m *machine) logRepeatFlags(flags string) {
	if m.t.Failed() {
		m.t.Logf("to repeat this test: %s", flags)
	}
}

// dataDir returns the data directory of the crawl.
func (m *machine) dataDir() string { return filepath.Join(m.mountDir, "data") }

// A commandResult is the result of a process that has ended.
type commandResult struct {
	exitCode int // -1: a signal ended it
	stdout   string
	stderr   string
	timedOut bool // runTimeout ended it
}

// runTimeout is how long a process may run that the test does not kill. A crawl takes seconds.
const runTimeout = 45 * time.Second

// runCrawl starts the crawl, or resumes it if the disk has one, and kills it after killAfter. With
// 0 it waits for the end of the crawl.
func (m *machine) runCrawl(killAfter time.Duration) commandResult {
	args := []string{"--data", m.dataDir(), "--warc", filepath.Join(m.mountDir, "warc"),
		"--contact=mailto:bot@example.com", "--allow-private", "--connect-to=::" + m.server.Addr, "--delay",
		hostDelay.String(), "--max-depth=100", "--sitemap-xml=false", "--progress=none", "--log-level=error"}
	switch {
	case m.hasData("data/frontier.db") && m.hasData("data/crawl.yaml"):
		args = append(args, "--resume")
	case m.sinceFirstRequest() > unflushedWindow:
		m.t.Fatalf("the disk lost the crawl %v after its first request", m.sinceFirstRequest())
	default:
		// The cut lost the whole crawl soon after its start. The new crawl does not know the earlier
		// visits, so wait for their delays: no real machine restarts this fast.
		time.Sleep(3 * hostDelay)
		args = append(append(args, "--fresh"), m.web.CrawlSettings.Seeds...)
	}
	m.startTimes = append(m.startTimes, time.Now())
	return m.runCommand(killAfter, append([]string{"crawl"}, args...)...)
}

// hasData reports whether the disk has a file at path that is not empty.
func (m *machine) hasData(path string) bool {
	n, err := m.disk.NodeAtPath(path)
	return err == nil && m.disk.FileSize(n) > 0
}

// sinceFirstRequest returns how long ago the first request of the crawl was, or 0 before it.
func (m *machine) sinceFirstRequest() time.Duration {
	if log := m.web.Log(); len(log) > 0 {
		return time.Since(log[0].Start)
	}
	return 0
}

// runCommand runs the command and kills it after killAfter. With 0 it waits for the end of the
// command, at most runTimeout.
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
	// Kill the command in time. SIGQUIT makes one that hangs print its goroutines.
	limit := killAfter
	if killAfter == 0 {
		limit = runTimeout
	}
	end := c.Process.Kill
	if killAfter == 0 {
		end = func() error { return c.Process.Signal(syscall.SIGQUIT) }
	}
	kill := time.AfterFunc(limit, func() { _ = end() })
	err = c.Wait()
	wasKilled := !kill.Stop()
	// Requests of a failed process are in the web's log only after their connections have ended.
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
	return commandResult{exitCode: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(),
		timedOut: wasKilled && killAfter == 0}
}

// lastLine returns the last line of standard error with an error, or the last line of all.
func (r commandResult) lastLine() string {
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "decorum: ") || strings.Contains(line, "level=ERROR") {
			return line
		}
	}
	return lines[len(lines)-1]
}
