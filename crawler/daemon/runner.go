package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A runner runs one project of a daemon. One goroutine carries its orders out:
// it alone crawls.
type runner struct {
	name   string
	app    *app // its log says which project speaks
	dir    stateDir
	hub    *hub
	wishes *wishes
	robots store // of all projects
	shared
	commons func(*edition) *commons
	metrics *metrics.Metrics
	vault   *vault

	records recordings
	applied *edition // whose seeds are planted, and by which parked URLs are judged; of live alone

	mu            sync.Mutex
	changed       sync.Cond // the orders have
	orders        orders
	interrupt     func(error) // ends the run that goes on; nil: none does
	stirred       bool        // URLs were added to it
	state         api.ProjectState
	why           string
	since         time.Time
	stamp         string       // of the file as it was read last: see stampOf
	followed      string       // and of the one that is followed
	engine        *crawlEngine // see consult; nil: there are none
	engineProject *edition     // that they are of
	reach         reach
	shortage      diskFullState
	renews        bool // limits of all processes that are reached are to count anew, of which these do not know yet
	meter         meter
	ended         chan struct{} // closed when live has returned
}

// newRunner returns a runner that has no orders yet.
func (s *supervisor) newRunner(name string) *runner {
	a := *s.app
	a.log = projectLog(s.app.log, &s.hub, name)
	r := &runner{
		name: name, app: &a, dir: s.home(name), hub: &s.hub, wishes: s.wishes, robots: s.robots, shared: s.shared, commons: s.commonsOf, metrics: s.metrics,
		state: api.StateStopped, since: time.Now().UTC(), reach: newReach(), ended: make(chan struct{}),
	}
	r.changed.L = &r.mu
	a.paused = r.shortage.ofOutput
	r.vault = newVault(r.dir, r.place, r.openVault)
	r.vault.shuts = r.vacate
	r.orders.wish, r.orders.gone = s.wishes.of(name), true
	if r.orders.wish.State == api.StateStopped {
		r.why = r.orders.wish.Why
	}
	return r
}

// place says where the project's part of its state is, as its file says now.
func (r *runner) place() string {
	if ed := r.edition(); ed != nil {
		return ed.project.Store.Redis.place()
	}
	return ""
}

// openVault opens the project's part of its state, which must be whole.
func (r *runner) openVault() (stores, error) {
	s, err := r.openAnyVault()
	if err != nil {
		return stores{}, err
	}
	if err := mustBeWhole(s.frontier); err != nil {
		return stores{}, errors.Join(err, s.closeOwn())
	}
	return s, nil
}

func (r *runner) openAnyVault() (s stores, err error) {
	p, confined := DefaultProject(), (*confinement)(nil)
	if ed := r.edition(); ed != nil {
		p, confined = ed.project, ed.confined
	}
	r.records.forget()
	opts := r.app.boltOptions(p, r.records.sync)
	opts.OutputFiles = func() []bolt.OutputFile { return r.records.files(r.dir) }
	if p.Store.Redis.isUsed() {
		opts.OnStalled = r.stalled
		return openRedis(p, confined, opts)
	}
	if err := r.dir.notInRedis(); err != nil {
		return stores{}, err
	}
	opts.OnCommitted, opts.MemoryBudget = r.metrics.Committed, r.memory
	r.shortage.ofState(nil)
	opts.OnStalled = func(err error) { r.app.stalled(err); r.shortage.ofState(err) }
	s.robots = r.robots
	s.frontier, err = openFrontier(r.dir.path(storeFile), opts, r.robots)
	return s, err
}

func (r *runner) edition() *edition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orders.edition
}

func (r *runner) now() time.Time { return time.Now().UTC() }

// live carries out orders until it is told to quit.
func (r *runner) live() {
	defer close(r.ended)
	inside := false // the vault
	for version := 0; ; {
		o := r.await(version)
		version = o.version
		running := !o.quit && o.wish.State == api.StateRunning && o.may() == ""
		if inside && r.vault.isElsewhere() { // its file says so since
			inside = r.stepOut()
		}
		if running && !inside {
			if inside = r.stepIn(); !inside {
				continue
			}
		}
		if running {
			if again := r.run(o); again || r.failed() { // the project opens its state again at the next start
				inside = r.stepOut()
			}
			continue
		}
		if inside && (o.quit || o.wish.State != api.StatePaused || o.may() != "") {
			inside = r.stepOut()
		}
		if o.quit {
			return
		}
		if !inside {
			r.forgetReach()
		}
		r.rest(o)
	}
}

// stepIn enters the vault, or says why it cannot.
func (r *runner) stepIn() (inside bool) {
	// Before the first visit the disk must record that the daemon runs. Otherwise a
	// crash would look like an orderly end, and hosts would not get their full rest
	// after it.
	err := r.wishes.begun()
	if err == nil {
		_, err = r.vault.enter()
	}
	switch {
	case err == nil:
		r.stalled(nil)
		return true
	case errors.Is(err, storage.ErrStalled), passing(err):
		r.tryAgain(err)
	default:
		r.fail(err)
	}
	return false
}

// stepOut leaves the vault, which is closed unless somebody looks into it.
func (r *runner) stepOut() (inside bool) {
	r.vault.leave()
	if err := r.vault.close(); err != nil {
		r.app.log.Error("the last moment of the project is lost; its visits will be made again", "error", err)
	}
	return false
}

