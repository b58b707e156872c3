package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A foregroundRun is one run of a crawl in the foreground: its files, and the rooms on them.
type foregroundRun struct {
	*engine.Engine
	stores       datadir.CrawlStores
	sharedBrakes *engine.CrossProcessBrakes
	visitedHosts visitedHostSet
	isResumed    bool // an earlier run has left something
	startedAt    time.Time
}

// openCrawlRun opens the crawl's state, and puts the rooms together on it.
func (a *program) openCrawlRun(p project.Project, seedPerOrigin []decorum.URL, o sinks.Outputs, s crawlOptions) (_ *foregroundRun, err error) {
	j := &foregroundRun{visitedHosts: visitedHostSet{names: map[string]bool{}}, startedAt: time.Now(), isResumed: s.resume}
	opts := a.BoltOptions(p, o.Sync)
	opts.ListOutputFiles = func() []bolt.OutputFileExtent { return o.DurableExtents(datadir.StateDir(p.Store.Path)) }
	if j.stores, err = datadir.OpenStores(p, opts); err != nil {
		return nil, err
	}
	g := engine.Config{
		Stores: j.stores, Outputs: o, Handlers: a.Handlers, Log: a.Log,
		Hooks: crawler.Hooks{Visited: j.visitedHosts.addVisitedHost}, FastRetries: s.fastRetries,
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts(), MemoryPressureMonitor: engine.NewMemoryPressureMonitor(memlimit.Get(), a.Log), BodyMemory: a.BodyMemory},
	}
	if s.resume {
		g.RestartedAt = j.startedAt
	}
	if p.Store.Redis.IsUsed() {
		err = j.followSharedBrakes(p.Store.Redis, &g)
	}
	if err == nil {
		j.Engine, err = g.NewEngine(p, seedPerOrigin)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// followSharedBrakes opens the brakes that the processes of the crawl's project share, so that the crawl
// obeys the brakes that daemons set. It waits up to datadir.RedisOpenTimeout for Redis.
func (j *foregroundRun) followSharedBrakes(r project.RedisSettings, g *engine.Config) (err error) {
	g.OperatorBrakes = &politeness.Brakes{}
	j.sharedBrakes = engine.StartCrossProcessBrakes(r, nil, func(shared map[string]string, _ func() bool) (map[string]string, bool) {
		if shared != nil {
			supervisor.ReplaceBrakes(g.OperatorBrakes, shared, g.Log)
		}
		return nil, true // the crawl sets no brakes itself
	}, g.Log)
	g.SharedBrakes, g.ResetCountsIfLimitReached = j.sharedBrakes, true
	ctx, cancel := context.WithTimeoutCause(context.Background(), datadir.RedisOpenTimeout, storage.ErrWriteStalled)
	defer cancel()
	g.HostDueStore = &crawler.HostDueStore{} // RestartedAt stays zero: the frontier keeps the short rests itself
	g.HostDueStore.Store, err = j.sharedBrakes.WaitForStore(ctx)
	return err
}

// Close closes the crawl's state.
func (j *foregroundRun) Close() error { return errors.Join(j.stores.Close(), j.sharedBrakes.Close()) }

// runProject runs a crawl whose project has been checked, and tells how it ended.
func (a *program) runProject(ctx context.Context, p project.Project, s crawlOptions) (err error) {
	dir := datadir.StateDir(p.Store.Path)
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil {
		return err
	}
	if _, err := p.Agent.Signature.ReadKeys(os.Open); err != nil {
		return err
	}
	if _, err := datadir.EncodeProject(p); err != nil {
		return err
	}
	lock, err := dir.Lock() // nothing in the directory is touched before
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := dir.CheckResumeOrFresh(s.resume, s.startFresh); err != nil {
		return err
	}
	if s.startFresh && p.Store.Redis.IsUsed() {
		return usage.Errorf("--fresh: the state is in Redis, and others may be at work on it; to start anew give the project another name, or store.redis another prefix")
	}
	cfg, err := engine.NewSinksConfig(&p, nil)
	if err != nil {
		return err
	}
	cfg.Resume, cfg.StartFresh, cfg.Log, cfg.OnDiskFull = s.resume, s.startFresh, a.Log, a.OnDiskFull
	// Standard output is passed without its StickyErrorWriter: the outputs write a line that
	// could not be written again.
	cfg.Stdout = a.Stdout.Underlying
	if s.resume {
		if cfg.Durable, err = dir.ReadDurableOutputLengths(p); err != nil {
			return err
		}
	}
	o, err := sinks.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	previous, _ := project.ReadFile(dir.Path(datadir.ProjectFile)) // nil: not known, and so not the same
	// A directory that holds a crawl holds its project, whenever the process is killed.
	if !s.resume {
		if err := dir.SaveProject(p, false); err != nil {
			return err
		}
	}
	j, err := a.openCrawlRun(p, seedPerOrigin, o, s)
	if err != nil {
		return err
	}
	if s.resume {
		if err := j.UnparkIfChangedAndSaveProject(ctx, dir, previous); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	stopServing := a.serveQuestions(j, lock)
	crawlErr := a.seedAndCrawlUntilEnd(ctx, j, s.progressMode)
	stopServing()
	fmt.Fprint(a.Stderr, j.summaryText(context.WithoutCancel(ctx), crawlErr))
	if closeErr := j.Close(); !errors.Is(crawlErr, storage.ErrFailed) { // its run has already logged it
		crawlErr = errors.Join(crawlErr, closeErr)
	}
	return j.exitErrorFor(crawlErr)
}

// seedAndCrawlUntilEnd plants the seeds and crawls until the end, a limit or a signal. All
// that it starts has ended when it returns.
func (a *program) seedAndCrawlUntilEnd(ctx context.Context, j *foregroundRun, progressMode string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if limit := time.Duration(j.Project.Limits.Duration); limit > 0 && j.WorkerCoordinator == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, engine.ErrTimeLimit)
		defer cancel()
	}
	ended := make(chan struct{})
	var background sync.WaitGroup
	defer background.Wait()
	defer close(ended)
	background.Go(func() { a.handleSignals(j, stop, ended) })
	background.Go(func() { a.showProgress(j, progressMode, ended) })
	defer j.WorkerCoordinator.StartHeartbeats(stop)()
	var err error
	if j.isResumed { // offer again what an earlier run, which may have been set otherwise, has put away
		err = j.Frontier.EndSuspensionsExcept(ctx, j.Crawler.ShouldStaySuspended)
	}
	if err == nil {
		err = j.QueueSeeds(ctx)
	}
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return j.Crawler.Run(ctx)
}

