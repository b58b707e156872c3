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
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Reasons to stop a crawl that is not at its end.
var (
	errTime   = errors.New("the limit of time is reached")
	errSignal = errors.New("it was interrupted")
)

// A job is one run of a crawl in the foreground: its files, and the rooms on them.
type job struct {
	*crawlEngine
	files  stores
	common *commons
	hosts  hostSet
	goesOn bool // an earlier run has left something
	start  time.Time
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

// openJob opens the crawl's state, and puts the rooms together on it.
func (a *app) openJob(p Project, roots []decorum.URL, o outputs, s start) (_ *job, err error) {
	j := &job{hosts: hostSet{names: map[string]bool{}}, start: time.Now(), goesOn: s.resume}
	opts := a.boltOptions(p, o.sync)
	opts.OutputFiles = func() []bolt.OutputFile { return o.files(stateDir(p.Store.Path)) }
	if j.files, err = openStores(p, opts); err != nil {
		return nil, err
	}
	g := ground{
		files: j.files, outputs: o, handlers: a.handlers, log: a.log,
		hooks: crawler.Hooks{Visited: j.hosts.add}, brisk: s.brisk,
		shared: shared{hosts: politeness.NewHosts(), low: a.pressure(), bodies: a.bodies},
	}
	if s.resume {
		g.restarted = j.start
	}
	if p.Store.Redis.isUsed() {
		err = j.join(p.Store.Redis, &g)
	}
	if err == nil {
		j.crawlEngine, err = g.furnish(p, roots)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// join joins the commons of the crawl's project: the crawl keeps to the brakes that
// daemons put on.
func (j *job) join(r Redis, g *ground) (err error) {
	g.brakes = &politeness.Brakes{}
	j.common = startCommons(r, nil, func(board map[string]string, _ func() bool) (map[string]string, bool) {
		if board != nil {
			replaceBrakes(g.brakes, board, g.log)
		}
		return nil, true // it posts nothing
	}, g.log)
	g.common, g.renews = j.common, true
	ctx, cancel := context.WithTimeoutCause(context.Background(), redisPatience, storage.ErrStalled)
	defer cancel()
	g.rests = &crawler.HostDueStore{} // of short rests, before a restart too, the frontier knows
	g.rests.Store, err = j.common.shared(ctx)
	return err
}

// Close closes the crawl's state.
func (j *job) Close() error { return errors.Join(j.files.Close(), j.common.Close()) }

// boltOptions returns how the state of a project is opened. Each time before it
// is written, before is called (see bolt.Options.BeforeWrite).
func (a *app) boltOptions(p Project, before func() error) bolt.Options {
	return bolt.Options{InterruptedDelay: time.Duration(p.Politeness.Delay), BeforeWrite: before, OnStalled: a.stalled, OnDamaged: a.damaged}
}

// stalled logs that a store cannot write for now, or has failed for good, or, if err is
// nil, that it can write again.
func (a *app) stalled(err error) {
	switch {
	case err == nil:
		a.log.Info("the crawl goes on: its state can be written again")
	case errors.Is(err, storage.ErrFailed):
		a.log.Error("the crawl ends: what it wrote last may not be on the disk", "error", err)
	default:
		a.log.Error("the crawl pauses", "error", err)
	}
}

// damaged tells of something in the state that makes no sense.
func (a *app) damaged(err error) {
	a.log.Error("the state of the crawl is damaged; the crawl goes on without what cannot be read", "error", err)
}

// start runs a crawl whose project has been checked, and tells how it ended.
func (a *app) start(ctx context.Context, p Project, s start) (err error) {
	dir := stateDir(p.Store.Path)
	roots, err := p.roots(nil)
	if err != nil {
		return err
	}
	if _, err := p.Agent.Signature.keys(nil); err != nil {
		return err
	}
	if _, err := encodeProject(p); err != nil {
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
	if s.fresh && p.Store.Redis.isUsed() {
		return usage("--fresh: the state is in Redis, and others may be at work on it; to start anew give the project another name, or store.redis another prefix")
	}
	if s.resume {
		if s.known, err = dir.readKnown(p, a.log); err != nil {
			return err
		}
	}
	o, err := a.openOutputs(p, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	before, _ := readDraft(dir.path(projectFile)) // nil: not known, and so not the same
	// A directory that holds a crawl holds its project, whenever the process is killed.
	if !s.resume {
		if err := dir.save(p, nil); err != nil {
			return err
		}
	}
	j, err := a.openJob(p, roots, o, s)
	if err != nil {
		return err
	}
	if s.resume {
		if err := j.takeOver(ctx, dir, before); err != nil {
			return errors.Join(err, j.Close())
		}
	}
	end := a.runJob(ctx, j, s.progress)
	fmt.Fprint(a.screen, j.summary(context.WithoutCancel(ctx), end))
	if closing := j.Close(); !errors.Is(end, storage.ErrFailed) { // its run has already logged it
		end = errors.Join(end, closing)
	}
	return j.ending(end)
}

// openOutput opens the output, and moves what is in the way of a crawl that
// starts anew: an output of the user's choice is tried first. Of standard
// output it needs no printer: a line that could not be written is written again.
func (a *app) openOutput(dir stateDir, p Project, s start) (out *output, err error) {
	name := p.Output.JSONL
	if name != "" {
		if dir.owns(name) {
			return nil, usage("--output: %s is a file of the crawl's own state; name another", name)
		}
		out, err = openOutput(s.confined, name, p.Output.JSONLMaxSize, p.Output.fileMode(), a.stdout.w, s.resume, s.known)
		if err != nil {
			return nil, err
		}
	}
	if s.fresh {
		err = dir.moveAside(time.Now())
	}
	if out == nil && err == nil {
		out, err = openOutput(
			nil, dir.path(outputFile), p.Output.JSONLMaxSize, p.Output.fileMode(), a.stdout.w, s.resume, s.known)
	}
	if err != nil && out != nil {
		return nil, errors.Join(err, out.Close())
	}
	if out == nil {
		return nil, err
	}
	out.token, out.log, out.paused = p.Agent.Product, a.log, a.paused
	if p.Output.Bodies {
		if out.bodies, err = openBodies(dir.path(bodiesDir), p.Output.fileMode()); err != nil {
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
	if limit := time.Duration(j.project.Limits.Duration); limit > 0 && j.crew == nil {
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
	defer j.crew.begin(stop)()
	if err := j.prepare(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return j.crawler.Run(ctx)
}

// prepare plants the seeds, and offers again what an earlier run has put away.
func (j *job) prepare(ctx context.Context) error {
	if j.goesOn {
		if err := j.reopen(ctx); err != nil {
			return err
		}
	}
	return j.plant(ctx)
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
