package crawler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// ErrHalted is the error of Run when Halt has ended it.
var ErrHalted = errors.New("the crawl was halted")

// errWorkerGoexit stops a crawl that has lost a worker, and with it a visit.
var errWorkerGoexit = errors.New("a callback ended its goroutine by runtime.Goexit, as t.FailNow does")

// A Crawler is one crawl: fill in its parts, then Run. It needs a Frontier, a Gate,
// a Limiter and a Fetcher; of the others each says what zero means.
type Crawler struct {
	Frontier     *frontier.Frontier  // which URL is next; its Config has the Gate's CleanURL, and the Limiter for a Budget
	Gate         *gate.Gate          // whether it is allowed
	Policy       politeness.Policy   // how long its host rests; the zero Policy is polite
	Limiter      *politeness.Limiter // of a politeness.SharedHosts that crawls share, where they may visit the same hosts
	Brakes       *politeness.Brakes  // that stop or slow hosts, at once; nil: none
	HostDueStore *HostDueStore       // what other crawls' visits have earned hosts, in earlier processes too; nil: there are none
	Coordinator  Coordinator         // the other processes that work on it; nil: it is alone
	Fetcher      Fetcher             // makes the requests
	Handler      Handler             // nil: LinksToFollow
	PageRecorder Recorder            // of visits to pages, when they have been read; nil: none
	Archive      Recorder            // of every visit, robots.txt and sitemaps too, as soon as it is over; nil: none
	Ledger       Ledger              // of every request, before it is sent, and of what came of it; nil: none
	Hooks        Hooks               // look on
	Settings     Settings            // numbers and switches
	Log          *slog.Logger        // nil: slog.Default
	// Now is the clock by which is decided and recorded; that of the frontier must be
	// the same. Leases run by the clock of the machine. A crawl with a clock of its own charges this
	// machine with no failure. Nil: time.Now.
	Now func() time.Time

	// The parts of the pipeline. Prepare gives them the configuration above.
	counters      counters
	budget        runBudget
	activeLeases  activeLeases
	leasedVisits  leasedVisitConfig
	hostTable     hostTable
	waitlist      waitlist
	prerequisites prerequisites
	ledgerEntries ledgerEntries
	pages         pageHandler
	faults        faultAttributor

	mu        sync.Mutex // guards cancelRun
	cancelRun context.CancelFunc
}

// Settings are a crawl's numbers and switches.
type Settings struct {
	Workers          int   // visits at a time; default 64
	MaxPages         int64 // pages to visit in this run; 0: no limit
	MaxLinks         int   // links taken from one page, or feed; default DefaultMaxLinks
	MaxReceivedBytes int64 // of bodies, as decoded, to receive in this run, and those in hand then; 0: no limit
	// MaxPagesPerHost is how many pages of a host are visited, in all runs
	// together; 0: no limit. Further URLs of the host stay queued. Retries,
	// revisits, sitemaps and robots.txt do not count.
	MaxPagesPerHost int
	// MaxBytesPerHost is how many bytes of bodies, as decoded, a host may send in all
	// runs together, including robots.txt, retries and revisits; 0: no limit. Beyond it
	// the crawl visits no new page or sitemap of the host, and further URLs stay
	// queued. Retries and revisits continue. Each visit in flight may exceed the limit
	// by its body.
	MaxBytesPerHost int64
	// MaxAttempts is how many visits a page gets that keeps failing; more where
	// the server is throttling, fewer where there is no hope: see FailureClass.
	// Default 3.
	MaxAttempts int
	// Revisit says when pages and sitemaps are visited again; the zero value:
	// never. Pages that rest from an earlier run are then visited a last time.
	Revisit frontier.RevisitPolicy
	// GracePeriod is how long visits in hand may go on when Run's context is done.
	// Default 30 s.
	GracePeriod time.Duration
	// MaxSitemapsPerHost is how many sitemaps the robots.txt of a host may lead to in this
	// run, by itself and by indexes; default DefaultMaxSitemapsPerHost.
	MaxSitemapsPerHost int
	// MaxSitemapBody is how many bytes of a sitemap are read, in a file that is
	// compressed as they come out of it; default DefaultMaxSitemapBody, at most 1 TiB.
	// What comes after them does not count.
	MaxSitemapBody    int64
	NoSitemaps        bool              // do not read the sitemaps that robots.txt names
	FollowedLinkKinds FollowedLinkKinds // what leads on from a page
	IgnoreNoFollow    bool              // do not read nofollow in pages and headers
	// RecordRefusalsInLedger writes into the Ledger, too, which URLs were refused when their
	// turn came, and why.
	RecordRefusalsInLedger bool
	// DryRun makes a run that only finds out what there is to visit: robots.txt and
	// sitemaps are, pages are passed by (Hooks.SkippedInDryRun) and count as done. Its
	// frontier is not that of a crawl.
	DryRun bool
	// TDMRepTTL is how long what a tdmrep.json says holds, where the Gate's
	// purposes make the crawl ask for it. Default 24 h.
	TDMRepTTL time.Duration
	// ProductToken is the crawl's product token, for meta tags and X-Robots-Tag
	// headers that name it.
	ProductToken string
}

