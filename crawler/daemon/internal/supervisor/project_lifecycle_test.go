package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
)

// newTestRunnerState returns the lifecycle of a project without a runner, over a new state file.
func newTestRunnerState(t *testing.T, name string) *projectLifecycle {
	t.Helper()
	stateStore, err := openDaemonStateStore(filepath.Join(t.TempDir(), datadir.DaemonStateFile))
	if err != nil {
		t.Fatal(err)
	}
	return newProjectLifecycle(name, slog.New(slog.DiscardHandler), &eventBroker{}, stateStore, &projectStatsTracker{})
}

// checkState fails unless the project is in a state.
func checkState(t *testing.T, rs *projectLifecycle, want api.ProjectState) {
	t.Helper()
	if got, reason := rs.current(); got != want {
		t.Fatalf("the project is %s (%s), want %s", got, reason, want)
	}
}

// A project can start once it has a valid file. A change of its command ends its run. URLs that are
// added during a run keep the project from becoming done.
func TestRunnerState(t *testing.T) {
	rs := newTestRunnerState(t, "shop")
	checkState(t, rs, api.StateStopped)
	if err := rs.setDesired(api.StateRunning); err == nil {
		t.Error("a project without a file starts")
	}
	loaded := &loadedProject{project: project.Default()}
	if got := rs.applyReloadedProject(loaded, "digest 1"); got.Outcome != "new" || rs.loadedProject() != loaded {
		t.Errorf("%+v", got)
	}
	if got := rs.resultIfFileUnchanged("digest 1"); got == nil || got.Outcome != "none" {
		t.Errorf("the same file: %+v", got)
	}
	if err := rs.setDesired(api.StateRunning); err != nil {
		t.Fatal(err)
	}
	if !rs.stats.mustResetSharedCounts.Load() || rs.stateStore.desiredState("shop").State != api.StateRunning {
		t.Error("the start is not recorded, or its limits are not reset")
	}

	// A run begins only for the newest command, and ends with the next one.
	o := rs.waitForCommand(0)
	var interrupted error
	interrupt := func(err error) { interrupted = err }
	if rs.beginRunIfLatest(o.revision-1, interrupt) || !rs.beginRunIfLatest(o.revision, interrupt) || !rs.isRunning() {
		t.Fatal("a run begins for an old command, or none for the newest")
	}
	if got := rs.rejectFile("a typo", "digest 2", loaded); got.Outcome != "refused" || interrupted != nil {
		t.Errorf("a file with an error: %+v, and the run ends with %v", got, interrupted)
	}
	if err := rs.setDesired(api.StatePaused); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(interrupted, errCommandChanged) {
		t.Errorf("the run ends with %v", interrupted)
	}
	checkState(t, rs, api.StatePausing)
	rs.clearRunInterrupt()
	rs.setInactive(rs.waitForCommand(o.revision))
	checkState(t, rs, api.StatePaused)

	// A run without URLs makes the project done, unless URLs were added meanwhile.
	if err := rs.setDesired(api.StateRunning); err != nil {
		t.Fatal(err)
	}
	for _, wereAdded := range []bool{true, false} {
		o = rs.waitForCommand(o.revision)
		if !rs.beginRunIfLatest(o.revision, interrupt) {
			t.Fatal("no run begins")
		}
		if wereAdded {
			rs.resumeForNewURLs(true)
		}
		rs.markDoneUnlessURLsAdded()
		checkState(t, rs, map[bool]api.ProjectState{true: api.StateRunning, false: api.StateDone}[wereAdded])
	}
	rs.resumeIfDone()
	o = rs.waitForCommand(o.revision)
	rs.pauseAtLimit(o.revision-1, errors.New("of a run that is over"))
	checkState(t, rs, api.StateDone)
	rs.pauseAtLimit(o.revision, errors.New("limits.pages"))
	checkState(t, rs, api.StatePaused)
	if got := rs.stateStore.desiredState("shop"); got.State != api.StatePaused || got.Reason != "limits.pages" {
		t.Errorf("%+v is recorded", got)
	}

	// Without its file the project stops.
	if got := rs.handleProjectFileGone(nil); got.Outcome != "gone" {
		t.Errorf("%+v", got)
	}
	o = rs.waitForCommand(o.revision)
	rs.setInactive(o)
	checkState(t, rs, api.StateStopped)
}