// rest is what a project does that does not run.
func (r *runner) rest(o orders) {
	switch why := o.may(); {
	case o.gone:
		r.is(api.StateStopped, why)
	case o.wish.State == api.StateRunning:
		r.is(api.StateFailed, why)
	case o.wish.State == api.StatePaused:
		r.is(api.StatePaused, o.wish.Why)
	default:
		r.is(api.StateStopped, o.wish.Why)
	}
}

// failed reports whether the last run did.
func (r *runner) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == api.StateFailed
}

// run crawls until no URL is left, a limit is reached, or orders arrive. It reports
// whether the state must be opened again before the project continues.
func (r *runner) run(o orders) (reopen bool) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if !r.begin(o.version, stop) {
		return false
	}
	defer r.end()
	switch end := r.crawl(ctx, o.edition); {
	case end == nil, errors.Is(end, frontier.ErrEmpty):
		r.done()
	case errors.Is(end, crawler.ErrPages), errors.Is(end, crawler.ErrBytes), errors.Is(end, errTime):
		r.pauseAt(o.version, end)
	case errors.Is(end, errOrders), errors.Is(end, crawler.ErrHalted):
	case errors.Is(end, storage.ErrStalled):
		r.tryAgain(end)
	case passing(end): // an output could not be opened, or closed, on a full disk
		r.tryAgain(end)
		return true
	default:
		r.fail(end)
	}
	return false
}

// fail says that the project cannot go on. Others do.
func (r *runner) fail(err error) {
	r.app.log.Error("the project fails; when the cause is removed, start it again", "error", err)
	r.is(api.StateFailed, err.Error())
}

// pauseAt pauses a project that has reached a limit, for good: unless it was told
// something else meanwhile.
func (r *runner) pauseAt(version int, limit error) {
	it := wish{State: api.StatePaused, Why: limit.Error()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orders.version != version {
		return
	}
	if err := r.wishes.want(r.name, it); err != nil {
		r.app.log.Error("after a restart the project goes on beyond its limit", "error", err)
	}
	r.orders.wish = it
	r.enter(api.StatePaused, it.Why)
}

// crawl crawls as an edition of the project says. Its state is open.
func (r *runner) crawl(ctx context.Context, ed *edition) (err error) {
	limits := ed.project.Limits
	if ed.project.Store.Redis.isUsed() {
		limits = Limits{} // they are the crew's
	}
	left, err := r.meter.left(limits)
	if err != nil {
		return err
	}
	if left.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, left.duration, errTime)
		defer cancel()
	}
	g, err := r.ground(ctx, ed)
	if err != nil {
		return err
	}
	if err := r.records.open(r.app, ed, &g); err != nil {
		return err
	}
	defer func() { err = cmp.Or(r.records.close(), err) }() // who could not close them cannot go on, whatever ended the run
	engine, err := g.furnish(ed.project, ed.roots)
	if err != nil {
		return err
	}
	defer engine.leave()
	engine.crawler.Settings.MaxPages, engine.crawler.Settings.MaxBytes = left.pages, left.bytes
	r.occupy(engine, ed)
	r.meter.begin(engine.crawler)
	defer r.meter.end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer engine.crew.begin(stop)()
	if err := r.prepare(ctx, engine, ed); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return engine.crawler.Run(ctx)
}

// ground returns what the project's rooms stand on, while its state is open.
func (r *runner) ground(ctx context.Context, ed *edition) (g ground, err error) {
	hooks := r.metrics.Hooks(r.name)
	counted := hooks.Visited
	hooks.Visited = func(v *crawler.Visit) { counted(v); r.visited(v) }
	hooks.Acked = r.acked
	g = ground{
		files: *r.vault.files, confined: ed.confined, handlers: r.app.handlers, log: r.app.log,
		hooks: hooks, discovered: r.metrics.Discovered, refused: r.metrics.Refused, shared: r.shared,
		restarted: r.rests.RestartedAt, waits: true,
	}
	if g.common = r.commons(ed); g.common != nil {
		rests := *r.rests
		rests.Store, err = g.common.shared(ctx)
		g.rests = &rests
		r.mu.Lock()
		g.renews, g.renewed = r.renews, r.renewed
		r.mu.Unlock()
	}
	return g, err
}

// renewed takes note that limits of all processes count anew.
func (r *runner) renewed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renews = false
}

// prepare makes the state that of an edition of the project. What is cut short is
// done again the next time.
func (r *runner) prepare(ctx context.Context, engine *crawlEngine, ed *edition) error {
	if r.applied == ed {
		return nil
	}
	before, _ := readDraft(r.dir.path(projectFile)) // nil: not known, and so not the same
	if err := engine.takeOver(ctx, r.dir, before); err != nil {
		return fmt.Errorf("cannot follow its file: %w", err)
	}
	if err := errors.Join(engine.reopen(ctx), engine.plant(ctx)); err != nil {
		return err
	}
	r.applied = ed
	return nil
}

// visited tells of a visit.
func (r *runner) visited(v *crawler.Visit) {
	if !r.hub.heard() {
		return
	}
	e := api.Event{
		Type: "visit", Project: r.name, Host: v.URL().Origin().Host(), URL: v.URL().String(),
		Status: v.Status(), Bytes: int64(v.BodyLen()), Duration: api.Milliseconds(v.End.Sub(v.Start)),
	}
	if v.Err != nil {
		e.Message = v.Err.Error()
	}
	r.hub.tell(e)
}

// acked watches the promise that no rest is cut short.
func (r *runner) acked(a storage.Ack) {
	if a.Host == nil {
		return
	}
	if short := crawler.DecodeHostStats(a.Host.Memo).LargestDelayShortfall; short > 0 {
		r.vault.short(short)
	}
}
