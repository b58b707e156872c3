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
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// An engineConfig is what a crawl stands on: what outlives one setting of its project.
type engineConfig struct {
	stores          datadir.CrawlStores
	pathConfinement *confine.Paths // of the files that the project names
	sinks.Outputs
	callbacksByHandlerName NamedCallbacks
	hooks                  crawler.Hooks
	// A replay has a network and a clock of its own; nil: those of the machine.
	transport http.RoundTripper
	now       func() time.Time
	// Discovered and refused are told of URLs that are queued, and that are not;
	// nil: nobody is.
	onNewURLQueued func(storage.Entry)
	onRefused      func(storage.Entry, error)
	sharedResources
	log                           *slog.Logger
	restartedAt                   time.Time // when an earlier run was gone on with; zero if the crawl begins
	waitForRevisitsAndSuspensions bool      // for revisits and dormant origins, as a daemon does
	fastRetries                   bool      // retry soon: see setFastRobotsRetries
	resetCountsIfLimitReached     bool      // limits of all processes that are reached count anew
	onLimitCountsReset            func()    // called when they do; it must not block. nil: nobody is told
}

// What crawls of one process share, so that together they are as polite as one,
// and take the memory of one.
type sharedResources struct {
	sharedHosts           *politeness.SharedHosts
	brakes                *politeness.Brakes        // nil: there are none
	hostDueStore          *crawler.HostDueStore     // nil: one crawl is all there is
	memoryBudget          *bolt.SharedMemoryBudget  // of the frontiers; nil: there is one
	bodyMemory            *bodymem.Budget           // of answers; nil: each crawl has its own
	memoryPressureMonitor *memlimit.PressureMonitor // refuses new hosts while memory is low; nil: never
	sharedBrakes          *sharedBrakes             // with other processes; nil: there are none
}

// Rooms are the house, put together for a project.
type crawlComponents struct {
	stores            datadir.CrawlStores
	project           project.Project
	pathConfinement   *confine.Paths // of the files that the project names
	scope             *frontier.Scope
	gate              *robots.Gate
	frontier          *frontier.Frontier
	crawler           *crawler.Crawler // nil: nobody crawls
	refusalReporter   *discoveryRefusalReporter
	workerCoordinator *sharedLimitsCoordinator // who else crawls; nil: nobody
	closeIdleConns    func()                   // when nobody crawls any more; nil: nobody did
}

// politenessPolicyOf returns the pace of p.
func (g engineConfig) politenessPolicyOf(p project.Project) politeness.Policy {
	policy := p.PolitenessPolicy()
	if g.fastRetries {
		setFastHostRetries(&policy)
	}
	return policy
}

// newEngineWithoutCrawler puts those rooms together that need no crawl to go on, for a project that
// has been checked: all that judges and queues URLs. budget may be nil.
func (g engineConfig) newEngineWithoutCrawler(p project.Project, seedPerOrigin []decorum.URL, budget frontier.VisitBudget) (*crawlComponents, error) {
	scopeConfig, err := p.ScopeConfig()
	if err != nil {
		return nil, err
	}
	gateConfig, err := p.GateConfig()
	if err != nil {
		return nil, err
	}
	params, err := p.ParamCleaner()
	if err != nil {
		return nil, err
	}
	if g.fastRetries {
		setFastRobotsRetries(&gateConfig)
	}
	if g.now != nil {
		scopeConfig.CurrentYear = g.now().Year()
		if !gateConfig.SessionStart.IsZero() {
			gateConfig.SessionStart = g.now()
		}
	}
	r := &crawlComponents{
		stores: g.stores, project: p, pathConfinement: g.pathConfinement,
		scope: frontier.NewScope(scopeConfig, seedPerOrigin), gate: robots.NewGate(gateConfig, g.stores.Robots),
		refusalReporter: &discoveryRefusalReporter{log: g.log, onRefused: g.onRefused},
	}
	r.frontier = frontier.New(g.stores.Frontier, frontier.Config{
		Scope: r.scope, ParamCleaner: params, LeaseTTL: p.Store.LeaseTTL(), CleanURL: r.gate.CleanURL, Budget: budget,
		Now: g.now, WaitForRevisitsAndSuspensions: g.waitForRevisitsAndSuspensions, MaxNextWait: maxPolitenessDelay(g.politenessPolicyOf(p)), OnNewURLQueued: g.onNewURLQueued, OnRefused: r.refusalReporter.countAndReportRefusal,
		IsMemoryLow: g.memoryPressureMonitor.IsMemoryLow,
	})
	return r, nil
}

