package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A ground is what a crawl stands on: what outlives one setting of its project.
type ground struct {
	files    stores
	confined *confinement // of the files that the project names
	outputs
	handlers Handlers
	hooks    crawler.Hooks
	// A replay has a network and a clock of its own; nil: those of the machine.
	transport http.RoundTripper
	now       func() time.Time
	// Discovered and refused are told of URLs that are queued, and that are not;
	// nil: nobody is.
	discovered func(storage.Entry)
	refused    func(storage.Entry, error)
	shared
	log       *slog.Logger
	restarted time.Time // when an earlier run was gone on with; zero if the crawl begins
	waits     bool      // for revisits and dormant origins, as a daemon does
	brisk     bool      // retry soon: see hurryGate
	renews    bool      // limits of all processes that are reached count anew
	renewed   func()    // called when they do; it must not block. nil: nobody is told
}

// What crawls of one process share, so that together they are as polite as one,
// and take the memory of one.
type shared struct {
	hosts  *politeness.Hosts
	brakes *politeness.Brakes    // nil: there are none
	rests  *crawler.HostDueStore // nil: one crawl is all there is
	memory *bolt.MemoryBudget    // of the frontiers; nil: there is one
	bodies *bodymem.Memory       // of answers; nil: each crawl has its own
	low    *memlimit.Pressure    // refuses new hosts while memory is low; nil: never
	common *commons              // with other processes; nil: there are none
}

// Rooms are the house, put together for a project.
type crawlEngine struct {
	files    stores
	project  Project
	confined *confinement // of the files that the project names
	scope    *frontier.Scope
	gate     *robots.Gate
	frontier *frontier.Frontier
	crawler  *crawler.Crawler // nil: nobody crawls
	outside  *outside
	crew     *crew  // who else crawls; nil: nobody
	leave    func() // when nobody crawls any more; nil: nobody did
}

// policy returns the pace of p.
func (g ground) policy(p Project) politeness.Policy {
	policy := p.policy()
	if g.brisk {
		hurryPolicy(&policy)
	}
	return policy
}

// open puts those rooms together that need no crawl to go on, for a project that
// has been checked: all that judges and queues URLs. budget may be nil.
func (g ground) open(p Project, roots []decorum.URL, budget frontier.Budget) (*crawlEngine, error) {
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
	if g.brisk {
		hurryGate(&gate)
	}
	if g.now != nil {
		scope.Year = g.now().Year()
		if !gate.Session.IsZero() {
			gate.Session = g.now()
		}
	}
	r := &crawlEngine{
		files: g.files, project: p, confined: g.confined,
		scope: frontier.NewScope(scope, roots), gate: robots.NewGate(gate, g.files.robots),
		outside: &outside{log: g.log, onRefused: g.refused},
	}
	r.frontier = frontier.New(g.files.frontier, frontier.Config{
		Scope: r.scope, Params: params, LeaseTTL: p.Store.leaseTTL(), Clean: r.gate.Clean, Budget: budget,
		Now: g.now, Wait: g.waits, MaxWait: maxPolitenessDelay(g.policy(p)), Discovered: g.discovered, Refused: r.outside.refuse,
		LowMemory: g.low.Low,
	})
	return r, nil
}

// furnish puts all rooms together for a project that has been checked.
func (g ground) furnish(p Project, roots []decorum.URL) (*crawlEngine, error) {
	settings, err := p.settings()
	if err != nil {
		return nil, err
	}
	bodies := g.bodies
	if bodies == nil {
		bodies = bodymem.NewDefault()
	}
	web, err := p.fetcher(g.confined, g.files.frontier, g.transport, bodies)
	if err != nil {
		return nil, err
	}
	fetcher, err := p.withFTP(web, bodies)
	if err != nil {
		return nil, err
	}
	limits := g.hosts.Limits(p.limits(g.restarted))
	var budget frontier.Budget = limits
	crew := newCrew(&g, p, limits)
	if crew != nil { // whose limits these are
		budget, settings.MaxPages, settings.MaxBytes = crew, 0, 0
	}
	r, err := g.open(p, roots, budget)
	if err != nil {
		return nil, err
	}
	if agent, _ := p.agent(); agent.NamedOnly() {
		g.log.Warn("rules for * do not bind this agent; what is closed to its operator's main robot is marked not_for_indexing", "agent", p.Agent.Product)
	}
	r.crawler = &crawler.Crawler{
		Frontier: r.frontier, Gate: r.gate, Policy: g.policy(p), Limiter: limits, Brakes: g.brakes, HostDueStore: g.rests,
		Fetcher: fetcher, PageRecorder: g.out, Hooks: g.hooks,
		Settings: settings, Log: g.log, Now: g.now,
	}
	if crew != nil {
		r.crawler.Coordinator, r.crew = crew, crew
	}
	r.leave = web.CloseIdleConnections
	g.handlers.attach(r.crawler, p, web)
	if g.proof != nil {
		r.crawler.Ledger = g.proof
	}
	if g.archive != nil {
		g.archive.notes, g.archive.revisits = r.frontier, settings.Revisit.Wanted()
		r.crawler.Archive = g.archive
	}
	return r, nil
}

// reopen offers again what an earlier run, which may have been set otherwise, has
// put away.
func (r *crawlEngine) reopen(ctx context.Context) error {
	return r.frontier.Reopen(ctx, r.crawler.StillSuspended)
}

// plant discovers the project's seeds.
func (r *crawlEngine) plant(ctx context.Context) error {
	return r.project.plant(ctx, r.confined, r.frontier)
}

// takeOver makes a crawl that goes on the project's: parked URLs are judged
// again if it judges otherwise than it did before. The project is kept after
// that, so that a kill in between repeats it.
func (r *crawlEngine) takeOver(ctx context.Context, dir stateDir, before *draft) error {
	if before == nil || !before.judgesAs(r.project) {
		if err := errors.Join(r.frontier.ReviveAll(ctx), r.frontier.Flush(ctx)); err != nil {
			return err
		}
	}
	return dir.save(r.project, r.confined)
}
