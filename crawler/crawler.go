package crawler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// ErrHalted is what Run returns after Halt.
var ErrHalted = errors.New("the crawl was halted")

// errWorkerGoexit stops a crawl when a callback has ended a worker's goroutine: its lease would
// never be acked.
var errWorkerGoexit = errors.New("a callback ended its goroutine by runtime.Goexit, as t.FailNow does")

// A Crawler is one crawl. Fill in its exported fields, then call Run. Frontier, Gate, Limiter and
// Fetcher are required; each other field says what its zero value means.
type Crawler struct {
	// Frontier says which URL is next. Its Config has the Gate's CleanURL, and the Limiter as its
	// Budget.
	Frontier *frontier.Frontier
	Gate     *gate.Gate        // decides by robots.txt whether a URL may be visited
	Policy   politeness.Policy // how long a host rests between visits; the zero Policy is polite
	// Limiter issues permits. Crawls that may visit the same hosts have Limiters of one
	// politeness.SharedHosts.
	Limiter *politeness.Limiter
	Brakes  *politeness.Brakes // an operator's orders to stop or slow hosts; nil: none
	// HostDueStore keeps when hosts are due after visits of other crawls, across restarts; nil:
	// there are no other crawls.
	HostDueStore *HostDueStore
	Coordinator  Coordinator  // the other processes that work on this crawl; nil: there are none
	Fetcher      Fetcher      // makes the requests
	Handler      Handler      // reads pages; nil: LinksToFollow
	PageRecorder Recorder     // records each page after its handler has returned; nil: none
	Archive      Recorder     // records every visit as it ends, also to robots.txt and sitemaps; nil: none
	Ledger       Ledger       // records every request before it is sent, and its result; nil: none
	Hooks        Hooks        // observe the crawl
	Settings     Settings     // numbers and switches
	Log          *slog.Logger // nil: slog.Default
	// Now is the clock for decisions and records; the frontier must use the same one. Leases use
	// the machine's clock. A crawl with its own clock never attributes a failure to this machine.
	// Nil: time.Now.
	Now func() time.Time

	// The parts of the pipeline; Prepare configures them.
	// The Gate's Agent may be another crawler, for which robots.txt files are evaluated: no page is
	// requested then, because CheckProductToken refuses it.
	evaluatesForOthers bool

	counters      counters
	hasSent       atomic.Bool // see HasSent
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

// Settings are the numbers and switches of a crawl.
type Settings struct {
	Workers  int   // visits at a time; default 64
	MaxPages int64 // page visits in this run; 0: no limit
	MaxLinks int   // links read from one page or feed; default DefaultMaxLinks
	// MaxReceivedBytes bounds the decoded bodies received in this run, in bytes; visits in flight
	// may exceed it. 0: no limit.
	MaxReceivedBytes int64
	// MaxPagesPerHost is how many pages of a host are visited, in all runs together; 0: no limit.
	// Further URLs of the host stay queued. Retries, revisits, sitemaps and robots.txt do not
	// count.
	MaxPagesPerHost int
	// MaxBytesPerHost is how many bytes of decoded bodies a host may send in all runs together,
	// including robots.txt, retries and revisits; 0: no limit. Beyond it the crawl visits no new
	// page or sitemap of the host, and further URLs stay queued. Retries and revisits continue.
	// Each visit in flight may exceed the limit by its body.
	MaxBytesPerHost int64
	// MaxDuplicateLinksPerHost is how many URLs are queued, in all runs together, as links of pages
	// whose body another URL of their host gave before. Default DefaultMaxDuplicateLinksPerHost.
	MaxDuplicateLinksPerHost int
	// MaxAttempts is how many visits a failing page gets: at least 10 while the server is
	// throttling, at most 2 when it is unreachable or its answer is malformed. See FailureClass.
	// Default 3.
	MaxAttempts int
	// Revisit says when pages and sitemaps are visited again; the zero value: never. A page that an
	// earlier run scheduled for a revisit is then visited one last time.
	Revisit frontier.RevisitPolicy
	// GracePeriod is how long visits in flight may continue after Run's context is done. The
	// default is 30 s.
	GracePeriod time.Duration
	// MaxSitemapsPerHost is how many sitemaps the robots.txt of a host may lead to in this run,
	// directly and through indexes; default DefaultMaxSitemapsPerHost.
	MaxSitemapsPerHost int
	// MaxSitemapBody is how many bytes of a sitemap are read, after decompression; default
	// DefaultMaxSitemapBody, at most 1 TiB. The rest of a longer sitemap is ignored.
	MaxSitemapBody    int64
	NoSitemaps        bool              // ignore all sitemaps
	TrySitemapXML     bool              // try /sitemap.xml of an origin whose robots.txt names no sitemap
	FollowedLinkKinds FollowedLinkKinds // which URLs of a page LinksToFollow returns
	IgnoreNoFollow    bool              // ignore nofollow in pages and headers
	// RecordRefusalsInLedger also writes to the Ledger which leased URLs were refused, and why.
	RecordRefusalsInLedger bool
	// DryRun visits robots.txt and sitemaps only, to find out which pages a crawl would visit. It
	// reports each page to Hooks.SkippedInDryRun and acks it as done; use a separate frontier.
	DryRun bool
	// TDMRepTTL is how long a tdmrep.json stays valid. The crawl fetches that file only if the
	// Gate's purposes include text and data mining. Default 24 h.
	TDMRepTTL time.Duration
	// ReuseVisitMemory lets the body of a page, and its links, take memory that another visit has used, and
	// another will use. It has no effect on a crawl with a Handler. In any other, neither Hooks nor a Recorder
	// may keep Response.Body or Visit.Links, or a part of them, after they have returned, or call a method of the
	// Visit then: Title, for example, may read the body only when it is first called.
	ReuseVisitMemory bool
	// ProductToken is the crawler's product token; meta tags and X-Robots-Tag headers may name it.
	// Default: that of the Gate's Agent, which it must not contradict.
	ProductToken string
}

// DefaultMaxLinks is how many links are read from one page or feed.
const DefaultMaxLinks = extract.DefaultMaxLinks

// DefaultMaxDuplicateLinksPerHost is how many URLs are queued as links of a host's pages that repeat
// the body of another of its pages.
const DefaultMaxDuplicateLinksPerHost = 1000

// DefaultMaxSitemapsPerHost is how many sitemaps the robots.txt of a host may lead to in one run.
const DefaultMaxSitemapsPerHost = 10_000

// DefaultMaxSitemapBody is how many bytes of a sitemap are read: the limit of sitemaps.org.
const DefaultMaxSitemapBody = 50 << 20

func (s Settings) validate() error {
	if s.Workers < 0 || s.MaxPages < 0 || s.MaxLinks < 0 || s.MaxReceivedBytes < 0 || s.MaxPagesPerHost < 0 ||
		s.MaxBytesPerHost < 0 || s.MaxAttempts < 0 || s.MaxSitemapsPerHost < 0 || s.MaxSitemapBody < 0 ||
		s.MaxDuplicateLinksPerHost < 0 {
		return errors.New("numbers must not be negative")
	}
	if s.GracePeriod < 0 || s.TDMRepTTL < 0 {
		return errors.New("durations must not be negative")
	}
	return nil
}

func (s Settings) withDefaults() Settings {
	s.Workers = cmp.Or(s.Workers, 64)
	s.MaxDuplicateLinksPerHost = cmp.Or(s.MaxDuplicateLinksPerHost, DefaultMaxDuplicateLinksPerHost)
	s.MaxSitemapsPerHost = cmp.Or(s.MaxSitemapsPerHost, DefaultMaxSitemapsPerHost)
	// A fetcher reads one byte more (Ticket.BodyLimit), to see whether the sitemap is longer.
	s.MaxSitemapBody = min(cmp.Or(s.MaxSitemapBody, DefaultMaxSitemapBody), 1<<40)
	s.MaxAttempts = cmp.Or(s.MaxAttempts, 3)
	s.TDMRepTTL = cmp.Or(s.TDMRepTTL, 24*time.Hour)
	s.GracePeriod = cmp.Or(s.GracePeriod, 30*time.Second)
	return s
}

// Run crawls until one of these, and returns:
//   - nil, when the frontier is empty;
//   - frontier.ErrOnlyRevisitsLeft, when only pages that await a revisit are left;
//   - frontier.ErrOnlySuspendedLeft, when only suspended origins are left;
//   - ErrPages or ErrBytes, when MaxPages or MaxReceivedBytes is reached;
//   - the error of a part that the crawl cannot continue without, such as its store;
//   - the cause of ctx, when ctx is done. Run then takes no new lease and lets visits in flight
//     continue for GracePeriod.
//
// When Run returns, the store has the result of every visit and is flushed. Run may be called
// again: it continues, Stats keep counting, and the limits of a run start from zero. If Validate
// returns an error, Run returns it and does nothing else.
func (c *Crawler) Run(ctx context.Context) error {
	if err := c.Prepare(); err != nil {
		return err
	}
	return c.Continue(ctx)
}

// Continue is Run as a part of the last run: what that run counted against MaxPages and
// MaxReceivedBytes still counts. It serves callers that add URLs whenever the frontier is empty. Call
// Run first.
func (c *Crawler) Continue(ctx context.Context) error {
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
			defer stop(errWorkerGoexit) // no effect unless a Goexit ended the loop: the first cause counts
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
		// An error is ignored: counts that cannot be saved now are saved later.
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

// Validate returns an error of Kind Invalid if a required part is missing, the Policy or the
// Settings are invalid, or the User-Agent of the Fetcher names another crawler than the Gate's
// Agent.
func (c *Crawler) Validate() error {
	err := cmp.Or(c.Policy.Validate(), c.Settings.validate())
	switch {
	case c.Frontier == nil:
		err = errors.New("field Frontier is nil")
	case c.Gate == nil:
		err = errors.New("field Gate is nil")
	case c.Limiter == nil:
		err = errors.New("field Limiter is nil")
	case c.Fetcher == nil:
		err = errors.New("field Fetcher is nil")
	case err == nil:
		err = c.checkProductTokens()
	}
	if err != nil {
		return &decorum.Error{Op: "crawl", Kind: decorum.Invalid, Err: err}
	}
	return nil
}

// checkProductTokens returns an error if the Gate, the Settings and the Fetcher disagree on the
// crawl's product token.
func (c *Crawler) checkProductTokens() error {
	if c.evaluatesForOthers {
		return nil
	}
	product := c.Gate.Agent().Token()
	if token := c.Settings.ProductToken; token != "" && !strings.EqualFold(token, product) {
		return fmt.Errorf("field Settings.ProductToken is %q, and the Agent of the Gate is %q", token, product)
	}
	return checkProductToken(c.Fetcher, product)
}

// Prepare readies the crawl for calls of Step; Run calls it itself. It returns the error of
// Validate.
func (c *Crawler) Prepare() error {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Settings = c.Settings.withDefaults()
	c.Settings.ProductToken = cmp.Or(c.Settings.ProductToken, c.Gate.Agent().Token())
	c.Limiter.SetWorkers(c.Settings.Workers)
	c.Log = cmp.Or(c.Log, slog.Default())
	c.configureParts()
	return nil
}

// configureParts passes the configuration to the parts of the pipeline, and starts their counts of
// a run. They keep what they know of hosts and origins.
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
	c.waitlist.waitlistConfig = waitlistConfig{limiter: c.Limiter, brakes: c.Brakes, frontier: c.Frontier,
		closeStoppedConns: c.closeStoppedConns, now: now}
	cleaner := urlCleaner{gate: c.Gate, frontier: c.Frontier}
	content := &contentAnalyzer{
		gate: c.Gate, tdmrep: &c.prerequisites.tdmrepCache, settings: c.Settings, counters: &c.counters, log: c.Log,
	}
	outcomes := outcomePlanner{
		policy: c.Policy, settings: c.Settings, notes: notes, content: content, counters: &c.counters,
		onRetryScheduled: c.Hooks.RetryScheduled, now: now, lastmodAccuracyLock: &c.prerequisites.lastmodAccuracyLock,
	}
	c.prerequisites.beginRun(prerequisitesConfig{
		gate: c.Gate, frontier: c.Frontier, settings: c.Settings, hosts: &c.hostTable,
		cleaner: cleaner, outcomes: outcomes,
		counters: &c.counters, onRobotsFetched: c.Hooks.RobotsFetched, log: c.Log, now: now,
	})
	c.ledgerEntries = ledgerEntries{
		ledger: c.Ledger, gate: c.Gate, store: c.Frontier.Store(), policy: c.Policy, content: content,
		recordsRefusals: c.Settings.RecordRefusalsInLedger, now: now,
	}
	c.pages.pageHandlerConfig = pageHandlerConfig{
		handler: c.Handler, recorder: c.PageRecorder, frontier: c.Frontier, hosts: &c.hostTable,
		policy: c.Policy, settings: c.Settings, cleaner: cleaner, content: content, outcomes: outcomes,
		counters: &c.counters, log: c.Log, prerequisites: &c.prerequisites,
	}
	c.faults.faultAttributorConfig = faultAttributorConfig{
		limiter: c.Limiter, hosts: &c.hostTable, counters: &c.counters, log: c.Log, usesMachineClock: c.Now == nil,
	}
}

// Step takes the next URL through the pipeline, and returns when its lease is acked. Call Prepare
// first. Several goroutines may call Step at a time. Without Run, leases are not renewed, and a new
// brake does not cancel a request in flight.
func (c *Crawler) Step(ctx context.Context) error { return c.step(ctx, ctx) }

// reusesVisitMemory reports whether the memory of a page's body and links may serve another visit once its visit
// is over.
func (c *Crawler) reusesVisitMemory() bool { return c.Settings.ReuseVisitMemory && c.Handler == nil }

func (c *Crawler) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// callEvery calls f after each interval until ctx is done.
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

// Halt ends the run: it cancels the visits in flight, and Run returns ErrHalted. Their URLs go back
// to the frontier. Without a run it does nothing.
func (c *Crawler) Halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelRun != nil {
		c.cancelRun()
	}
}