// handleSignals stops the crawl at the first signal, breaks off what is in hand at the second,
// and ends the process at the third.
func (a *program) handleSignals(j *foregroundRun, stop context.CancelCauseFunc, ended <-chan struct{}) {
	for _, onSignal := range []func(){
		func() {
			fmt.Fprintln(a.Stderr, "stopping: the visits in hand are finished first; once more breaks them off")
			stop(engine.ErrInterrupted)
		},
		j.Crawler.Halt,
		// A callback does not give way: the state is as safe as after a crash.
		func() { os.Exit(command.ExitStopped) },
	} {
		select {
		case <-a.Signals:
			onSignal()
		case <-ended:
			return
		}
	}
}

// showProgress tells the progress as the user wants it.
func (a *program) showProgress(j *foregroundRun, mode string, ended <-chan struct{}) {
	if mode == "none" {
		return
	}
	p := &progressReporter{crawlStats: j.Crawler.Stats, frontierCounts: j.Stores.Frontier.Counts, limits: j.Project.Limits, start: j.startedAt}
	p.run(ended, a.Stderr, mode == "auto" && a.Stderr.IsTerminal())
}

// errCrawlEnds is the error of a question that comes, or is still open, when the crawl ends.
var errCrawlEnds = api.Unavailable("the crawl ends: ask again when it has ended")

// serveQuestions answers questions about a crawl at the socket of its directory, which lock
// locks, so that commands can look into it while it runs. The func that it returns ends that:
// no question is open when it has returned.
func (a *program) serveQuestions(j *foregroundRun, lock *datadir.DirectoryLock) (stop func()) {
	listener, err := lock.ListenSocket(context.Background())
	if err != nil {
		// Some file systems do not support sockets, and a full disk has no room for one.
		a.Log.Info("the crawl has no socket: commands cannot look into it while it runs", "error", err)
		return func() {}
	}
	serveCtx, end := context.WithCancel(context.Background())
	var openQuestions sync.RWMutex // read-locked by each question while it uses the engine
	crawl := &inspect.RunningCrawl{Name: "the crawl", WithEngine: func(ctx context.Context, do func(context.Context, *engine.Engine) error) error {
		openQuestions.RLock()
		defer openQuestions.RUnlock()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(serveCtx, cancel)()
		err := serveCtx.Err()
		if err == nil {
			err = do(ctx, j.Engine)
		}
		if err != nil && serveCtx.Err() != nil {
			err = errCrawlEnds
		}
		return err
	}}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.NewCrawlServer(crawl, a.Log).ServeSocket(serveCtx, listener); err != nil {
			a.Log.Error("the crawl's socket is not served any more", "error", err)
		}
	})
	return func() {
		end()
		serving.Wait()
		openQuestions.Lock() // an answer that could not be written may still use the engine
		defer openQuestions.Unlock()
	}
}
