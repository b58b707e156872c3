package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A projectRunner runs one project of a daemon. Its commands are carried out, and its crawls run, in
// one goroutine: that of runCommandLoop.
type projectRunner struct {
	name             string
	env              *engine.Dependencies // its log names the project
	dir              datadir.StateDir
	eventBroker      *eventBroker
	daemonStateStore *daemonStateStore
	robotsStore      storage.NoteStore // shared by all projects
	engine.SharedResources
	brakes      *operatorBrakes
	metrics     *metrics.Metrics
	storeHandle *storeHandle

	outputs        projectOutputs
	appliedProject *loadedProject // the file whose seeds are queued; only runCommandLoop uses it

	state         *projectLifecycle
	engine        *currentEngine
	availability  *storeAvailability
	diskFullState diskFullState
	statsTracker  projectStatsTracker
	ended         chan struct{} // closed when runCommandLoop has returned
}

// newProjectRunner returns a runner without a command; reloadProjectFile gives it the first one.
func (s *Supervisor) newProjectRunner(name string) *projectRunner {
	env := *s.env
	env.Log = newProjectLogger(s.env.Log, &s.eventBroker, name)
	r := &projectRunner{
		name: name, env: &env, dir: s.projectStateDir(name), eventBroker: &s.eventBroker,
		daemonStateStore: s.stateStore,
		robotsStore:      s.robotsStore, SharedResources: s.SharedResources, brakes: s.operatorBrakes,
		metrics: s.Metrics, ended: make(chan struct{}),
	}
	r.state = newProjectLifecycle(name, env.Log, r.eventBroker, r.daemonStateStore, &r.statsTracker)
	r.engine = &currentEngine{state: r.state}
	r.availability = newStoreAvailability(r.state)
	env.OnDiskFull = r.diskFullState.updateWaitingWrites
	r.storeHandle = newStoreHandle(r.dir, r.state.redisStoreIdentity, r.openStores, r.engine.clear)
	return r
}

// openStores opens the stores of the project. It fails if an import into them was not completed.
func (r *projectRunner) openStores() (datadir.CrawlStores, error) {
	s, err := r.openStoresAllowingPartialImport()
	if err != nil {
		return datadir.CrawlStores{}, err
	}
	if err := datadir.RequireCompleteImport(s.Frontier); err != nil {
		return datadir.CrawlStores{}, errors.Join(err, s.CloseProjectStores())
	}
	return s, nil
}

// openStoresAllowingPartialImport opens the stores that the project file names: those in Redis, or
// the bolt files in the project's directory.
func (r *projectRunner) openStoresAllowingPartialImport() (s datadir.CrawlStores, err error) {
	p, confinement := project.Default(), (*confine.ProjectAccess)(nil)
	if loaded := r.state.loadedProject(); loaded != nil {
		p, confinement = loaded.project, loaded.pathConfinement
	}
	r.outputs.resetForStoreReopen()
	opts := r.env.BoltOptions(p, r.outputs.sync)
	opts.ListOutputFiles = func() []bolt.OutputFileExtent { return r.outputs.durableExtents(r.dir) }
	// Redis servers may stop answering: availability records that.
	if p.Store.Redis.IsUsed() {
		opts.OnStallChange = r.availability.record
		return datadir.OpenRedisStores(p, confinement.OpenInput, opts)
	}
	if err := r.dir.RequireLocalState(); err != nil {
		return datadir.CrawlStores{}, err
	}
	// The disk of a file may be full: diskFullState records that.
	opts.OnCommitted, opts.SharedMemoryBudget = r.metrics.ObserveCommit, r.MemoryBudget
	r.diskFullState.setStoreError(nil)
	opts.OnStallChange = func(err error) { r.env.LogStoreWriteState(err); r.diskFullState.setStoreError(err) }
	s.Robots = r.robotsStore
	s.Frontier, err = datadir.OpenBoltFrontier(r.dir.Path(datadir.StoreFile), opts, r.robotsStore)
	return s, err
}

