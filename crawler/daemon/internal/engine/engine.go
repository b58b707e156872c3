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
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A Config holds the parts of a crawl that do not follow from its project file.
type Config struct {
	Stores      datadir.CrawlStores
	Confinement *confine.ProjectAccess // limits the files that the project may name; nil: any
	sinks.Outputs
	Handlers PageHandlerRegistry
	Hooks    crawler.Hooks
	// Transport and Now replace the network and the clock of the machine, for a replay. Either may be nil.
	Transport http.RoundTripper
	Now       func() time.Time
	// OnNewURLQueued is called for each queued URL, OnRefused for each refused one. Either may be nil.
	OnNewURLQueued func(storage.Entry)
	OnRefused      func(storage.Entry, error)
	SharedResources
	Log *slog.Logger
	// RestartedAt is when the process was restarted. Hosts may have been visited just before, so they rest
	// from then. It is zero for a new crawl.
	RestartedAt time.Time
	// WaitForRevisitsAndSuspensions makes the crawl wait for revisits and suspended origins instead of
	// ending, as in a daemon.
	WaitForRevisitsAndSuspensions bool
	FastRetries                   bool   // retry within seconds, for test servers that simulate failures
	ResetCountsIfLimitReached     bool   // reset the counts of shared limits that are reached
	OnLimitCountsReset            func() // called after that reset; must not block; may be nil
}

// SharedResources are shared by the crawls of one process, so that together they are as polite as one
// crawl, and use the memory of one.
type SharedResources struct {
	SharedHosts           *politeness.SharedHosts
	OperatorBrakes        *politeness.Brakes        // nil: no brakes
	HostDueStore          *crawler.HostDueStore     // keeps the rests of hosts across crawls; nil: only one crawl runs
	MemoryBudget          *bolt.SharedMemoryBudget  // for the frontiers; nil: only one crawl runs
	BodyMemory            *bodymem.Budget           // for response bodies; nil: each crawl has its own
	IdleConns             *httpfetch.IdleConns      // connections kept open; nil: each crawl has its own
	MemoryPressureMonitor *memlimit.PressureMonitor // refuses new hosts while memory is low; nil: never
	SharedBrakes          *CrossProcessBrakes       // nil: the state is not shared with other processes
}

// An Engine is a crawl of one project: its parts, connected.
type Engine struct {
	Stores            datadir.CrawlStores
	Project           project.Project
	pathConfinement   *confine.ProjectAccess // see Config.Confinement
	Gate              *gate.Gate
	Frontier          *frontier.Frontier
	Crawler           *crawler.Crawler // nil: see Config.NewWithoutCrawler
	RefusalReporter   *DiscoveryRefusalReporter
	WorkerCoordinator *MultiProcessCoordinator // nil: one process crawls alone
	CloseIdleConns    func()                   // call after the crawl; nil without a Crawler
}

// politenessPolicyOf returns the politeness policy of p. With FastRetries it shortens the backoff to
// between 500 ms and 2 s.
func (g Config) politenessPolicyOf(p project.Project) politeness.Policy {
	policy := p.PolitenessPolicy()
	if g.FastRetries {
		policy.InitialBackoff, policy.MaxBackoff = 500*time.Millisecond, 2*time.Second
	}
	return policy
}

// NewWithoutCrawler returns an Engine without fetchers and crawler, for a validated project: it can
// evaluate and queue URLs, and inspect the crawl. seedPerOrigin holds the first seed of each origin.
// budget limits the leases of the frontier, and may be nil.
func (g Config) NewWithoutCrawler(p project.Project, seedPerOrigin []decorum.URL,
	budget frontier.VisitBudget) (*Engine, error) {
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
	// Adapt the gate and the scope to a test or a replay.
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
	// Connect the parts: the frontier takes the scope, and cleans URLs by the rules of the gate.
	r := &Engine{
		Stores: g.Stores, Project: p, pathConfinement: g.Confinement,
		Gate:            gate.New(gateConfig, g.Stores.Robots),
		RefusalReporter: &DiscoveryRefusalReporter{log: g.Log, onRefused: g.OnRefused},
	}
	r.Frontier = frontier.New(g.Stores.Frontier, frontier.Config{
		Scope: frontier.NewScope(scopeConfig, seedPerOrigin), ParamCleaner: params, LeaseTTL: p.Store.LeaseTTL(),
		CleanURL: r.Gate.CleanURL, Budget: budget,
		Now: g.Now, WaitForRevisitsAndSuspensions: g.WaitForRevisitsAndSuspensions,
		MaxNextWait: maxPolitenessDelay(g.politenessPolicyOf(p)), OnNewURLQueued: g.OnNewURLQueued,
		OnRefused:   r.RefusalReporter.countAndReportRefusal,
		IsMemoryLow: g.MemoryPressureMonitor.IsMemoryLow,
	})
	return r, nil
}