// finishRun returns what was leased and not visited, flushes the store, and returns how the run
// ended.
func (c *Crawler) finishRun(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	c.Limiter.LeaveSharedHosts(c.now())
	// A store that cannot write returns these leases when it is opened again.
	err := errors.Join(c.Frontier.ReturnUnusedLeases(ctx), c.waitlist.wakeAllWaitingOrigins(ctx),
		c.Frontier.SaveRefusalAndSessionIDCounts(ctx), c.Frontier.Store().Flush(context.Background()))
	if errors.Is(cause, frontier.ErrEmpty) {
		cause = nil
	}
	if err != nil && !errors.Is(cause, storage.ErrFailed) { // the store has logged ErrFailed
		return errors.Join(cause, err)
	}
	return cause
}

// commitTimeout is how long a worker may still write to the store after the visits were cancelled.
// Only a store that cannot write takes that long.
const commitTimeout = 5 * time.Second

// commitContextKey is the key of the context that commitContext returns.
type commitContextKey struct{}

// graceContext returns the context of the visits: it is cancelled GracePeriod after ctx is done, or
// by Halt. Its value for commitContextKey outlives it by commitTimeout. done releases both.
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

// cancelWithDelay calls cancel d after ctx is done, unless commitCtx is done before that.
func cancelWithDelay(ctx, commitCtx context.Context, d time.Duration, cancel func()) {
	context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(commitCtx, func() { t.Stop() })
	})
}