// newCrawlEngine puts all rooms together for a project that has been checked.
func (g engineConfig) newCrawlEngine(p project.Project, seedPerOrigin []decorum.URL) (*crawlComponents, error) {
	settings, err := crawlerSettings(&p)
	if err != nil {
		return nil, err
	}
	bodyMemory := g.bodyMemory
	if bodyMemory == nil {
		bodyMemory = bodymem.NewDefault()
	}
	httpFetcher, err := newFetcher(&p, g.pathConfinement, g.stores.Frontier, g.transport, bodyMemory)
	if err != nil {
		return nil, err
	}
	fetcher, err := newMultiSchemeFetcher(&p, httpFetcher, bodyMemory)
	if err != nil {
		return nil, err
	}
	limiter := g.sharedHosts.NewLimiter(p.LimiterConfig(g.restartedAt))
	var budget frontier.VisitBudget = limiter
	coordinator := newSharedLimitsCoordinator(&g, p, limiter)
	if coordinator != nil { // whose limits these are
		budget, settings.MaxPages, settings.MaxReceivedBytes = coordinator, 0, 0
	}
	r, err := g.newEngineWithoutCrawler(p, seedPerOrigin, budget)
	if err != nil {
		return nil, err
	}
	if agent, _ := p.RobotsAgent(); agent.IgnoresStarRules() {
		g.log.Warn("rules for * do not bind this agent; what is closed to its operator's main robot is marked not_for_indexing", "agent", p.Agent.Product)
	}
	r.crawler = &crawler.Crawler{
		Frontier: r.frontier, Gate: r.gate, Policy: g.politenessPolicyOf(p), Limiter: limiter, Brakes: g.brakes, HostDueStore: g.hostDueStore,
		Fetcher: fetcher, PageRecorder: g.JSONL, Hooks: g.hooks,
		Settings: settings, Log: g.log, Now: g.now,
	}
	if coordinator != nil {
		r.crawler.Coordinator, r.workerCoordinator = coordinator, coordinator
	}
	r.closeIdleConns = httpFetcher.CloseIdleConnections
	g.callbacksByHandlerName.attachCallbacks(r.crawler, p, httpFetcher)
	if g.Ledger != nil {
		r.crawler.Ledger = g.Ledger
	}
	if g.Archive != nil {
		g.Archive.EnableRevisitRecords(r.frontier, settings.Revisit.IsEnabled())
		r.crawler.Archive = g.Archive
	}
	return r, nil
}

// endOutdatedSuspensions offers again what an earlier run, which may have been set otherwise, has
// put away.
func (r *crawlComponents) endOutdatedSuspensions(ctx context.Context) error {
	return r.frontier.EndSuspensionsExcept(ctx, r.crawler.ShouldStaySuspended)
}

// queueSeeds discovers the project's seeds.
func (r *crawlComponents) queueSeeds(ctx context.Context) error {
	return queueSeeds(ctx, &r.project, r.pathConfinement.OpenInput, r.frontier)
}

// unparkIfChangedAndSaveProject makes a crawl that goes on the project's: parked URLs are judged
// again if it judges otherwise than it did before. The project is kept after
// that, so that a kill in between repeats it.
func (r *crawlComponents) unparkIfChangedAndSaveProject(ctx context.Context, dir datadir.StateDir, previous *project.File) error {
	if previous == nil || !previous.AllowsSameURLs(r.project) {
		if err := errors.Join(r.frontier.UnparkAll(ctx), r.frontier.Flush(ctx)); err != nil {
			return err
		}
	}
	return dir.SaveProject(r.project, r.pathConfinement != nil)
}

// setFastRobotsRetries makes robots.txt files that cannot be had be asked for again within
// seconds, and setFastHostRetries pages. They are for servers that only play at being in
// trouble.
func setFastRobotsRetries(gateConfig *robots.GateConfig) {
	gateConfig.Backoff503 = robots.Backoff{First: time.Second, Max: 2 * time.Second}
	gateConfig.Backoff = gateConfig.Backoff503
}

func setFastHostRetries(policy *politeness.Policy) {
	policy.InitialBackoff, policy.MaxBackoff = 500*time.Millisecond, 2*time.Second
}

// seedBatch is how many seeds are discovered at a time.
const seedBatch = 1000

// queueSeeds discovers all seeds. Those of an earlier start are known already.
func queueSeeds(ctx context.Context, p *project.Project, open inputfile.OpenFunc, f *frontier.Frontier) error {
	batch := make([]storage.Entry, 0, seedBatch)
	flush := func() error {
		_, err := f.Discover(ctx, batch...)
		batch = batch[:0]
		return err
	}
	for u, err := range p.AllSeeds(open) {
		if err == nil && len(batch) == seedBatch {
			err = flush()
		}
		if err != nil {
			return err
		}
		batch = append(batch, storage.Entry{URL: u, Source: storage.SourceSeed, PriorityClass: storage.ClassEarly})
	}
	return flush()
}