// While the store of a project is unavailable, contexts end with the reason, and the API returns it.
func TestStoreAvailability(t *testing.T) {
	rs := newTestRunnerState(t, "shop")
	p := project.Default()
	p.Store.Redis.Addresses = []string{"redis.test:6379"}
	rs.applyReloadedProject(&loadedProject{project: p}, "digest")
	a := newStoreAvailability(rs)
	cause := errors.New("no route")
	ctx, stop := a.contextWhileAvailable(t.Context())
	defer stop()
	if a.err() != nil || ctx.Err() != nil || !errors.Is(a.wrapIfUnavailable(cause), cause) {
		t.Error("the store is not available at first")
	}
	a.record(cause)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, cause) || !strings.Contains(err.Error(), "redis.test:6379") {
		t.Errorf("the context ends with %v", err)
	}
	if err := a.wrapIfUnavailable(nil); err == nil || !strings.HasPrefix(err.Error(), "shop: ") {
		t.Errorf("the API says %v", err)
	}
	a.record(nil)
	if err := a.err(); err != nil {
		t.Errorf("the store is available again, and err returns %v", err)
	}
	a.record(cause)
	a.reset()
	if err := a.err(); err != nil {
		t.Errorf("after reset, err returns %v", err)
	}
	if a.wrapIfUnavailable(storage.ErrWriteStalled) == storage.ErrWriteStalled {
		t.Error("a stalled write is not reported as unavailable")
	}
}

// Between runs, a currentEngine builds a new engine for a changed project file. During a run, the engine
// stays.
func TestCurrentEngine(t *testing.T) {
	rs := newTestRunnerState(t, "shop")
	c := &currentEngine{state: rs}
	created := 0
	get := func() *engine.Engine {
		t.Helper()
		crawl, err := c.getOrCreate(datadir.CrawlStores{},
			func(stores datadir.CrawlStores, _ *loadedProject) (*engine.Engine, error) {
				created++
				return &engine.Engine{Stores: stores}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return crawl
	}
	if _, err := c.getOrCreate(datadir.CrawlStores{}, nil); err == nil {
		t.Error("a project without a file has an engine")
	}
	rs.applyReloadedProject(&loadedProject{}, "digest 1")
	if first := get(); first != get() || created != 1 {
		t.Errorf("%d engines are built from one file", created)
	}
	rs.applyReloadedProject(&loadedProject{}, "digest 2")
	if get(); created != 2 {
		t.Errorf("%d engines are built from two files", created)
	}

	// The engine of a run survives a new file, and receives new URLs.
	o := rs.waitForCommand(0)
	if !rs.beginRunIfLatest(o.revision, func(error) {}) {
		t.Fatal("no run begins")
	}
	ofRun := &engine.Engine{}
	c.set(ofRun, rs.loadedProject())
	rs.applyReloadedProject(&loadedProject{}, "digest 3")
	if get() != ofRun {
		t.Error("the engine of a run is replaced")
	}
	revision := rs.command.revision
	c.resumeForNewURLs(ofRun)
	if !rs.wereURLsAddedDuringRun || rs.command.revision != revision {
		t.Error("URLs that are added to a run end it")
	}
	c.resumeForNewURLs(&engine.Engine{})
	if rs.command.revision == revision {
		t.Error("URLs that are added through another engine do not end the run")
	}
	if visits := c.activeVisits(); visits == nil || len(visits) > 0 {
		t.Errorf("visits %v, want an empty list", visits)
	}
	c.halt() // must not fail without a crawl
	c.clear()
	rs.clearRunInterrupt()
	if get() == ofRun {
		t.Error("a cleared engine is used")
	}
}