// commitContext returns the context for storing the result of a visit whose context is ctx. During
// Run it outlives ctx by commitTimeout: results are stored even while the crawl is being halted,
// and a store that cannot write blocks no worker for longer. Outside Run it is never done.
func commitContext(ctx context.Context) context.Context {
	if commitCtx, ok := ctx.Value(commitContextKey{}).(context.Context); ok {
		return commitCtx
	}
	return context.WithoutCancel(ctx)
}

// onBrakesChanged cancels the requests to hosts that a brake stops now, and wakes the waitlist.
// politeness.Brakes calls it after each change, before Set, Remove or Replace returns.
func (c *Crawler) onBrakesChanged() {
	now := c.now()
	c.activeLeases.cancelRequestsToHosts(func(host string) error { return c.Brakes.CheckStopped(host, now).Err() })
	select {
	case c.waitlist.brakesChanged <- struct{}{}:
	default:
	}
}

// ShouldStaySuspended reports whether an origin that an earlier run suspended stays suspended: its
// host is not due, and it demands a longer rest than this run waits for.
func (c *Crawler) ShouldStaySuspended(o storage.OriginInfo) bool {
	now := c.now()
	policy := c.Policy.ForHost(o.Origin.Host(), now)
	return o.HostState.Due.After(now) &&
		(o.HostState.LostVisitDelay > policy.MaxRetryAfter ||
			DecodeHostStats(o.HostState.EncodedStats).CrawlDelay > policy.MaxCrawlDelay)
}