// DefaultMaxLinks is how many links are taken from one page, or feed.
const DefaultMaxLinks = extract.DefaultMaxLinks

// DefaultMaxSitemapsPerHost is how many sitemaps the robots.txt of a host may lead to.
const DefaultMaxSitemapsPerHost = 10_000

// DefaultMaxSitemapBody is how many bytes of a sitemap are read: as many as sitemaps.org
// allows.
const DefaultMaxSitemapBody = 50 << 20

func (s Settings) validate() error {
	if s.Workers < 0 || s.MaxPages < 0 || s.MaxLinks < 0 || s.MaxReceivedBytes < 0 || s.MaxPagesPerHost < 0 ||
		s.MaxBytesPerHost < 0 || s.MaxAttempts < 0 || s.MaxSitemapsPerHost < 0 || s.MaxSitemapBody < 0 {
		return errors.New("numbers must not be negative")
	}
	if s.GracePeriod < 0 || s.TDMRepTTL < 0 {
		return errors.New("durations must not be negative")
	}
	return nil
}

func (s Settings) withDefaults() Settings {
	s.Workers = cmp.Or(s.Workers, 64)
	s.MaxSitemapsPerHost = cmp.Or(s.MaxSitemapsPerHost, DefaultMaxSitemapsPerHost)
	s.MaxSitemapBody = min(cmp.Or(s.MaxSitemapBody, DefaultMaxSitemapBody), 1<<40) // more is read, to see whether there is more
	s.MaxAttempts = cmp.Or(s.MaxAttempts, 3)
	s.TDMRepTTL = cmp.Or(s.TDMRepTTL, 24*time.Hour)
	s.GracePeriod = cmp.Or(s.GracePeriod, 30*time.Second)
	return s
}

// Run crawls until the frontier is empty (nil), only resting pages are left
// (frontier.ErrOnlyRevisitsLeft) or dormant origins (frontier.ErrOnlySuspendedLeft), MaxPages or
// MaxReceivedBytes is reached (ErrPages, ErrBytes), something fails that the crawl
// cannot go on without, or ctx is done: then it takes no new lease, lets what is
// in hand end within GracePeriod, and returns the cause of ctx. In every case all that
// was done is in the store when it returns, and flushed. Then it may be run again:
// it goes on, and Stats count on; what is limited by run counts anew. Where Validate has
// an objection, Run returns it, and does nothing.
func (c *Crawler) Run(ctx context.Context) error {
	if err := c.Prepare(); err != nil {
		return err
	}
	c.hostTable.logClosedWindowAndOverrides(c.now())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	workCtx, done := c.graceContext(ctx, stop)
	defer done()
	c.waitlist.brakesChanged = make(chan struct{}, 1)
	defer c.Brakes.NotifyOnChange(c.onBrakesChanged)()

	var wg sync.WaitGroup
	for range c.Settings.Workers {
		wg.Go(func() {
			defer stop(errWorkerGoexit) // the run is over already, or the worker was ended
			for ctx.Err() == nil {
				if err := c.step(ctx, workCtx); err != nil {
					stop(err)
				}
			}
		})
	}
	var renewing sync.WaitGroup
	renewing.Go(func() { c.activeLeases.renewLoop(workCtx, c.Frontier) })
	renewing.Go(func() {
		// What cannot be kept of what the frontier has refused and cleaned is kept later.
		callEvery(workCtx, time.Minute, func() { _ = c.Frontier.SaveRefusalAndSessionIDCounts(workCtx) })
	})
	renewing.Go(func() {
		if err := c.waitlist.wakeOnHostOrBrakeChangeLoop(workCtx); err != nil {
			stop(err)
		}
	})
	wg.Wait()
	c.Halt()
	renewing.Wait()
	return c.finishRun(context.Cause(ctx))
}

