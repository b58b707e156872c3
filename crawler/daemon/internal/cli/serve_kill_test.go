package cli

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor/supervisortest"
)

// serveKills is how often TestServeKill kills the daemon; more often in .ci/proofs. After each kill the
// daemon visits no host for ten seconds.
var serveKills = flag.Int("serve-kills", 1, "how often TestServeKill kills the daemon")

// TestServeKill kills a daemon with five projects repeatedly. Running projects continue, the paused
// one stays paused, and a braked host is never visited. Projects that share a host keep its pace
// together, the output of each has all its pages, and the server sees no rule broken, across the
// restarts too.
func TestServeKill(t *testing.T) {
	if testing.Short() {
		t.Skip("the killed daemon is a separate process")
	}
	t.Parallel()                    // it mostly waits
	pages := 15 + 6*(*serveKills-1) // so that the last daemon to be killed still has pages to visit
	f := &commandFixture{supervisortest.NewFixtureOn(t, daemontest.KillTestWeb(killDelay, pages, nil))}
	projects := map[string][]int{"one": {0, 1}, "two": {1, 2}, "three": {2, 3}, "four": {4, 5}, "five": {6, 7}}
	for name, hosts := range projects {
		var seeds []string
		for _, h := range hosts {
			seeds = append(seeds, "http://"+daemontest.KillTestHostName(h)+"/")
		}
		f.PutProjectFile(name, f.ProjectYAML(strings.Join(seeds, ", "), "politeness: {delay: 100ms}",
			"scope: {max_depth: 100}"))
	}
	f.Start(false)
	for name := range projects {
		f.DoActions(name, api.ActionStart)
	}
	f.DoActions("five", api.ActionPause)
	if err := f.SetBrake(t.Context(), api.Brake{Host: daemontest.KillTestHostName(5), Stop: true,
		Reason: "its owner asked", By: "test"}); err != nil {
		t.Fatal(err)
	}
	f.WaitForState("five", api.StatePaused)
	f.Stop()
	pausedHosts := time.Now() // five is paused and the brake is on

	rnd := rand.New(rand.NewPCG(*killSeed, 5))
	var starts []time.Time
	for range *serveKills {
		starts = append(starts, f.runAndKillDaemon(rnd))
	}
	starts = append(starts, time.Now())
	f.Start(false)
	for name := range projects {
		switch name {
		case "five":
			f.WaitForState(name, api.StatePaused)
		case "four":
			daemontest.WaitUntil(t, "four has visited all that it may", func() bool {
				return missingPages(t, f, name, projects[name][:1]) == nil
			})
		default:
			f.WaitForState(name, api.StateDone)
		}
	}
	brakes, err := f.Brakes(t.Context())
	if err != nil || len(brakes) != 1 || brakes[0].Host != daemontest.KillTestHostName(5) ||
		brakes[0].Reason != "its owner asked" {
		t.Errorf("brakes %+v, %v; want the one that was set", brakes, err)
	}
	f.Stop()
	for name, hosts := range projects {
		if name == "five" || name == "four" {
			continue
		}
		if pages := missingPages(t, f, name, hosts); pages != nil {
			t.Errorf("%s has not visited %q", name, pages)
		}
	}
	for _, x := range f.Web.Log() {
		for _, h := range []int{5, 6, 7} {
			if x.Start.After(pausedHosts) && strings.HasPrefix(x.URL, "http://"+daemontest.KillTestHostName(h)+"/") {
				t.Errorf("%s was requested at %v", x.URL, x.Start)
			}
		}
	}
	report := f.Web.Judge(crawltest.JudgeOptions{MinDelay: killDelay, RequiredProductToken: "decorum",
		RestartTimes: starts, CrashLossWindow: maxUnflushedAge, AllowRevisits: true})
	if !report.OK() {
		t.Errorf("the judge says:\n%s", report)
	}
	t.Logf("%d kills, %d requests", *serveKills, report.Requests)
}

