package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// runMemoryKills enables TestServeMemoryKill, which takes half a minute and needs root.
var runMemoryKills = flag.Bool("memory-kills", false,
	"run a daemon in a memory cgroup until the kernel kills it, twice")

// newMemoryCgroup makes a cgroup, of version 1 or 2, whose processes may use limit bytes.
// It skips the test if it cannot make one.
func newMemoryCgroup(t *testing.T, limit int) (dir string) {
	t.Helper()
	dir, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		dir, file = "/sys/fs/cgroup", "memory.max"
	}
	dir = filepath.Join(dir, "decorum-memory-kill-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no memory cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		for range 100 { // the kernel takes a moment to notice that the last process has ended
			if err := os.Remove(dir); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s is left", dir)
	})
	if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0); err != nil {
		t.Skipf("the memory of a cgroup cannot be limited here: %v", err)
	}
	return dir
}

// serveInCgroup starts the daemon in a cgroup without garbage collection, so that its memory grows
// with the work of its projects.
func (f *commandFixture) serveInCgroup(group string) (stop func(), ended chan error, stderr func() string) {
	f.T.Helper()
	c, _ := newCommandProcess(f.T, "serve", "--listen=127.0.0.1:0", "--data", f.WebFixture.DataDir(),
		"--projects", f.ProjectFilesPath())
	c.Args = append([]string{"sh", "-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group, c.Path}, c.Args[1:]...)
	c.Path, c.Env = "/bin/sh", append(c.Environ(), "GOGC=off", "GOMEMLIMIT=off")
	log, err := os.Create(filepath.Join(f.T.TempDir(), "log")) // read while the daemon writes it
	if err != nil {
		f.T.Fatal(err)
	}
	defer log.Close()
	c.Stderr = log
	if err := c.Start(); err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(func() { c.Process.Kill() })
	ended = make(chan error, 1)
	go func() { ended <- c.Wait() }()
	read := func() string {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			f.T.Error(err)
		}
		return string(text)
	}
	return func() { c.Process.Signal(syscall.SIGTERM) }, ended, read
}

// TestServeMemoryKill lets the kernel kill a daemon for its memory twice. After the next start, the
// project that held most of the memory is stopped and the log says why; the other project is in its
// old state.
func TestServeMemoryKill(t *testing.T) {
	if !*runMemoryKills {
		t.Skip("run only with -memory-kills")
	}
	group := newMemoryCgroup(t, 72<<20)
	f := newCommandFixture(t, daemontest.ChainSite("bad.example", 20_000), daemontest.ChainSite("good.example", 3))
	f.PutProjectFile("bad", f.ProjectYAML("http://bad.example/0", "politeness: {delay: 1ms}",
		"scope: {max_depth: 100000}"))
	f.PutProjectFile("good", f.ProjectYAML("http://good.example/0"))
	f.Start(true)
	f.WaitForState("good", api.StateDone)
	f.Stop()
	for round := range 2 {
		_, ended, stderr := f.serveInCgroup(group)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "killed") {
				t.Fatalf("round %d: the daemon ended with %v:\n%s", round, err, stderr())
			}
		case <-ctx.Done():
			t.Fatalf("round %d: the daemon was not killed:\n%s", round, stderr())
		}
		cancel()
		if strings.Contains(stderr(), "comes up stopped") {
			t.Fatalf("round %d: a project is stopped too early:\n%s", round, stderr())
		}
	}
	stop, ended, stderr := f.serveInCgroup(group)
	daemontest.WaitUntil(t, "the log says that the project is stopped", func() bool {
		return strings.Contains(stderr(), "the project comes up stopped")
	})
	state, err := os.ReadFile(filepath.Join(f.WebFixture.DataDir(), datadir.DaemonStateFile))
	stop()
	var exit *exec.ExitError
	if end := <-ended; err != nil || !errors.As(end, &exit) || exit.ExitCode() != command.ExitStopped {
		t.Fatalf("the daemon ended with %v (%v):\n%s", end, err, stderr())
	}
	var wanted struct {
		Projects map[string]struct {
			State  api.ProjectState `json:"wanted"`
			Reason string           `json:"why"`
		} `json:"projects"`
	}
	if err := json.Unmarshal(state, &wanted); err != nil {
		t.Fatal(err)
	}
	if bad, good := wanted.Projects["bad"], wanted.Projects["good"]; bad.State != api.StateStopped ||
		bad.Reason == "" || good.State != api.StateRunning {
		t.Errorf("wanted states: bad %+v, good %+v", bad, good)
	}
	t.Log(wanted.Projects["bad"].Reason)
}
