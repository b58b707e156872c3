package crawl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/seedoutcome"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A Crawl is a complete crawl. Open makes one. Its methods must not be called concurrently, except
// Stats.
type Crawl struct {
	crawler          *crawler.Crawler
	fetcher          *httpfetch.Fetcher // nil if Open failed before it was made
	seeds            []decorum.URL
	gateNotes        storage.NoteStore
	frontierStore    storage.Store
	ledger           *ledgerWriter // nil: the crawl keeps no ledger
	mustReleaseHolds bool          // suspensions of an earlier process have yet to be reviewed

	hasPage atomic.Bool          // a page was answered with 2xx
	failed  seedoutcome.Recorder // why seeds led to no page
	handler crawler.Handler      // nil: LinksToFollow

	mu     sync.Mutex                                  // guards onPage: its calls do not overlap
	onPage func(context.Context, *crawler.Visit) error // nil: handler reads pages
}

// Run opens the crawl that cfg describes, crawls until no URL is left to visit, and closes it. It
// returns the errors of Open, Crawl.Run and Close.
func Run(ctx context.Context, cfg Config) error {
	c, err := Open(cfg)
	if err != nil {
		return err
	}
	return errors.Join(c.Run(ctx), c.Close())
}

// Open opens the state of a crawl, creating it if necessary, and assembles the crawl around it. It
// sends nothing. Call Close at the end. Open returns an error for an invalid cfg, and if the state
// cannot be opened.
func Open(cfg Config) (*Crawl, error) {
	c := &Crawl{}
	if err := c.open(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("crawl: %w", err), c.Close())
	}
	return c, nil
}

// open is Open; its caller closes c if it returns an error.
func (c *Crawl) open(cfg Config) error {
	// Check the configuration before a file is created.
	for _, seed := range cfg.Seeds {
		u, err := decorum.ParseURL(seed)
		if err != nil || !u.Origin().IsHTTP() {
			return fmt.Errorf("seed %q: expected a URL with http or https, as in https://example.com/", seed)
		}
		c.seeds = append(c.seeds, u)
	}
	cfg, err := cfg.withDefaults(c.seeds)
	if err != nil {
		return err
	}
	if err := c.openStores(cfg); err != nil {
		return err
	}
	if cfg.KeepCookies {
		cfg.FetchConfig.Cookies = httpfetch.NewCookies(c.frontierStore)
	}
	if c.fetcher, err = httpfetch.New(cfg.FetchConfig); err != nil {
		return err
	}
	c.assembleCrawler(cfg)
	return c.crawler.Validate()
}

// openStores opens the stores of the crawl, in StateDir or in memory, and the ledger if the crawl keeps
// one.
func (c *Crawl) openStores(cfg Config) error {
	if cfg.StateDir == "" {
		c.gateNotes, c.frontierStore = memory.New(memory.Config{}), memory.New(memory.Config{})
		return nil
	}
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return fmt.Errorf("cannot create the directory of the crawl: %w", err)
	}
	opts := bolt.Options{PostInterruptionDelay: cfg.Policy.WithDefaults().Delay,
		OnStallChange: func(err error) {
			cfg.Log.Warn("the state of the crawl cannot be written (error nil: it can be again)", "error", err)
		},
		OnDamaged: func(err error) { cfg.Log.Error("a record of the crawl's state is damaged", "error", err) }}
	notes, err := bolt.OpenNotes(filepath.Join(cfg.StateDir, "robots.db"), opts)
	if err == nil {
		c.gateNotes = notes
		err = c.openLedgerIfEnabled(cfg)
	}
	if err == nil {
		// The robots.txt files and the ledger must be on disk before the frontier says that the
		// requests they permitted have been made.
		opts.BeforeWrite = func() error { return errors.Join(notes.Flush(context.Background()), c.ledger.sync()) }
		opts.ListOutputFiles = c.ledger.durableFileExtents
		var s *bolt.Store
		if s, err = bolt.Open(filepath.Join(cfg.StateDir, "frontier.db"), opts); err == nil {
			c.frontierStore = s
		}
	}
	if err != nil {
		return fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	c.mustReleaseHolds = true
	return nil
}

// assembleCrawler creates the Crawler from the configuration, the open stores and the fetcher.
func (c *Crawl) assembleCrawler(cfg Config) {
	if c.mustReleaseHolds {
		cfg.LimiterConfig.RestartedAt = time.Now()
	}
	limits := politeness.NewLimiter(cfg.LimiterConfig)
	robotsGate := gate.New(cfg.RobotsConfig, c.gateNotes)
	cfg.FrontierConfig.CleanURL, cfg.FrontierConfig.Budget = robotsGate.CleanURL, limits
	c.recordSeedOutcomes(&cfg)
	c.crawler = &crawler.Crawler{
		Frontier: frontier.New(c.frontierStore, cfg.FrontierConfig), Gate: robotsGate, Policy: cfg.Policy,
		Limiter: limits, Fetcher: c.fetcher, Handler: c.handlePage, PageRecorder: cfg.Recorder, Hooks: cfg.Hooks,
		Settings: cfg.Settings, Log: cfg.Log,
	}
	c.handler, c.onPage = cfg.Handler, cfg.OnPage
	if c.ledger != nil {
		c.crawler.Ledger = c.ledger
	}
}

