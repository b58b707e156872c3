package engine

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
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A Config is what a crawl stands on: what outlives one setting of its project.
type Config struct {
	Stores      datadir.CrawlStores
	Confinement *confine.ProjectAccess // of the files that the project names
	sinks.Outputs
	Handlers PageHandlerRegistry
	Hooks    crawler.Hooks
	// A replay has a network and a clock of its own; nil: those of the machine.
	Transport http.RoundTripper
	Now       func() time.Time
	// Discovered and refused are told of URLs that are queued, and that are not;
	// nil: nobody is.
	OnNewURLQueued func(storage.Entry)
	OnRefused      func(storage.Entry, error)
	SharedResources
	Log                           *slog.Logger
	RestartedAt                   time.Time // when an earlier run was gone on with; zero if the crawl begins
	WaitForRevisitsAndSuspensions bool      // for revisits and dormant origins, as a daemon does
	FastRetries                   bool      // retry within seconds, for servers that only play at being in trouble
	ResetCountsIfLimitReached     bool      // limits of all processes that are reached count anew
	OnLimitCountsReset            func()    // called when they do; it must not block. nil: nobody is told
}

// What crawls of one process share, so that together they are as polite as one,
// and take the memory of one.
type SharedResources struct {
	SharedHosts           *politeness.SharedHosts
	OperatorBrakes        *politeness.Brakes        // nil: there are none
	HostDueStore          *crawler.HostDueStore     // nil: one crawl is all there is
	MemoryBudget          *bolt.SharedMemoryBudget  // of the frontiers; nil: there is one
	BodyMemory            *bodymem.Budget           // of answers; nil: each crawl has its own
	MemoryPressureMonitor *memlimit.PressureMonitor // refuses new hosts while memory is low; nil: never
	SharedBrakes          *CrossProcessBrakes       // with other processes; nil: there are none
}

// An Engine is the parts of a crawl, put together for a project.
type Engine struct {
	Stores            datadir.CrawlStores
	Project           project.Project
	pathConfinement   *confine.ProjectAccess // of the files that the project names
	Scope             *frontier.Scope
	Gate              *gate.Gate
	Frontier          *frontier.Frontier
	Crawler           *crawler.Crawler // nil: nobody crawls
	RefusalReporter   *DiscoveryRefusalReporter
	WorkerCoordinator *MultiProcessCoordinator // who else crawls; nil: nobody
	CloseIdleConns    func()                   // when nobody crawls any more; nil: nobody did
}

// politenessPolicyOf returns the pace of p.
func (g Config) politenessPolicyOf(p project.Project) politeness.Policy {
	policy := p.PolitenessPolicy()
	if g.FastRetries {
		policy.InitialBackoff, policy.MaxBackoff = 500*time.Millisecond, 2*time.Second
	}
	return policy
}

// NewWithoutCrawler puts those rooms together that need no crawl to go on, for a project that
// has been checked: all that judges and queues URLs. budget may be nil.
func (g Config) NewWithoutCrawler(p project.Project, seedPerOrigin []decorum.URL, budget frontier.VisitBudget) (*Engine, error) {
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
	if g.FastRetries {
		gateConfig.Backoff503 = gate.Backoff{First: time.Second, Max: 2 * time.Second}
		gateConfig.Backoff = gateConfig.Backoff503
	}
	if g.Now != nil {
		scopeConfig.CurrentYear = g.Now().Year()
		if !gateConfig.SessionStart.IsZero() {
			gateConfig.SessionStart = g.Now()
		}
	}
	r := &Engine{
		Stores: g.Stores, Project: p, pathConfinement: g.Confinement,
		Scope: frontier.NewScope(scopeConfig, seedPerOrigin), Gate: gate.New(gateConfig, g.Stores.Robots),
		RefusalReporter: &DiscoveryRefusalReporter{log: g.Log, onRefused: g.OnRefused},
	}
	r.Frontier = frontier.New(g.Stores.Frontier, frontier.Config{
		Scope: r.Scope, ParamCleaner: params, LeaseTTL: p.Store.LeaseTTL(), CleanURL: r.Gate.CleanURL, Budget: budget,
		Now: g.Now, WaitForRevisitsAndSuspensions: g.WaitForRevisitsAndSuspensions, MaxNextWait: maxPolitenessDelay(g.politenessPolicyOf(p)), OnNewURLQueued: g.OnNewURLQueued, OnRefused: r.RefusalReporter.countAndReportRefusal,
		IsMemoryLow: g.MemoryPressureMonitor.IsMemoryLow,
	})
	return r, nil
}

