package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/storage"
)

// A project can be paused although daemon.json cannot be written. The error then says that the pause may
// not survive the daemon.
func TestServeStopsWhatItCannotKeep(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("a", f.ProjectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}",
		"scope: {max_depth: 2000}"))
	f.start(true)
	f.WaitForState("a", api.StateRunning)
	blockingDir := filepath.Join(f.WebFixture.DataDir(), datadir.DaemonStateFile+".new")
	if err := os.MkdirAll(filepath.Join(blockingDir, "not empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.ControlProject(t.Context(), "a", api.ActionPause); err == nil ||
		!strings.Contains(err.Error(), "may not survive") {
		t.Errorf("paused: %v", err)
	}
	f.WaitForState("a", api.StatePaused)
	if err := f.ControlProject(t.Context(), "a", api.ActionResume); err == nil {
		t.Error("it continues, and would not after a restart")
	}
	if err := os.RemoveAll(blockingDir); err != nil {
		t.Fatal(err)
	}
	if err := f.ControlProject(t.Context(), "a", api.ActionPause); err != nil { // again: now it can be recorded
		t.Error(err)
	}
	if w := f.stateStore.desiredState("a"); w.State != api.StatePaused {
		t.Errorf("the recorded state is %q", w.State)
	}
}

// URLs that are added while a run ends are visited by the next run.
func TestServeVisitsWhatIsAddedAtTheEnd(t *testing.T) {
	t.Parallel()
	var r *projectRunner
	f := newDaemonFixture(t, crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/": func(crawltest.PageRequest) crawltest.Response {
			r.outputs.mu.Lock() // blocks sync, so that no ack is written and the run cannot end
			return crawltest.HTML("")
		},
		"/late": crawltest.StaticPage(crawltest.HTML("")),
	}})
	f.PutProjectFile("a", f.ProjectYAML("http://a.example/", daemontest.NoDelayYAML))
	f.start(false)
	var err error
	if r, err = f.runners.find("a"); err != nil {
		t.Fatal(err)
	}
	f.DoActions("a", api.ActionStart)
	daemontest.WaitUntil(t, "no URL is left", func() bool {
		p := f.GetProject("a")
		return p.Stats.Pages == 1 && p.FrontierCounts.QueuedURLs+p.FrontierCounts.LeasedURLs == 0
	})
	late, err := decorum.ParseURL("http://a.example/late")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.withEngine(t.Context(), func(_ context.Context, crawl *engine.Engine) error {
		_, err := crawl.Frontier.Discover(t.Context(), storage.Entry{URL: late})
		r.engine.resumeForNewURLs(crawl)
		return err
	}); err != nil {
		t.Error(err)
	}
	r.outputs.mu.Unlock()
	daemontest.WaitUntil(t, "what was added is visited", func() bool { return f.GetProject("a").Stats.Pages == 2 })
	f.WaitForState("a", api.StateDone)
}