// runCommandLoop carries out commands until one has mustQuit, then closes r.ended.
func (r *projectRunner) runCommandLoop() {
	defer close(r.ended)
	isAcquired := false // this goroutine uses the stores
	for version := 0; ; {
		o := r.state.waitForCommand(version)
		version = o.revision
		running := !o.mustQuit && o.desired.State == api.StateRunning && o.blockedReason() == ""
		// Release stores that have failed or that the file no longer names, and acquire stores for a run.
		if isAcquired && r.storeHandle.needsReopen() {
			isAcquired = r.releaseStores()
		}
		if running && !isAcquired {
			if isAcquired = r.acquireStores(); !isAcquired {
				continue
			}
		}
		if running {
			// After a failure, release the stores, so that the next start opens them again.
			mustReopen := r.runCrawl(o)
			if state, _ := r.state.current(); mustReopen || state == api.StateFailed {
				isAcquired = r.releaseStores()
			}
			continue
		}
		// Keep the stores only for a project that is paused: it is likely to resume.
		if isAcquired && (o.mustQuit || o.desired.State != api.StatePaused || o.blockedReason() != "") {
			isAcquired = r.releaseStores()
		}
		if o.mustQuit {
			return
		}
		if !isAcquired {
			r.availability.reset()
		}
		r.state.setInactive(o)
	}
}

// acquireStores acquires the stores for a run. If it cannot, it makes the project wait for the stores
// or fail, and returns false.
func (r *projectRunner) acquireStores() (isAcquired bool) {
	// Before the first visit, daemon.json must say that the daemon runs. Otherwise a crash would look
	// like an orderly end, and hosts would not get their full rest after it.
	err := r.daemonStateStore.retryWrite()
	if err == nil {
		_, err = r.storeHandle.acquire()
	}
	switch {
	case err == nil:
		r.availability.record(nil)
		return true
	case errors.Is(err, storage.ErrWriteStalled), disk.IsFull(err):
		r.retryCommandLater(err)
	default:
		r.state.setFailed(err)
	}
	return false
}

// releaseStores releases the stores, and closes them unless a query uses them. It returns false, the
// new value of isAcquired.
func (r *projectRunner) releaseStores() (isAcquired bool) {
	r.storeHandle.release()
	if err := r.storeHandle.closeIfUnused(); err != nil {
		r.env.Log.Error("the last changes of the project are lost; their visits will be repeated", "error", err)
	}
	return false
}

// retryCommandLater repeats the command after engine.UnavailableRetryInterval, because the stores or
// the disk are unavailable for cause. The project stays in the state running meanwhile.
func (r *projectRunner) retryCommandLater(cause error) {
	r.availability.record(cause)
	r.state.set(api.StateRunning, "")
	time.AfterFunc(engine.UnavailableRetryInterval, func() { r.state.updateCommand(func(*runnerTarget) {}) })
}

// runCrawl crawls until no URL is left, a limit is reached, or the command changes. mustReopen
// reports whether the stores must be opened again before the project continues.
func (r *projectRunner) runCrawl(o runnerTarget) (mustReopen bool) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if !r.state.beginRunIfLatest(o.revision, stop) {
		return false
	}
	defer r.state.clearRunInterrupt()
	// The error says why the crawl ended, which decides what the project does next.
	switch crawlErr := r.crawlLoadedProject(ctx, o.lastValidProject); {
	case crawlErr == nil, errors.Is(crawlErr, frontier.ErrEmpty):
		r.state.markDoneUnlessURLsAdded()
	case errors.Is(crawlErr, crawler.ErrPages), errors.Is(crawlErr, crawler.ErrBytes),
		errors.Is(crawlErr, engine.ErrTimeLimit):
		r.state.pauseAtLimit(o.revision, crawlErr)
	case errors.Is(crawlErr, errCommandChanged), errors.Is(crawlErr, crawler.ErrHalted):
	case errors.Is(crawlErr, storage.ErrWriteStalled):
		r.retryCommandLater(crawlErr)
	case disk.IsFull(crawlErr): // an output could not be opened or closed
		r.retryCommandLater(crawlErr)
		return true
	default:
		r.state.setFailed(crawlErr)
	}
	return false
}