// NewEngine puts all rooms together for a project that has been checked.
func (g Config) NewEngine(p project.Project, seedPerOrigin []decorum.URL) (*Engine, error) {
	settings, err := crawlerSettings(&p)
	if err != nil {
		return nil, err
	}
	web, fetcher, err := NewFetchers(&p, g.Confinement, g.Stores.Frontier, g.Transport, g.BodyMemory)
	if err != nil {
		return nil, err
	}
	limiter := g.SharedHosts.NewLimiter(p.LimiterConfig(g.RestartedAt))
	var budget frontier.VisitBudget = limiter
	coordinator := newMultiProcessCoordinator(&g, p, limiter)
	if coordinator != nil { // whose limits these are
		budget, settings.MaxPages, settings.MaxReceivedBytes = coordinator, 0, 0
	}
	r, err := g.NewWithoutCrawler(p, seedPerOrigin, budget)
	if err != nil {
		return nil, err
	}
	if agent, _ := p.RobotsAgent(); agent.IgnoresStarRules() {
		g.Log.Warn("rules for * do not bind this agent; what is closed to its operator's main robot is marked not_for_indexing", "agent", p.Agent.Product)
	}
	r.Crawler = &crawler.Crawler{
		Frontier: r.Frontier, Gate: r.Gate, Policy: g.politenessPolicyOf(p), Limiter: limiter, Brakes: g.OperatorBrakes, HostDueStore: g.HostDueStore,
		Fetcher: fetcher, PageRecorder: g.JSONL, Hooks: g.Hooks,
		Settings: settings, Log: g.Log, Now: g.Now,
	}
	if coordinator != nil {
		r.Crawler.Coordinator, r.WorkerCoordinator = coordinator, coordinator
	}
	r.CloseIdleConns = web.CloseIdleConnections
	attachHandler(g.Handlers, r.Crawler, p, web)
	if g.Ledger != nil {
		r.Crawler.Ledger = g.Ledger
	}
	if g.Archive != nil {
		g.Archive.EnableRevisitRecords(g.Stores.Frontier, settings.Revisit.IsEnabled())
		r.Crawler.Archive = g.Archive
	}
	return r, nil
}

// UnparkIfChangedAndSaveProject makes a crawl that goes on the project's: parked URLs are judged
// again if it judges otherwise than it did before. The project is kept after
// that, so that a kill in between repeats it.
func (r *Engine) UnparkIfChangedAndSaveProject(ctx context.Context, dir datadir.StateDir, previous *project.File) error {
	if previous == nil || !previous.AllowsSameURLs(r.Project) {
		unparkErr := r.Frontier.UnparkMatchingURLs(ctx, decorum.Origin{}, func(storage.Entry) bool { return true })
		if err := errors.Join(unparkErr, r.Stores.Frontier.Flush(ctx)); err != nil {
			return err
		}
	}
	return dir.SaveProject(r.Project, r.pathConfinement != nil)
}

// SeedBatchSize is how many seeds are discovered at a time.
const SeedBatchSize = 1000

// QueueSeeds discovers the project's seeds. Those of an earlier start are known already.
func (r *Engine) QueueSeeds(ctx context.Context) error {
	batch := make([]storage.Entry, 0, SeedBatchSize)
	flush := func() error {
		_, err := r.Frontier.Discover(ctx, batch...)
		batch = batch[:0]
		return err
	}
	for u, err := range r.Project.AllSeeds(r.pathConfinement.OpenInput) {
		if err == nil && len(batch) == SeedBatchSize {
			err = flush()
		}
		if err != nil {
			return err
		}
		batch = append(batch, storage.Entry{URL: u, Source: storage.SourceSeed, PriorityClass: storage.ClassEarly})
	}
	return flush()
}