// Validate returns why the crawl cannot run, if so: it lacks a part, or a part makes
// no sense. The error is of Kind Invalid.
func (c *Crawler) Validate() error {
	err := cmp.Or(c.Policy.Validate(), c.Settings.validate())
	switch {
	case c.Frontier == nil:
		err = errors.New("there is no Frontier")
	case c.Gate == nil:
		err = errors.New("there is no Gate")
	case c.Limiter == nil:
		err = errors.New("there is no Limiter")
	case c.Fetcher == nil:
		err = errors.New("there is no Fetcher")
	}
	if err != nil {
		return &decorum.Error{Op: "crawl", Kind: decorum.Invalid, Err: err}
	}
	return nil
}

// Prepare begins a run that is not Run's: whoever takes URLs through the pipeline one
// by one calls it before the first Step. It returns the error of Validate.
func (c *Crawler) Prepare() error {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Settings = c.Settings.withDefaults()
	c.Limiter.SetWorkers(c.Settings.Workers)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.configureParts()
	return nil
}

// configureParts gives the parts of the pipeline what they need of the crawl's configuration, and
// has them begin a run. What they know of hosts and origins stays.
func (c *Crawler) configureParts() {
	now, notes := c.now, c.Frontier.Store()
	c.budget.beginRun(c.Settings, c.Coordinator)
	c.hostTable.hostTableConfig = hostTableConfig{
		policy: c.Policy, limiter: c.Limiter, frontier: c.Frontier, hostDueStore: c.HostDueStore, log: c.Log, now: now,
	}
	c.hostTable.crawlDelays.gate, c.hostTable.crawlDelays.notes = c.Gate, notes
	c.leasedVisits = leasedVisitConfig{
		activeLeases: &c.activeLeases, hosts: &c.hostTable, tdmrepCache: &c.prerequisites.tdmrepCache,
		gate: c.Gate, limiter: c.Limiter, budget: &c.budget, now: now,
	}
	c.waitlist.waitlistConfig = waitlistConfig{limiter: c.Limiter, brakes: c.Brakes, frontier: c.Frontier, now: now}
	cleaner := urlCleaner{gate: c.Gate, frontier: c.Frontier}
	content := &contentAnalyzer{
		gate: c.Gate, tdmrep: &c.prerequisites.tdmrepCache, settings: c.Settings, counters: &c.counters, log: c.Log,
	}
	outcomes := outcomePlanner{
		policy: c.Policy, settings: c.Settings, notes: notes, content: content, counters: &c.counters,
		onRetryScheduled: c.Hooks.RetryScheduled, now: now, lastmodAccuracyLock: &c.prerequisites.lastmodAccuracyLock,
	}
	c.prerequisites.beginRun(prerequisitesConfig{
		gate: c.Gate, frontier: c.Frontier, settings: c.Settings, hosts: &c.hostTable, cleaner: cleaner, outcomes: outcomes,
		counters: &c.counters, onRobotsFetched: c.Hooks.RobotsFetched, log: c.Log, now: now,
	})
	c.ledgerEntries = ledgerEntries{
		ledger: c.Ledger, gate: c.Gate, store: c.Frontier.Store(), policy: c.Policy, content: content,
		recordsRefusals: c.Settings.RecordRefusalsInLedger, now: now,
	}
	c.pages.pageHandlerConfig = pageHandlerConfig{
		handler: c.Handler, recorder: c.PageRecorder, frontier: c.Frontier, policy: c.Policy, settings: c.Settings,
		cleaner: cleaner, content: content, outcomes: outcomes, counters: &c.counters, log: c.Log,
	}
	c.faults.faultAttributorConfig = faultAttributorConfig{
		limiter: c.Limiter, hosts: &c.hostTable, counters: &c.counters, log: c.Log, usesMachineClock: c.Now == nil,
	}
}