// NewEngine returns an Engine that can crawl a validated project. seedPerOrigin holds the first seed of
// each origin. It starts no goroutine.
func (g Config) NewEngine(p project.Project, seedPerOrigin []decorum.URL) (*Engine, error) {
	settings, err := crawlerSettings(&p)
	if err != nil {
		return nil, err
	}
	web, fetcher, err := NewFetchers(&p, g.Confinement, g.Stores.Frontier, g.Transport, g.SharedResources)
	if err != nil {
		return nil, err
	}
	// Let the coordinator enforce the limits of a crawl of several processes, and the crawler those of
	// any other crawl.
	limiter := g.SharedHosts.NewLimiter(p.LimiterConfig(g.RestartedAt))
	var budget frontier.VisitBudget = limiter
	coordinator := newMultiProcessCoordinator(&g, p, limiter)
	if coordinator != nil {
		budget, settings.MaxPages, settings.MaxReceivedBytes = coordinator, 0, 0
	}
	r, err := g.NewWithoutCrawler(p, seedPerOrigin, budget)
	if err != nil {
		return nil, err
	}
	if agent, _ := p.RobotsAgent(); agent.IgnoresStarRules() {
		g.Log.Warn("rules for * do not bind this agent; pages that are closed to its operator's main robot are "+
			"marked not_for_indexing", "agent", p.Agent.Product)
	}
	hasZeroDelay := p.ZeroDelayCheck(time.Now())
	for _, seed := range seedPerOrigin {
		if hasZeroDelay(seed.Origin()) {
			g.Log.Warn("politeness.delay is 0: requests to a host follow each other without a fixed pause",
				"host", seed.Origin().Host())
			break
		}
	}
	r.Crawler = &crawler.Crawler{
		Frontier: r.Frontier, Gate: r.Gate, Policy: g.politenessPolicyOf(p), Limiter: limiter, Brakes: g.OperatorBrakes,
		HostDueStore: g.HostDueStore,
		Fetcher:      fetcher, PageRecorder: g.JSONL, Hooks: g.Hooks,
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

// UnparkIfChangedAndSaveProject adapts a resumed crawl to the Engine's project. If the project may allow
// other URLs than previous, which is nil if unknown, the parked URLs are evaluated again. It saves the
// project in dir after that, so that a kill in between repeats both.
func (r *Engine) UnparkIfChangedAndSaveProject(ctx context.Context, dir datadir.StateDir,
	previous *project.File) error {
	if previous == nil || !previous.AllowsSameURLs(r.Project) {
		unparkErr := r.Frontier.UnparkMatchingURLs(ctx, decorum.Origin{}, func(storage.Entry) bool { return true })
		if err := errors.Join(unparkErr, r.Stores.Frontier.Flush(ctx)); err != nil {
			return err
		}
	}
	return dir.SaveProject(r.Project, r.pathConfinement != nil)
}

// SeedBatchSize is the number of seeds in one call of Frontier.Discover.
const SeedBatchSize = 1000

// QueueSeeds queues the project's seeds. Seeds that an earlier run has queued are not queued again.
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
		batch = append(batch, storage.Entry{URL: u, Source: storage.SourceSeed, SeedOrigin: u.Origin(),
			PriorityClass: storage.ClassEarly})
	}
	return flush()
}
