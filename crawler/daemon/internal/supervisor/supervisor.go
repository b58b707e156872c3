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

// A Supervisor runs the projects of a daemon. It is an api.Daemon.
type Supervisor struct {
	env *engine.Dependencies
	projectPaths
	startNewProjects bool // projects run as soon as they have a file
	directoryLock    *datadir.DirectoryLock
	robotsStore      storage.NoteStore // what is known of robots.txt files, by all projects
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

	projectFilesMu sync.Mutex // serializes reads and changes of project files; guards isShuttingDown, and fields of folder
	isShuttingDown bool       // Close has begun: no project is added or deleted any more
}

// Options say what a daemon runs.
type Options struct {
	DataDir, ProjectFilesDir string
	StartNewProjects         bool
	APIProjectRestrictions   APIProjectRestrictions
	readMemoryUsage          func() memoryUsage // the memory of the process; nil: what the system says
}

// Open opens the state of a daemon, and runs the projects that ran when the previous one ended.
// The caller must call Close.
func Open(env *engine.Dependencies, opts Options) (*Supervisor, error) {
	projectFilesDir, err := filepath.Abs(opts.ProjectFilesDir)
	dataDir, err2 := filepath.Abs(opts.DataDir)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if info, err := os.Stat(projectFilesDir); err != nil || !info.IsDir() {
		return nil, usage.Errorf("cannot read the folder of project files %s: make it, and put a file NAME.yaml into it for each project; or name another folder with --projects", projectFilesDir)
	}
	rules, err := opts.APIProjectRestrictions.withAbsoluteDirs(dataDir, projectFilesDir)
	if err != nil {
		return nil, err
	}
	// Put together what needs no file.
	s := &Supervisor{
		env: env, startNewProjects: opts.StartNewProjects, hostLists: inspect.NewHostListCache(), runners: newRunnerSet(),
		projectPaths: projectPaths{DataDir: datadir.StateDir(dataDir), ProjectFilesDir: projectFilesDir},
		SharedResources: engine.SharedResources{
			SharedHosts: politeness.NewSharedHosts(), OperatorBrakes: &politeness.Brakes{}, MemoryBudget: &bolt.SharedMemoryBudget{},
			MemoryPressureMonitor: engine.NewMemoryPressureMonitor(memlimit.Get(), env.Log), BodyMemory: env.BodyMemory,
		},
	}
	s.folder = &projectFilesFolder{path: projectFilesDir, events: &s.eventBroker, log: env.Log}
	s.Metrics = metrics.New(s.Projects, env.Log)
	if env.BodyMemory != nil {
		s.Metrics.RegisterBodyMemory(env.BodyMemory)
	}
	// Open the files of this process alone, and start the projects.
	if s.directoryLock, err = s.DataDir.Lock(); err != nil {
		return nil, err
	}
	if err := s.openDaemonStores(rules, opts.readMemoryUsage); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	_, _ = s.ReloadProjects(context.Background()) // what it returns is reported as well
	return s, nil
}

// openDaemonStores opens the files that the projects share, and the parts that use them.
func (s *Supervisor) openDaemonStores(rules APIProjectRestrictions, readMemoryUsage func() memoryUsage) (err error) {
	if s.stateStore, err = openDaemonStateStore(s.DataDir.Path(datadir.DaemonStateFile)); err != nil {
		return err
	}
	s.loader = &projectLoader{
		projectPaths: s.projectPaths, apiRestrictions: rules, stateStore: s.stateStore,
		jsonlOwner:   s.runners.jsonlOutputOwner,
		checkHandler: func(handler string) *project.FieldProblem { return engine.CheckHandler(s.env.Handlers, handler) },
	}
	if s.operatorBrakes, err = openOperatorBrakes(s.OperatorBrakes, s.stateStore, &s.eventBroker, s.env.Log); err != nil {
		return err
	}
	// What is known of robots.txt files is in a store of its own.
	onStalled := func(err error) { s.env.LogStoreWriteState(err); s.robotsDiskFull.setStoreError(err) }
	opts := bolt.Options{OnStallChange: onStalled, OnDamaged: s.env.LogStoreDamage, OnCommitted: s.Metrics.ObserveCommit}
	if s.robotsStore, err = datadir.OpenBoltNotes(s.DataDir.Path(datadir.RobotsFile), opts); err != nil {
		return err
	}
	// Record that the daemon runs. How the previous one ended decides how long hosts rest, and
	// whether a project stays stopped.
	previousEnd, err := s.stateStore.markDaemonRunning(time.Now())
	if err != nil {
		return err
	}
	s.HostDueStore = &crawler.HostDueStore{Store: s.robotsStore, RestartedAt: previousEnd}
	s.memoryKillDetector = openMemoryKillDetector(s.DataDir.Path(memoryRecordFile), readMemoryUsage, s.env.Log)
	return s.memoryKillDetector.markStoppedAfterMemoryKills(s.stateStore)
}

// projectNamesWithData returns the names of all projects that have a state or a directory, though
// their files may be gone.
func (s *Supervisor) projectNamesWithData() []string {
	names := slices.Collect(maps.Keys(s.stateStore.current().DesiredStates))
	entries, _ := os.ReadDir(s.DataDir.Path(datadir.ProjectsDir)) // none before the first project
	for _, e := range entries {
		if e.IsDir() && project.NamePattern.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// Run samples what the projects do, and follows their files, until ctx is done.
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
			// Take samples of what the projects do, side by side: that of one may be out of reach.
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

// errShuttingDown refuses to change which projects there are.
var errShuttingDown = api.Conflict("the daemon is ending")

// AbortVisits breaks off the visits under way of all projects.
func (s *Supervisor) AbortVisits() {
	for _, r := range s.runners.all() {
		r.engine.halt()
	}
}

// ListenSocket creates the socket of the daemon's directory, which Close removes.
func (s *Supervisor) ListenSocket(ctx context.Context) (net.Listener, error) {
	return s.directoryLock.ListenSocket(ctx)
}

// Close ends all projects in order, with their visits under way, and closes
// their state. What ran goes on the next time.
func (s *Supervisor) Close() (err error) {
	// End all runners, and close their stores.
	s.projectFilesMu.Lock()
	s.isShuttingDown = true
	s.projectFilesMu.Unlock()
	runners := s.runners.all()
	for _, r := range runners {
		r.state.updateCommand(func(o *runnerTarget) { o.mustQuit = true })
	}
	closeErrs := make([]error, len(runners))
	var background sync.WaitGroup // side by side: each may wait for servers
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
	// Close what they share; nil: Open has failed before it.
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