// recordSeedOutcomes adds calls of c.failed to the hooks of cfg.
func (c *Crawl) recordSeedOutcomes(cfg *Config) {
	visited, visitRefused, onRefused := cfg.Hooks.Visited, cfg.Hooks.VisitRefused, cfg.FrontierConfig.OnRefused
	cfg.Hooks.Visited = func(v *crawler.Visit) {
		c.failed.Visited(v)
		if visited != nil {
			visited(v)
		}
	}
	cfg.Hooks.VisitRefused = func(l storage.Lease, d decorum.Decision) {
		c.failed.VisitRefused(l, d)
		if visitRefused != nil {
			visitRefused(l, d)
		}
	}
	cfg.FrontierConfig.OnRefused = func(e storage.Entry, err error) {
		c.failed.DiscoveryRefused(e, err)
		if onRefused != nil {
			onRefused(e, err)
		}
	}
}

// handlePage is the Handler that calls handler or onPage.
func (c *Crawl) handlePage(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
	if v.OK() {
		c.hasPage.Store(true)
	}
	if c.handler != nil {
		return c.handler(ctx, v)
	}
	if c.onPage != nil && v.OK() {
		if err := c.callOnPage(ctx, v); err != nil {
			return nil, err
		}
	}
	return c.crawler.LinksToFollow(ctx, v)
}

// callOnPage calls onPage when no other call is under way.
func (c *Crawl) callOnPage(ctx context.Context, v *crawler.Visit) error {
	c.mu.Lock()
	defer c.mu.Unlock() // also if onPage panics
	return c.onPage(ctx, v)
}

// Run queues the seeds, crawls until no URL is left to visit, and returns the error of
// crawler.Crawler.Run, such as frontier.ErrOnlySuspendedLeft if only hosts are left that do not
// answer. It may be called again. It returns an error if there are no seeds and no other URL to visit,
// and if seeds are new and no page was answered with 2xx. That error names the seeds, at most 10, with the
// reasons.
func (c *Crawl) Run(ctx context.Context) error {
	newSeeds := 0
	for _, u := range c.seeds {
		e := storage.Entry{URL: u, Source: storage.SourceSeed, SeedOrigin: u.Origin(),
			PriorityClass: storage.ClassEarly}
		added, err := c.crawler.Frontier.Discover(ctx, e)
		if err != nil {
			return err
		}
		newSeeds += added
	}
	if err := c.ReleaseHolds(ctx); err != nil {
		return err
	}
	err := c.crawler.Run(ctx)
	switch {
	case err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft):
		return err
	case newSeeds > 0 && !c.hasPage.Load():
		return errors.Join(err, c.newNoPageError())
	case err == nil && len(c.seeds) == 0 && c.Stats().Pages == 0:
		return errNoSeeds
	}
	return err
}

// newNoPageError returns the error of a run whose seeds led to no page, which names them and says why.
func (c *Crawl) newNoPageError() error {
	failures := c.failed.Failures()
	if len(failures) == 0 { // a callback gave them up
		return errors.New("crawl: no seed led to a page with a 2xx status")
	}
	return fmt.Errorf("crawl: no seed led to a page with a 2xx status: %s", strings.Join(failures, "; "))
}

// errNoSeeds is the error of a run that had nothing to visit.
var errNoSeeds = errors.New("crawl: no URL was visited: Seeds is empty, and the state has no URL that is due and " +
	"within the scope, which is that of the seeds unless FrontierConfig sets it")

// ReleaseHolds prepares the first run on the state of an earlier process, whose settings may have been
// others. It ends suspensions, but keeps those of hosts that are not due and need a longer delay than the
// crawl waits for. It queues the URLs again that the earlier scope left out and this one has, as far as
// the robots.txt files that are known allow them. Run calls it; a program that runs the Crawler itself
// calls it before the first run.
func (c *Crawl) ReleaseHolds(ctx context.Context) error {
	if !c.mustReleaseHolds {
		return nil
	}
	urls, now := c.crawler.Frontier, time.Now()
	if err := urls.EndSuspensionsExcept(ctx, c.crawler.ShouldStaySuspended); err != nil {
		return err
	}
	mayVisit := func(e storage.Entry) bool {
		if urls.CheckScope(e) != nil {
			return false
		}
		_, isRefusal := errors.AsType[*gate.Refusal](c.crawler.Gate.CheckKnown(ctx, now, e.URL))
		return !isRefusal
	}
	if err := urls.UnparkMatchingURLs(ctx, decorum.Origin{}, mayVisit); err != nil {
		return err
	}
	c.mustReleaseHolds = false
	return nil
}

// Crawler returns the Crawler that Run runs. Its fields may be changed between runs.
func (c *Crawl) Crawler() *crawler.Crawler { return c.crawler }

// Fetcher returns the Fetcher that sends the requests.
func (c *Crawl) Fetcher() *httpfetch.Fetcher { return c.fetcher }

// Stats returns the counts of the crawl so far.
func (c *Crawl) Stats() crawler.Stats { return c.crawler.Stats() }

// Close flushes the state of the crawl to disk, and closes its files and idle connections.
func (c *Crawl) Close() (err error) {
	if c.fetcher != nil {
		c.fetcher.CloseIdleConnections()
	}
	if c.frontierStore != nil { // closed first: it flushes gateNotes before it writes
		err = c.frontierStore.Close()
	}
	if c.gateNotes != nil {
		err = errors.Join(err, c.gateNotes.Close())
	}
	return errors.Join(err, c.ledger.close())
}