// Step takes the next URL through the pipeline, and returns when it is acked. Several
// may be under way at a time. Nobody renews their leases, and a brake that is put on does not break
// off a request that is under way.
func (c *Crawler) Step(ctx context.Context) error { return c.step(ctx, ctx) }

// now returns the time.
func (c *Crawler) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// callEvery calls f again and again, an interval apart, until ctx is done.
func callEvery(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// Halt ends the run and cancels the visits in hand. Their URLs go back to the
// frontier.
func (c *Crawler) Halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelRun != nil {
		c.cancelRun()
	}
}

// finishRun gives back what no worker took, flushes, and says how the run ended.
func (c *Crawler) finishRun(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	c.Limiter.LeaveSharedHosts(c.now())
	// What cannot be given back, because the store cannot write, is there again
	// when the store is opened the next time.
	err := errors.Join(c.Frontier.ReturnUnusedLeases(ctx), c.waitlist.wakeAllWaitingOrigins(ctx), c.Frontier.SaveRefusalAndSessionIDCounts(ctx), c.Frontier.Store().Flush(context.Background()))
	if errors.Is(cause, frontier.ErrEmpty) {
		cause = nil
	}
	if err != nil && !errors.Is(cause, storage.ErrFailed) { // the store has logged ErrFailed
		return errors.Join(cause, err)
	}
	return cause
}

// commitTimeout is how long what was fetched may still take to reach the store when
// the visits in hand have been broken off. It takes as long only if the store
// cannot write.
const commitTimeout = 5 * time.Second

// commitContextKey is the key of the context that outlives the visits in hand.
type commitContextKey struct{}

// graceContext returns the context of the visits in hand: it outlives ctx by
// GracePeriod, unless Halt ends it. done frees what it holds.
func (c *Crawler) graceContext(ctx context.Context, stop context.CancelCauseFunc) (work context.Context, done func()) {
	commitCtx, cancelCommit := context.WithCancel(context.WithoutCancel(ctx))
	work, cancel := context.WithCancel(context.WithValue(commitCtx, commitContextKey{}, commitCtx))
	c.mu.Lock()
	c.cancelRun = func() {
		stop(ErrHalted)
		cancel()
	}
	c.mu.Unlock()
	cancelWithDelay(ctx, commitCtx, c.Settings.GracePeriod, cancel)
	cancelWithDelay(work, commitCtx, commitTimeout, cancelCommit)
	return work, cancelCommit
}

// cancelWithDelay calls cancel d after ctx is done, unless after is done before.
func cancelWithDelay(ctx, commitCtx context.Context, d time.Duration, cancel func()) {
	context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(commitCtx, func() { t.Stop() })
	})
}

// commitContext returns the context for keeping what a visit brought: it outlives
// ctx, that of the visit, by settling. So what was done is kept even when the
// crawl is being halted, and a store that cannot write holds nobody for good.
func commitContext(ctx context.Context) context.Context {
	if commitCtx, ok := ctx.Value(commitContextKey{}).(context.Context); ok {
		return commitCtx
	}
	return context.WithoutCancel(ctx)
}

// onBrakesChanged breaks off the requests to hosts that are stopped now. It is called
// when the brakes have changed, before who changed them goes on.
func (c *Crawler) onBrakesChanged() {
	now := c.now()
	c.activeLeases.cancelRequestsToHosts(func(host string) error { return c.Brakes.CheckStopped(host, now).Err() })
	select {
	case c.waitlist.brakesChanged <- struct{}{}:
	default:
	}
}

// ShouldStaySuspended reports whether an origin that an earlier run has set aside is of a
// host that is not due, and asks for a longer rest than this run waits for.
func (c *Crawler) ShouldStaySuspended(o storage.OriginInfo) bool {
	now := c.now()
	policy := c.Policy.ForHost(o.Origin.Host(), now)
	return o.HostState.Due.After(now) &&
		(o.HostState.LostVisitDelay > policy.MaxRetryAfter || DecodeHostStats(o.HostState.EncodedStats).CrawlDelay > policy.MaxCrawlDelay)
}
