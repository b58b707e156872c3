package daemon

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
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Reasons to stop a crawl that is not at its end.
var (
	errTime   = errors.New("the limit of time is reached")
	errSignal = errors.New("it was interrupted")
)

// A job is one run of a crawl: the rooms of the house, put together.
type job struct {
	project  Project
	store    storage.Store
	robots   storage.Store // the gate's notes
	frontier *frontier.Frontier
	crawler  *crawler.Crawler
	hosts    hostSet
	outside  outside
	goesOn   bool // an earlier run has left something
	start    time.Time
}

// A hostSet is the hosts that were visited.
type hostSet struct {
	mu    sync.Mutex
	names map[string]bool
}

func (h *hostSet) add(v *crawler.Visit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[v.URL().Origin().Host()] = true
}

func (h *hostSet) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.names)
}

// openJob puts the rooms together.
func (a *app) openJob(p Project, roots []decorum.URL, out *output, arc *archive, s start) (_ *job, err error) {
	j := &job{project: p, hosts: hostSet{names: map[string]bool{}}, start: time.Now(), outside: outside{log: a.log}}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.closeStores())
		}
	}()
	scope, err := p.scope()
	if err != nil {
		return nil, err
	}
	gate, err := p.gateConfig()
	if err != nil {
		return nil, err
	}
	params, err := p.params()
	if err != nil {
		return nil, err
	}
	settings, err := p.settings()
	if err != nil {
		return nil, err
	}
	policy := p.policy()
	if s.brisk {
		hurry(&gate, &policy)
	}
	// A crash may repeat what was recorded of a visit, and must not miss it.
	recorded := func() error { return errors.Join(out.Sync(), arc.Sync()) }
	if err := j.openStores(p, a, recorded); err != nil {
		return nil, err
	}
	web, err := p.fetcher(j.store)
	if err != nil {
		return nil, err
	}
	fetcher, err := p.withFTP(web)
	if err != nil {
		return nil, err
	}
	var restarted time.Time
	if s.resume {
		restarted = j.start
	}
	limits, asked := politeness.NewLimits(p.limits(restarted)), robots.NewGate(gate, j.robots)
	j.frontier = frontier.New(j.store, frontier.Config{
		Scope: frontier.NewScope(scope, roots), Params: params, Clean: asked.Clean, Budget: limits, Longest: longestWait(policy), Refused: j.outside.refuse,
	})
	j.crawler = &crawler.Crawler{
		Frontier: j.frontier, Gate: asked, Policy: policy, Limits: limits,
		Fetcher: fetcher, Recorder: out, Hooks: crawler.Hooks{Visited: j.hosts.add},
		Settings: settings, Log: a.log,
	}
	a.handlers.attach(j.crawler, p, web)
	if arc != nil {
		arc.notes, arc.revisits = j.frontier, settings.Revisit.Wanted()
		j.crawler.Archive = arc
	}
	return j, nil
}

// openStores opens the files of the crawl's directory. What is known of
// robots.txt files has one of its own, which other crawls could share. Each time
// before they are written, before is called (see bolt.Options.Before).
func (j *job) openStores(p Project, a *app, before func() error) (err error) {
	dir := stateDir(p.Store.Path)
	opts := bolt.Options{RestartDelay: time.Duration(p.Politeness.Delay), Before: before, Stalled: a.stalled, Damaged: a.damaged}
	if j.store, err = openStore(dir.path(storeFile), opts); err != nil {
		return err
	}
	j.robots, err = openStore(dir.path(robotsFile), opts)
	return err
}

// stalled tells that a store cannot write, or, if err is nil, that it can again.
func (a *app) stalled(err error) {
	if err != nil {
		a.log.Error("the crawl pauses", "error", err)
	} else {
		a.log.Info("the crawl goes on: its state can be written again")
	}
}

// damaged tells of something in the state that makes no sense.
func (a *app) damaged(err error) {
	a.log.Error("the state of the crawl is damaged; the crawl goes on without what cannot be read", "error", err)
}

