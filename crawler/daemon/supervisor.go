package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// The files of a daemon's directory.
const (
	wishesFile  = "daemon.json" // what it was told: wanted states, brakes
	auditFile   = "audit.jsonl" // who changed what
	projectsDir = "projects"    // the state of each project, in a directory of its name
	deletedDir  = "deleted"     // of those that were deleted
)

// A supervisor runs the projects of a daemon. It is an api.Daemon.
type supervisor struct {
	app      *app
	data     stateDir
	folder   string // of project files
	startNew bool   // projects run as soon as their file is there
	api      apiRules
	lock     *hold
	// hasSocket says that listenSocket has made the socket, which Close removes.
	hasSocket bool
	robots    store // what is known of robots.txt files, by all projects
	shared
	memoryWatch *memoryWatch
	metrics     *metrics.Metrics
	rosters     *rosters
	shortage    diskFullState // of robots
	wishes      *wishes
	hub         hub

	braking        sync.Mutex // held by who changes brakes, and keeps them
	scanning       sync.Mutex // held by who reads project files, or changes them
	mu             sync.Mutex // guards what follows
	runners        map[string]*runner
	commons        map[string]*commons
	retired        []keyring         // of projects that were deleted
	trouble        string            // why the folder cannot be read; empty: it can
	strange        map[string]string // files that are no project's, and why; guarded by scanning
	isShuttingDown bool              // likewise
}

// openSupervisor opens the state of a daemon, and runs what ran when it ended.
// Close must be called in the end.
func openSupervisor(a *app, sv service) (*supervisor, error) {
	folder, err := filepath.Abs(sv.projects)
	if err != nil {
		return nil, err
	}
	data, err := filepath.Abs(sv.data)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return nil, usage("cannot read the folder of project files %s: make it, and put a file NAME.yaml into it for each project; or name another folder with --projects", folder)
	}
	rules, err := sv.api.resolve(data, folder)
	if err != nil {
		return nil, err
	}
	s := &supervisor{
		app: a, data: stateDir(data), folder: folder, startNew: sv.startNew, api: rules, rosters: newRosters(),
		shared: shared{
			hosts: politeness.NewHosts(), brakes: &politeness.Brakes{}, memory: &bolt.MemoryBudget{},
			low: a.pressure(), bodies: a.bodies,
		},
		runners: map[string]*runner{}, commons: map[string]*commons{}, strange: map[string]string{},
	}
	s.metrics = metrics.New(s.Projects, a.log)
	if a.bodies != nil {
		s.metrics.BodyMemory(a.bodies.Size(), func() (inUse, ended int64) {
			use := a.bodies.Usage()
			return use.Bytes, use.DeniedVisits
		})
	}
	if s.lock, err = s.data.lock(); err != nil {
		return nil, err
	}
	if err := s.openState(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.scan()
	return s, nil
}

// openState opens what the projects share.
func (s *supervisor) openState() (err error) {
	if s.wishes, err = openWishes(s.data.path(wishesFile)); err != nil {
		return err
	}
	if err = s.loadBrakes(); err != nil {
		return err
	}
	stalled := func(err error) { s.app.stalled(err); s.shortage.ofState(err) }
	opts := bolt.Options{OnStalled: stalled, OnDamaged: s.app.damaged, OnCommitted: s.metrics.Committed}
	if s.robots, err = openStore(s.data.path(robotsFile), opts); err != nil {
		return err
	}
	before, err := s.wishes.begin(time.Now())
	if err != nil {
		return err
	}
	s.rests = &crawler.HostDueStore{Store: s.robots, RestartedAt: before}
	return s.watchMemory()
}

// home is where the state of a project is.
func (s *supervisor) home(name string) stateDir {
	return stateDir(s.data.path(filepath.Join(projectsDir, name)))
}

// projectFile is where the file of a project is.
func (s *supervisor) projectFile(name string) string {
	return filepath.Join(s.folder, name+projectExt)
}

// knownProjects returns the names of all projects that the daemon has kept something of,
// though their files may be gone.
func (s *supervisor) knownProjects() []string {
	names := s.wishes.projects()
	entries, _ := os.ReadDir(s.data.path(projectsDir)) // none before the first project
	for _, e := range entries {
		if e.IsDir() && projectName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// enlist takes in a runner that has its first orders.
func (s *supervisor) enlist(r *runner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runners[r.name] = r
	go r.live()
}

// find returns the runner of a project.
func (s *supervisor) find(name string) (*runner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.runners[name]; ok {
		return r, nil
	}
	return nil, api.NotFound("there is no project %q", name)
}

// all returns the runners, by name.
func (s *supervisor) all() []*runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	var runners []*runner
	for _, name := range slices.Sorted(maps.Keys(s.runners)) {
		runners = append(runners, s.runners[name])
	}
	return runners
}

// run samples what the projects do, and follows their files, until ctx is done.
func (s *supervisor) run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { s.watch(ctx) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.dropExpired(now)
			s.tendCommons()
			s.sample(ctx, now)
			s.noteMemory(now)
		case <-ctx.Done():
			return
		}
	}
}

// sample takes a sample of what the projects do, side by side: that of one may be
// out of reach.
func (s *supervisor) sample(ctx context.Context, now time.Time) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, r := range s.all() {
		all.Go(func() { r.sample(ctx, now) })
	}
}

// errEnding refuses to change which projects there are.
var errEnding = api.Conflict("the daemon is ending")

// halt breaks off what all projects have in hand.
func (s *supervisor) halt() {
	for _, r := range s.all() {
		r.halt()
	}
}

// Close ends all projects in order, with what they have in hand, and closes
// their state. What ran goes on the next time.
func (s *supervisor) Close() (err error) {
	s.scanning.Lock()
	s.isShuttingDown = true
	s.scanning.Unlock()
	runners := s.all()
	for _, r := range runners {
		r.change(func(o *orders) { o.quit = true })
	}
	ends := make([]error, len(runners))
	var shutting sync.WaitGroup // side by side: each may wait for servers
	for i, r := range runners {
		shutting.Go(func() {
			<-r.ended
			if e := r.vault.shut(); e != nil {
				ends[i] = fmt.Errorf("%s: %w", r.name, e)
			}
		})
	}
	shutting.Wait()
	err = errors.Join(ends...)
	for _, c := range s.allCommons() {
		s.closeCommons(c)
	}
	if s.robots != nil {
		err = errors.Join(err, s.robots.Close())
	}
	if s.rests != nil {
		err = errors.Join(err, s.wishes.change(func(t *daemonState) { t.Ended = time.Now() }))
		s.memoryWatch.end()
	}
	if s.hasSocket { // once the lock is free, the socket may be another daemon's
		err = errors.Join(err, s.data.removeSocket())
	}
	return errors.Join(err, s.lock.Close())
}