// runAndKillDaemon runs the daemon as a separate process, kills it after some more visits, and returns
// the time of its start.
func (f *commandFixture) runAndKillDaemon(rnd *rand.Rand) (started time.Time) {
	f.T.Helper()
	started = time.Now()
	before, more := len(f.Web.Log()), 1+rnd.IntN(40)
	c, stderr := newCommandProcess(f.T, "serve", "--listen=127.0.0.1:0", "--data", f.WebFixture.DataDir(), "--projects",
		f.ProjectFilesPath(), "--log-level=error")
	if err := c.Start(); err != nil {
		f.T.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- c.Wait() }()
	daemontest.WaitUntil(f.T, "the daemon continues", func() bool {
		select {
		case err := <-exited:
			f.T.Fatalf("the daemon ended with %v:\n%s", err, stderr)
		default:
		}
		return len(f.Web.Log()) >= before+more
	})
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		f.T.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-exited; !errors.As(err, &exit) || exit.Exited() {
		f.T.Fatalf("the daemon ended with %v:\n%s", err, stderr)
	}
	if err := f.Server.AwaitDisconnects(f.T.Context()); err != nil {
		f.T.Fatal(err)
	}
	return started
}

// missingPages returns the pages of the given hosts that are missing in the output of a project.
func missingPages(t *testing.T, f *commandFixture, name string, hosts []int) (pages []string) {
	t.Helper()
	got := slices.Compact(daemontest.SortedURLs(daemontest.ReadRecords(t,
		filepath.Join(f.WebFixture.DataDir(), datadir.ProjectsDir, name, datadir.OutputFile))))
	for _, url := range f.Web.ReachablePages() {
		here := slices.ContainsFunc(hosts, func(h int) bool {
			return strings.HasPrefix(url, "http://"+daemontest.KillTestHostName(h)+"/")
		})
		moved := strings.HasSuffix(url, "/moved") // a host of another project redirects to it
		if _, found := slices.BinarySearch(got, url); here && !moved && !found {
			pages = append(pages, url)
		}
	}
	return pages
}

// A daemon notifies systemd that it is ready, and ends at a signal.
func TestServeSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("the daemon is a separate process")
	}
	t.Parallel()
	f := newCommandFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("a", f.ProjectYAML("http://a.example/0", "politeness: {delay: 10ms, adaptive: 0}",
		"scope: {max_depth: 1000}"))
	manager := daemontest.ListenAsSystemd(t)
	c, stderr := newCommandProcess(t, "serve", "--listen=127.0.0.1:0", "--data", f.WebFixture.DataDir(), "--projects",
		f.ProjectFilesPath(), "--start-new")
	c.Env = append(c.Env, "NOTIFY_SOCKET="+manager.LocalAddr().String())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if got := daemontest.ReadNotification(t, manager); got != "READY=1" {
		t.Errorf("the service manager gets %q", got)
	}
	daemontest.WaitUntil(t, "it crawls", func() bool { return len(f.Web.Log()) > 5 })
	second, stderrText := newCommandProcess(t, "serve", "--listen=127.0.0.1:0", "--data", f.WebFixture.DataDir(),
		"--projects", f.ProjectFilesPath())
	if err := second.Run(); err == nil ||
		!strings.Contains(stderrText.String(), fmt.Sprintf("in use by process %d", c.Process.Pid)) {
		t.Errorf("a second daemon on the same data ends with %v: %s", err, stderrText)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := daemontest.ReadNotification(t, manager); got != "STOPPING=1" {
		t.Errorf("the service manager gets %q", got)
	}
	err := c.Wait()
	if c.ProcessState.ExitCode() != command.ExitStopped || !strings.Contains(stderr.String(), "nothing is lost") {
		t.Errorf("it ended with %v:\n%s", err, stderr)
	}
	n := len(f.Web.Log())
	if got := daemontest.ReadRecords(t, filepath.Join(f.WebFixture.DataDir(), datadir.ProjectsDir, "a",
		datadir.OutputFile)); len(got) != n-1 {
		t.Errorf("%d requests, one of them for robots.txt, and %d lines", n, len(got))
	}
}