// openStore returns an interface that is nil where the store is.
func openStore(file string, opts bolt.Options) (storage.Store, error) {
	s, err := bolt.Open(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
}

// closeStores makes all of the crawl durable. What was learnt of a robots.txt
// is written first: a frontier that says a host has been asked goes with it.
func (j *job) closeStores() (err error) {
	for _, s := range []storage.Store{j.robots, j.store} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// start runs a crawl whose project has been checked, and tells how it ended.
func (a *app) start(ctx context.Context, p Project, s start) (err error) {
	dir := stateDir(p.Store.Path)
	roots, err := p.roots()
	if err != nil {
		return err
	}
	lock, err := dir.lock() // nothing in the directory is touched before
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := dir.admits(s.resume, s.fresh); err != nil {
		return err
	}
	out, err := a.openOutput(dir, p, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	arc, err := a.openArchive(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, arc.Close()) }()
	before, _ := readDraft(dir.path(projectFile)) // nil: not known, and so not the same
	// A directory that holds a crawl holds its project, whenever the process is killed.
	if !s.resume {
		if err := dir.save(p); err != nil {
			return err
		}
	}
	j, err := a.openJob(p, roots, out, arc, s)
	if err != nil {
		return err
	}
	j.goesOn = s.resume
	if s.resume {
		if err := j.takeOver(ctx, dir, before); err != nil {
			return errors.Join(err, j.closeStores())
		}
	}
	end := a.runJob(ctx, j, s.progress)
	fmt.Fprint(a.screen, j.summary(context.WithoutCancel(ctx), end))
	return j.ending(errors.Join(end, j.closeStores()))
}

// takeOver makes a crawl that goes on the project's: parked URLs are judged
// again if it judges otherwise than it did before. The project is kept after
// that, so that a kill in between repeats it.
func (j *job) takeOver(ctx context.Context, dir stateDir, before *draft) error {
	if before == nil || !before.judgesAs(j.project) {
		if err := errors.Join(j.frontier.ReviveAll(ctx), j.frontier.Flush(ctx)); err != nil {
			return err
		}
	}
	return dir.save(j.project)
}

// openOutput opens the output, and moves what is in the way of a crawl that
// starts anew: an output of the user's choice is tried first.
func (a *app) openOutput(dir stateDir, p Project, s start) (out *output, err error) {
	name := p.Output.JSONL
	if name != "" {
		if dir.owns(name) {
			return nil, usage("--output: %s is a file of the crawl's own state; name another", name)
		}
		if out, err = openOutput(name, p.Output.JSONLMaxSize, a.stdout, s.resume); err != nil {
			return nil, err
		}
	}
	if s.fresh {
		err = dir.moveAside(time.Now())
	}
	if out == nil && err == nil {
		out, err = openOutput(dir.path(outputFile), p.Output.JSONLMaxSize, a.stdout, s.resume)
	}
	if err != nil && out != nil {
		return nil, errors.Join(err, out.Close())
	}
	if out == nil {
		return nil, err
	}
	out.token, out.log = p.Agent.Product, a.log
	if p.Output.Bodies {
		if out.bodies, err = openBodies(dir.path(bodiesDir)); err != nil {
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}

// runJob plants the seeds and crawls until the end, a limit or a signal. All
// that it starts has ended when it returns.
func (a *app) runJob(ctx context.Context, j *job, how string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if limit := time.Duration(j.project.Limits.Duration); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTime)
		defer cancel()
	}
	over := make(chan struct{})
	var beside sync.WaitGroup
	defer beside.Wait()
	defer close(over)
	beside.Go(func() { a.heed(j, stop, over) })
	beside.Go(func() { a.watch(j, how, over) })
	if err := j.prepare(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return j.crawler.Run(ctx)
}

// prepare plants the seeds, and offers again what an earlier run has put away.
func (j *job) prepare(ctx context.Context) error {
	if j.goesOn {
		if err := j.frontier.Reopen(ctx, j.crawler.StillAside); err != nil {
			return err
		}
	}
	return j.project.plant(ctx, j.frontier)
}

// heed stops the crawl at the first signal, and breaks off what is in hand at
// the second.
func (a *app) heed(j *job, stop context.CancelCauseFunc, over <-chan struct{}) {
	select {
	case <-a.signals:
		fmt.Fprintln(a.screen, "stopping: the visits in hand are finished first; once more breaks them off")
		stop(errSignal)
	case <-over:
		return
	}
	select {
	case <-a.signals:
		j.crawler.Halt()
	case <-over:
		return
	}
	select {
	case <-a.signals: // a callback does not give way: the state is as safe as after a crash
		os.Exit(ExitStopped)
	case <-over:
	}
}

// watch tells the progress as the user wants it.
func (a *app) watch(j *job, how string, over <-chan struct{}) {
	if how == "none" {
		return
	}
	p := &progress{stats: j.crawler.Stats, counts: j.frontier.Counts, limits: j.project.Limits, start: j.start}
	p.run(over, a.screen, how == "auto" && a.screen.isTerminal())
}
