package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// Where nothing can be written any more a project can still be stopped; that it may
// not survive the daemon is said.
func TestServeStopsWhatItCannotKeep(t *testing.T) {
	f := farmOf(t, chain("a.example", 1000))
	f.put("a", f.file("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	f.start(true)
	f.becomes("a", api.StateRunning)
	inTheWay := filepath.Join(f.visit.data(), wishesFile+".new")
	if err := os.Mkdir(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.ControlProject(t.Context(), "a", api.ActionPause); err == nil || !strings.Contains(err.Error(), "may not survive") {
		t.Errorf("paused: %v", err)
	}
	f.becomes("a", api.StatePaused)
	if err := f.ControlProject(t.Context(), "a", api.ActionResume); err == nil {
		t.Error("it goes on, and would not after a restart")
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := f.ControlProject(t.Context(), "a", api.ActionPause); err != nil { // again: now it can be kept
		t.Error(err)
	}
	if w := f.wishes.of("a"); w.State != api.StatePaused {
		t.Errorf("kept is %q", w.State)
	}
}

// URLs that are added while a run comes to its end are visited: by another.
func TestServeVisitsWhatIsAddedAtTheEnd(t *testing.T) {
	t.Parallel()
	var r *runner
	f := farmOf(t, crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/": func(crawltest.PageRequest) crawltest.Response {
			r.records.mu.Lock() // nothing reaches the disk from now on, so that the run cannot end
			return crawltest.HTML("")
		},
		"/late": crawltest.StaticPage(crawltest.HTML("")),
	}})
	f.put("a", f.file("http://a.example/", brisk))
	f.start(false)
	var err error
	if r, err = f.find("a"); err != nil {
		t.Fatal(err)
	}
	f.do("a", api.ActionStart)
	await(t, "nothing is left", func() bool {
		p := f.project("a")
		return p.Stats.Pages == 1 && p.FrontierCounts.QueuedURLs+p.FrontierCounts.LeasedURLs == 0
	})
	late, err := decorum.ParseURL("http://a.example/late")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.consult(t.Context(), func(_ context.Context, engine *crawlEngine, _ stores) error {
		_, err := engine.frontier.Discover(t.Context(), storage.Entry{URL: late})
		r.stir(engine)
		return err
	}); err != nil {
		t.Error(err)
	}
	r.records.mu.Unlock()
	await(t, "what was added is visited", func() bool { return f.project("a").Stats.Pages == 2 })
	f.becomes("a", api.StateDone)
}
