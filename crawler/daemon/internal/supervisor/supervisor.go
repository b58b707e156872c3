package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A Supervisor runs the projects of a daemon. It implements api.Daemon.
type Supervisor struct {
	env *engine.Dependencies
	projectPaths
	startNewProjects bool                   // a project that appears with no recorded state is started
	directoryLock    *datadir.DirectoryLock // of DataDir
	robotsStore      storage.NoteStore      // the robots.txt files that all projects have fetched
	engine.SharedResources
	memoryKillDetector *memoryKillDetector
	Metrics            *metrics.Metrics
	hostLists          *inspect.HostListCache
	robotsDiskFull     diskFullState // of robotsStore
	stateStore         *daemonStateStore
	eventBroker        eventBroker
	runners            *runnerSet
	retiredKeyrings    retiredKeyrings
	folder             *projectFilesFolder
	*operatorBrakes
	loader *projectLoader

	// projectFilesMu guards isShuttingDown and the readError and nonProjectFiles of folder. It also
	// serializes reads and changes of the project files.
	projectFilesMu sync.Mutex
	isShuttingDown bool // Close has begun: no project is added or deleted
}

// Options configure Open.
type Options struct {
	DataDir          string // the state of the daemon; Open creates it
	ProjectFilesDir  string // NAME.yaml for each project; must exist
	StartNewProjects bool   // start each new project as soon as its file appears

	APIProjectRestrictions APIProjectRestrictions

	readMemoryUsage func() memoryUsage // measures the memory of this process; nil: memlimit does
}

// Open locks DataDir, opens the state of the daemon, and starts the projects that ran when the
// previous daemon ended. The caller must call Close. Open fails if another process has locked
// DataDir, or if ProjectFilesDir is not a directory. If that directory cannot be read, Open logs it, and
// Run tries again.
func Open(env *engine.Dependencies, opts Options) (*Supervisor, error) {
	projectFilesDir, err := filepath.Abs(opts.ProjectFilesDir)
	dataDir, err2 := filepath.Abs(opts.DataDir)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if info, err := os.Stat(projectFilesDir); err != nil || !info.IsDir() {
		return nil, usage.Errorf("cannot read the folder of project files %s: make it, and put a file NAME.yaml "+
			"into it for each project; or name another folder with --projects", projectFilesDir)
	}
	rules, err := opts.APIProjectRestrictions.withAbsoluteDirs(dataDir, projectFilesDir)
	if err != nil {
		return nil, err
	}
	// Build the parts that need no file.
	s := &Supervisor{
		env: env, startNewProjects: opts.StartNewProjects,
		hostLists: inspect.NewHostListCache(), runners: newRunnerSet(),
		projectPaths: projectPaths{DataDir: datadir.StateDir(dataDir), ProjectFilesDir: projectFilesDir},
		SharedResources: engine.SharedResources{
			SharedHosts: politeness.NewSharedHosts(), OperatorBrakes: &politeness.Brakes{},
			MemoryBudget:          &bolt.SharedMemoryBudget{},
			MemoryPressureMonitor: engine.NewMemoryPressureMonitor(memlimit.Get(), env.Log), BodyMemory: env.BodyMemory,
			IdleConns: env.IdleConns,
		},
	}
	s.folder = &projectFilesFolder{path: projectFilesDir, events: &s.eventBroker, log: env.Log}
	s.Metrics = metrics.New(s.Projects, env.Log)
	s.Metrics.RegisterBrakes(func(ctx context.Context) ([]api.Brake, error) { return s.Brakes(ctx) })
	if env.BodyMemory != nil {
		s.Metrics.RegisterBodyMemory(env.BodyMemory)
	}
	if env.IdleConns != nil {
		s.Metrics.RegisterIdleConns(env.IdleConns)
	}
	// Lock the directory before any of its files is opened, then start the projects.
	if s.directoryLock, err = s.DataDir.Lock(); err != nil {
		return nil, err
	}
	if err := s.openDaemonStores(rules, opts.readMemoryUsage); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	_, _ = s.ReloadProjects(context.Background()) // it logs and publishes what it returns
	return s, nil
}

