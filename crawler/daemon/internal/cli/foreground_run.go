package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
	"github.com/decorum-crawler/decorum/crawler/internal/seedoutcome"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A foregroundRun is one run of a crawl in the foreground: its open stores and the engine on them.
type foregroundRun struct {
	*engine.Engine
	stores       datadir.CrawlStores
	output       *sinks.JSONLRecorder
	sharedBrakes *engine.CrossProcessBrakes // nil unless the project is in Redis
	visitedHosts visitedHostSet
	recentDelays recentDelays
	seeds        seedoutcome.Recorder
	forbidden    forbiddenHosts
	isResumed    bool // an earlier run left state in the data directory
	isTemporary  bool // see crawlOptions.temporary
	// the files of the run are removed if it sends nothing
	removesNewFiles bool
	// onlyDeadTwinsLeft is set if this run has resumed a crawl that had ended but for dead twins.
	onlyDeadTwinsLeft bool
	startedAt         time.Time
}

// openCrawlRun opens the stores of p and builds the engine on them. The caller closes the run. On
// an error everything that was opened is closed again.
func (a *program) openCrawlRun(p project.Project, seedPerOrigin []decorum.URL, o sinks.Outputs,
	s crawlOptions) (_ *foregroundRun, err error) {
	j := &foregroundRun{visitedHosts: visitedHostSet{names: map[string]bool{}}, output: o.JSONL,
		startedAt: time.Now(), isResumed: s.resume, isTemporary: s.temporary}
	opts := a.BoltOptions(p, o.Sync)
	// The store records the lengths of the outputs with each write, so that after a crash they can
	// be cut to what the store knows.
	opts.ListOutputFiles = func() []bolt.OutputFileExtent { return o.DurableExtents(datadir.StateDir(p.Store.Path)) }
	if j.stores, err = datadir.OpenStores(p, opts); err != nil {
		return nil, err
	}
	g := engine.Config{
		Stores: j.stores, Outputs: o, Handlers: a.Handlers, Log: a.Log,
		Hooks:     crawler.Hooks{VisitRefused: j.seeds.VisitRefused, Visited: j.countVisit},
		OnRefused: j.seeds.DiscoveryRefused, FastRetries: s.fastRetries,
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts(),
			MemoryPressureMonitor: engine.NewMemoryPressureMonitor(memlimit.Get(), a.Log), BodyMemory: a.BodyMemory,
			IdleConns: a.IdleConns},
	}
	if s.resume { // hosts wait first: a kill may have hidden the latest visits
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

// countVisit is the Visited hook.
func (j *foregroundRun) countVisit(v *crawler.Visit) {
	j.visitedHosts.addVisitedHost(v)
	j.recentDelays.add(v)
	j.seeds.Visited(v)
	j.forbidden.add(v)
}

// followSharedBrakes makes the crawl honour the brakes that daemons set in Redis. It waits at most
// RedisOpenTimeout for Redis to answer.
func (j *foregroundRun) followSharedBrakes(r project.RedisSettings, g *engine.Config) (err error) {
	g.OperatorBrakes = &politeness.Brakes{}
	j.sharedBrakes = engine.StartCrossProcessBrakes(r, nil,
		func(shared map[string]string, _ func() bool) (map[string]string, bool) {
			if shared != nil {
				supervisor.ReplaceBrakes(g.OperatorBrakes, shared, g.Log)
			}
			return nil, true // a foreground crawl publishes no brakes
		}, g.Log)
	g.SharedBrakes, g.ResetCountsIfLimitReached = j.sharedBrakes, true
	ctx, cancel := context.WithTimeoutCause(context.Background(), datadir.RedisOpenTimeout, storage.ErrWriteStalled)
	defer cancel()
	// RestartedAt stays zero: the frontier in Redis kept even the short rests from before a restart.
	g.HostDueStore = &crawler.HostDueStore{}
	g.HostDueStore.Store, err = j.sharedBrakes.WaitForStore(ctx)
	return err
}

// Close closes the crawl's stores and stops following the shared brakes.
func (j *foregroundRun) Close() error { return errors.Join(j.stores.Close(), j.sharedBrakes.Close()) }

// runProject runs the crawl of a checked project and prints its summary. The error that it returns
// carries the exit code.
func (a *program) runProject(ctx context.Context, p project.Project, s crawlOptions) (err error) {
	dir := datadir.StateDir(p.Store.Path)
	// Read what the project refers to first: an error here leaves the data directory untouched.
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
	// From here on no other process uses the directory.
	newFiles := dir.NewCrawlFiles()
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	newFiles.FindMissing()
	// The same command again continues its crawl. Standard output is an exception: it would lack the
	// lines of earlier runs.
	if !s.resume && !s.startFresh && p.Output.JSONL != "-" && dir.HoldsCrawlOf(p) {
		s.resume = true
		a.Log.Info("continuing the crawl of this project; --fresh starts a new one", "data", p.Store.Path)
	}
	// A new crawl that sends nothing leaves nothing in the way of the next command.
	mayHaveOldFiles := s.resume || s.startFresh || p.Store.Redis.IsUsed()
	keepsFiles := mayHaveOldFiles
	defer func() {
		if !keepsFiles {
			err = errors.Join(err, newFiles.Remove())
		}
	}()
	if err := dir.CheckResumeOrFresh(p, s.resume, s.startFresh); err != nil {
		return err
	}
	if s.startFresh && p.Store.Redis.IsUsed() {
		return usage.Errorf("--fresh: the state is in Redis, and other processes may be using it; for a new crawl " +
			"give the project another name, or store.redis another prefix")
	}
	// Open the outputs. After a crash they are cut to the lengths that the store has recorded, so
	// that no page has two records.
	cfg, err := engine.NewSinksConfig(&p, nil)
	if err != nil {
		return err
	}
	cfg.Resume, cfg.StartFresh, cfg.Log, cfg.OnDiskFull = s.resume, s.startFresh, a.Log, a.OnDiskFull
	// The outputs get standard output without its StickyErrorWriter, because they retry a line
	// whose write failed.
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
	previous, _ := project.ReadFile(dir.Path(datadir.ProjectFile)) // nil: unknown, which counts as changed
	// Save the project before the stores exist: a directory with a crawl then always has its
	// project, whenever the process is killed.
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
		// URLs that the old project's rules parked are checked again under the new ones.
		if err := j.UnparkIfChangedAndSaveProject(ctx, dir, previous); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	j.removesNewFiles = !mayHaveOldFiles
	// Crawl. Meanwhile decorum report and others may call this process.
	stopServing := a.serveQuestions(j, lock)
	keepsFiles = true // also after a panic
	crawlErr := a.seedAndCrawlUntilEnd(ctx, j, s.progressMode)
	stopServing()
	keepsFiles = mayHaveOldFiles || !j.sentNothing(crawlErr)
	if s.atEnd != nil {
		s.atEnd(j)
	}
	j.onlyDeadTwinsLeft = errors.Is(crawlErr, frontier.ErrOnlySuspendedLeft) && j.isResumed &&
		j.areOnlyDeadTwinsLeft(context.WithoutCancel(ctx))
	a.printSummary(context.WithoutCancel(ctx), j, crawlErr)
	noPageErr := j.errNoPage(context.WithoutCancel(ctx), crawlErr)
	// Close returns the failure of a failed store again, which has already been logged.
	if closeErr := j.Close(); closeErr != nil && !errors.Is(crawlErr, storage.ErrFailed) {
		return j.newFailedError(errors.Join(crawlErr, closeErr)) // however the run ended
	}
	return j.exitErrorFor(crawlErr, noPageErr)
}

// seedAndCrawlUntilEnd queues the seeds and crawls until no URL is left, or a limit or a signal
// ends the crawl. All goroutines that it starts have ended when it returns.
func (a *program) seedAndCrawlUntilEnd(ctx context.Context, j *foregroundRun, progressMode string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// With a WorkerCoordinator the processes share limits.duration, and it ends the crawl.
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
	if j.isResumed { // the earlier run may have suspended origins under other settings
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

// handleSignals stops the crawl at the first signal, aborts the visits in flight at the second, and
// ends the process at the third. SIGHUP counts only as the first: both the shell and the kernel may
// send it when a terminal closes. It returns when ended is closed.
func (a *program) handleSignals(j *foregroundRun, stop context.CancelCauseFunc, ended <-chan struct{}) {
	hangups := a.Hangups
	for _, onSignal := range []func(){
		func() {
			fmt.Fprintln(a.Stderr, "stopping: the visits in flight finish first; a second signal aborts them")
			stop(engine.ErrInterrupted)
		},
		j.Crawler.Halt,
		// A callback ignores its context. The state is as safe as after a crash.
		func() { os.Exit(command.ExitStopped) },
	} {
		select {
		case <-a.Signals:
		case <-hangups:
		case <-ended:
			return
		}
		hangups = nil
		onSignal()
	}
}

// showProgress prints the progress in the given mode (auto, plain or none) until ended is closed.
func (a *program) showProgress(j *foregroundRun, mode string, ended <-chan struct{}) {
	if mode == "none" {
		return
	}
	p := &progressReporter{crawlStats: j.Crawler.Stats, frontierCounts: j.Stores.Frontier.Counts,
		recentDelays: &j.recentDelays, heldHosts: j.heldHosts, limits: j.Project.Limits, start: j.startedAt}
	p.run(ended, a.Stderr, mode == "auto" && a.Stderr.IsTerminal() && !a.mayPrintWhileCrawling(j))
}

// heldHosts returns which hosts of the crawl are held now.
func (j *foregroundRun) heldHosts(ctx context.Context) (inspect.HeldHosts, error) {
	q, err := inspect.New(ctx, j.Engine)
	if err != nil {
		return inspect.HeldHosts{}, err
	}
	return q.HeldHosts(ctx, maxOriginsRead)
}

// mayPrintWhileCrawling reports whether something else may print on the terminal while j runs: callbacks,
// on either stream, or the lines of --output -, also through a pipe. What it prints would begin at the end
// of a line that is redrawn. Callbacks count whatever standard output is, because package log writes to
// standard error.
func (a *program) mayPrintWhileCrawling(j *foregroundRun) bool {
	switch {
	case j.Crawler.Settings.DryRun: // it visits no page, and prints its table at the end
		return false
	case j.Crawler.Handler != nil:
		return true
	case j.Project.Output.JSONL != "-":
		return false
	}
	f, ok := a.Stdout.Underlying.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	isFileOrDevice := err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeCharDevice != 0)
	return !isFileOrDevice || term.IsTerminal(int(f.Fd()))
}

// errCrawlEnds answers calls that arrive, or are still being answered, when the crawl ends.
var errCrawlEnds = api.Unavailable("the crawl is ending: repeat the command when it has ended")

// serveQuestions serves the API of the crawl j on the socket of its data directory, so that other
// commands can inspect it while it runs. lock is the held lock of that directory. The returned
// function stops serving; when it returns, no call uses the engine any more.
func (a *program) serveQuestions(j *foregroundRun, lock *datadir.DirectoryLock) (stop func()) {
	listener, err := lock.ListenSocket(context.Background())
	if err != nil {
		// Some file systems do not support sockets, and a full disk has no space for one. The crawl
		// runs without it.
		a.Log.Info("the crawl has no socket: other commands cannot inspect it while it runs", "error", err)
		return func() {}
	}
	serveCtx, end := context.WithCancel(context.Background())
	// openQuestions guards j.Engine against its close: each call holds a read lock while it uses
	// the engine.
	var openQuestions sync.RWMutex
	crawl := &inspect.RunningCrawl{Name: "the crawl",
		WithEngine: func(ctx context.Context, do func(context.Context, *engine.Engine) error) error {
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
			a.Log.Error("the crawl's socket is no longer served", "error", err)
		}
	})
	return func() {
		end()
		serving.Wait()
		openQuestions.Lock() // a call whose client has gone may still use the engine
		defer openQuestions.Unlock()
	}
}
