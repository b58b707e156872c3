package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// While the disk is full, a daemon is not ready, and its project says why. The daemon can also start
// then. When there is space again, the project continues by itself.
func TestServeOnAFullDisk(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 100_000))
	f.WebFixture.Dir = testfile.MountSmallFileSystem(t)
	if err := os.Mkdir(f.ProjectFilesPath(), 0o755); err != nil {
		t.Fatal(err)
	}
	f.PutProjectFile("books", f.ProjectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}",
		"scope: {max_depth: 1000000}"))
	ballast := filepath.Join(f.Dir, "ballast")
	notReady := func(what string) {
		t.Helper()
		var err error
		daemontest.WaitUntil(t, what+", the daemon is not ready because the disk is full", func() bool {
			err = f.CheckReady(t.Context())
			return errors.Is(err, api.ErrDiskFull)
		})
		if p := f.GetProject("books"); !strings.Contains(err.Error(), "project books waits") ||
			!strings.Contains(p.StateReason, "no space left on device") {
			t.Errorf("%s: ready says %q, the project %s (%s)", what, err, p.State, p.StateReason)
		}
	}
	continues := func(what string) {
		t.Helper()
		pages := f.GetProject("books").Stats.Pages
		daemontest.WaitUntil(t, what+", the project continues", func() bool {
			return f.CheckReady(t.Context()) == nil && f.GetProject("books").Stats.Pages > pages+2
		})
	}
	f.start(true)
	continues("at first")
	testfile.FillDisk(t, ballast)
	notReady("while it runs")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	continues("when the disk has space")

	f.Stop()
	testfile.FillDisk(t, ballast)
	f.start(false)
	notReady("after a start")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	continues("when the disk has space again")
}

// A daemon can start on a full disk when a project must come up stopped, and the project stays stopped
// when there is space again.
func TestMemoryStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 3))
	f.WebFixture.Dir = testfile.MountSmallFileSystem(t)
	f.readUsage = func() memoryUsage { return memoryUsage{LiveBytes: 1, LimitBytes: 1000} }
	ballast := filepath.Join(f.Dir, "ballast")
	if err := os.Mkdir(f.ProjectFilesPath(), 0o755); err != nil {
		t.Fatal(err)
	}
	f.PutProjectFile("books", f.ProjectYAML("http://a.example/"))
	f.start(true)
	f.WaitForState("books", api.StateDone)
	f.Stop()
	left := `{"ended": false, "kept_bytes": 950, "limit_bytes": 1000, "largest": "books", "suspect": "books", "kills_in_a_row": 1}`
	if err := os.WriteFile(filepath.Join(f.WebFixture.DataDir(), memoryRecordFile), []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	testfile.FillDisk(t, ballast)
	f.start(false)
	if p := f.WaitForState("books", api.StateStopped); p.StateReason == "" {
		t.Error("on a full disk the reason for the stop is lost")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.Stop()
	f.start(false)
	if p := f.WaitForState("books", api.StateStopped); p.StateReason == "" {
		t.Error("after another start the reason for the stop is lost")
	}
}