// openDaemonStores opens the files that the projects share, and the parts that use them.
func (s *Supervisor) openDaemonStores(rules APIProjectRestrictions, readMemoryUsage func() memoryUsage) (err error) {
	if s.stateStore, err = openDaemonStateStore(s.DataDir.Path(datadir.DaemonStateFile)); err != nil {
		return err
	}
	s.loader = &projectLoader{
		projectPaths: s.projectPaths, apiRestrictions: rules, stateStore: s.stateStore,
		jsonlOwner: s.runners.jsonlOutputOwner,
		checkHandler: func(handler string) *project.FieldProblem {
			return engine.CheckHandler(s.env.Handlers, handler)
		},
	}
	if s.operatorBrakes, err = openOperatorBrakes(s.OperatorBrakes, s.stateStore,
		&s.eventBroker, s.env.Log); err != nil {
		return err
	}
	// The robots.txt files are in a store that all projects share.
	onStalled := func(err error) { s.env.LogStoreWriteState(err); s.robotsDiskFull.setStoreError(err) }
	opts := bolt.Options{OnStallChange: onStalled, OnDamaged: s.env.LogStoreDamage,
		OnCommitted: s.Metrics.ObserveCommit}
	if s.robotsStore, err = datadir.OpenBoltNotes(s.DataDir.Path(datadir.RobotsFile), opts); err != nil {
		return err
	}
	// Record that the daemon runs. The end of the previous daemon decides how long hosts rest, and
	// whether a project comes up stopped.
	previousEnd, err := s.stateStore.markDaemonRunning(time.Now())
	if err != nil {
		return err
	}
	s.HostDueStore = &crawler.HostDueStore{Store: s.robotsStore, RestartedAt: previousEnd}
	s.memoryKillDetector = openMemoryKillDetector(s.DataDir.Path(memoryRecordFile), readMemoryUsage, s.env.Log)
	return s.memoryKillDetector.markStoppedAfterMemoryKills(s.stateStore)
}

// projectNamesWithData returns the names of all projects that have a recorded state or a
// directory, including projects whose file is gone. A name can occur twice.
func (s *Supervisor) projectNamesWithData() []string {
	names := slices.Collect(maps.Keys(s.stateStore.current().DesiredStates))
	entries, _ := os.ReadDir(s.DataDir.Path(datadir.ProjectsDir)) // it does not exist before the first project
	for _, e := range entries {
		if e.IsDir() && project.NamePattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Run follows the project files until ctx is done. Once a second it also drops expired brakes, starts and
// closes shared brakes, samples the throughput of the projects, and records the memory usage. It returns
// when the goroutines that it started have ended; the projects keep running.
func (s *Supervisor) Run(ctx context.Context) {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { s.folder.watch(ctx, func() { _, _ = s.ReloadProjects(ctx) }) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.dropExpired(now)
			s.startUsedCloseUnused(s.runners.loadedProjects())
			// Sample the projects side by side: the store of one may not answer.
			var sampling sync.WaitGroup
			for _, r := range s.runners.all() {
				sampling.Go(func() { r.publishThroughputSample(ctx, now) })
			}
			sampling.Wait()
			s.recordMemory(now)
		case <-ctx.Done():
			return
		}
	}
}

// errShuttingDown is returned for a project that would be added or deleted after Close has begun.
var errShuttingDown = api.Conflict("the daemon is ending")

// AbortVisits ends the crawls of all projects and cancels their active visits, whose URLs go back to
// the frontier. It changes no desired state.
func (s *Supervisor) AbortVisits() {
	for _, r := range s.runners.all() {
		r.engine.halt()
	}
}

// ListenSocket creates the Unix socket in DataDir and listens on it. Close removes the socket.
func (s *Supervisor) ListenSocket(ctx context.Context) (net.Listener, error) {
	return s.directoryLock.ListenSocket(ctx)
}

// RecordDaemonURL records the URL of the daemon's API in DataDir, for commands that cannot use the socket.
func (s *Supervisor) RecordDaemonURL(url string) { s.directoryLock.RecordDaemonURL(url) }

// Close stops all projects, waits until their active visits are finished, and closes their stores.
// The desired states stay recorded, so that the next daemon resumes what ran.
func (s *Supervisor) Close() (err error) {
	// Tell all runners to quit before waiting for any of them.
	s.projectFilesMu.Lock()
	s.isShuttingDown = true
	s.projectFilesMu.Unlock()
	runners := s.runners.all()
	for _, r := range runners {
		r.state.updateCommand(func(o *runnerTarget) { o.mustQuit = true })
	}
	closeErrs := make([]error, len(runners))
	// Wait for the runners and close their stores side by side: each may wait for its servers.
	var background sync.WaitGroup
	for i, r := range runners {
		background.Go(func() {
			<-r.ended
			if e := r.storeHandle.closeForGood(); e != nil {
				closeErrs[i] = fmt.Errorf("%s: %w", r.name, e)
			}
		})
	}
	background.Wait()
	err = errors.Join(closeErrs...)
	// Close the parts that the projects share. A nil part means that Open failed before it.
	if s.operatorBrakes != nil {
		s.closeAllStores()
	}
	if s.robotsStore != nil {
		err = errors.Join(err, s.robotsStore.Close())
	}
	if s.HostDueStore != nil {
		err = errors.Join(err, s.stateStore.update(func(t *savedDaemonState) { t.EndedAt = time.Now() }))
		s.memoryKillDetector.recordCleanEnd()
	}
	return errors.Join(err, s.directoryLock.Close())
}