// crawlLoadedProject runs one crawl of a project file, and returns why it ended. The caller has
// acquired the stores.
func (r *projectRunner) crawlLoadedProject(ctx context.Context, loaded *loadedProject) (err error) {
	// Apply the unused part of the limits: earlier runs count, too.
	limits := loaded.project.Limits
	if loaded.project.Store.Redis.IsUsed() {
		limits = project.LimitSettings{} // the WorkerCoordinator enforces them for all processes together
	}
	limits, err = r.statsTracker.remainingLimits(limits)
	if err != nil {
		return err
	}
	if limits.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(limits.Duration), engine.ErrTimeLimit)
		defer cancel()
	}
	g, err := r.engineConfig(ctx, loaded)
	if err != nil {
		return err
	}
	if err := r.outputs.openForProject(r.env, loaded, &g); err != nil {
		return err
	}
	// A run whose outputs cannot be closed fails, whatever ended it.
	defer func() { err = cmp.Or(r.outputs.close(), err) }()
	crawl, err := g.NewEngine(loaded.project, loaded.firstSeedPerOrigin)
	if err != nil {
		return err
	}
	defer crawl.CloseIdleConns()
	crawl.Crawler.Settings.MaxPages, crawl.Crawler.Settings.MaxReceivedBytes = int64(limits.Pages), int64(limits.Bytes)
	// From here on, queries use the engine of this run.
	r.engine.set(crawl, loaded)
	r.statsTracker.beginRun(crawl.Crawler)
	defer r.statsTracker.endRun()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer crawl.WorkerCoordinator.StartHeartbeats(stop)()
	if err := r.applyLoadedProject(ctx, crawl, loaded); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return crawl.Crawler.Run(ctx)
}

// engineConfig returns the configuration of a run's engine. The caller has acquired the stores. For
// a project in Redis it waits until the shared brakes are open, or ctx is done.
func (r *projectRunner) engineConfig(ctx context.Context, loaded *loadedProject) (g engine.Config, err error) {
	hooks := r.metrics.Hooks(r.name)
	countVisit := hooks.Visited
	hooks.Visited = func(v *crawler.Visit) { countVisit(v); r.publishVisit(v) }
	hooks.Acked = r.recordDelayShortfall
	g = engine.Config{
		Stores: *r.storeHandle.stores, Confinement: loaded.pathConfinement, Handlers: r.env.Handlers, Log: r.env.Log,
		Hooks: hooks, OnNewURLQueued: r.metrics.CountNewURLQueued, OnRefused: r.metrics.CountRefusedURL,
		SharedResources: r.SharedResources,
		RestartedAt:     r.HostDueStore.RestartedAt, WaitForRevisitsAndSuspensions: true,
	}
	if g.SharedBrakes = r.brakes.getOrStartSharedBrakes(loaded); g.SharedBrakes != nil {
		hostDueStore := *r.HostDueStore
		hostDueStore.Store, err = g.SharedBrakes.WaitForStore(ctx)
		g.HostDueStore = &hostDueStore
		g.ResetCountsIfLimitReached = r.statsTracker.mustResetSharedCounts.Load()
		g.OnLimitCountsReset = func() { r.statsTracker.mustResetSharedCounts.Store(false) }
	}
	return g, err
}

// applyLoadedProject adapts the stored crawl to a project file: it unparks URLs, ends suspensions and
// queues seeds. After an error, or the end of ctx, the next run repeats all steps.
func (r *projectRunner) applyLoadedProject(ctx context.Context, crawl *engine.Engine, loaded *loadedProject) error {
	if r.appliedProject == loaded {
		return nil
	}
	previous, _ := project.ReadFile(r.dir.Path(datadir.ProjectFile)) // nil, if unknown, counts as changed
	if err := crawl.UnparkIfChangedAndSaveProject(ctx, r.dir, previous); err != nil {
		return fmt.Errorf("cannot follow its file: %w", err)
	}
	// End suspensions of an earlier run, whose settings may have differed.
	err := crawl.Frontier.EndSuspensionsExcept(ctx, crawl.Crawler.ShouldStaySuspended)
	if err := errors.Join(err, crawl.QueueSeeds(ctx)); err != nil {
		return err
	}
	r.appliedProject = loaded
	return nil
}

// publishVisit publishes a finished visit as an event, if there are subscribers.
func (r *projectRunner) publishVisit(v *crawler.Visit) {
	if !r.eventBroker.hasSubscribers() {
		return
	}
	e := api.Event{
		Type: "visit", Project: r.name, Host: v.URL().Origin().Host(), URL: v.URL().String(),
		Status: v.Status(), Bytes: int64(v.BodyLen()), Duration: api.Milliseconds(v.End.Sub(v.Start)),
	}
	if v.Err != nil {
		e.Message = v.Err.Error()
	}
	r.eventBroker.publish(e)
}

// recordDelayShortfall records the largest time by which the host of an ack was visited before its
// delay had passed, if that happened.
func (r *projectRunner) recordDelayShortfall(a storage.Ack) {
	if a.HostState == nil {
		return
	}
	if shortfall := crawler.DecodeHostStats(a.HostState.EncodedStats).LargestDelayShortfall; shortfall > 0 {
		r.storeHandle.updateLargestDelayShortfall(shortfall)
	}
}
