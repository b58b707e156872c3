package collyfetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// WrapOptions configures the crawl around a wrapped collector. Agent and Contact are compulsory; the
// zero value of any other field is the default of its package.
type WrapOptions struct {
	// Agent is the product token that robots.txt rules are looked up by, or product/version. A
	// token has only letters, "_" and "-" (RFC 9309, section 2.2.1).
	Agent string
	// Contact is a URL or mailto: by which a site's owner can reach you. It is part of the
	// User-Agent header.
	Contact string
	// StateDir is the directory that keeps the state of the crawl, frontier.db and robots.db. A
	// program that was stopped or killed resumes where it was when it is started again. Delete the
	// directory to start over. Empty: the state is in memory, and ends with the process.
	StateDir string
	// KeepLedger records what permits each request, before its first byte is sent, in the directory
	// ledger of StateDir. "decorum ledger verify --data StateDir" checks the ledger. A run ends if
	// the ledger cannot be written.
	KeepLedger bool
	// KeepCookies sends sites the cookies that they set, and keeps them in the state of the crawl.
	// Otherwise cookies are ignored.
	KeepCookies bool
	// MaxRequestBody bounds the body of a request, in bytes: see Collector.MaxRequestBody.
	MaxRequestBody int64

	Policy politeness.Policy // the delay between visits to a host
	// LimiterConfig limits the whole crawl and each address. IPConcurrency 0 is 2.
	LimiterConfig politeness.LimiterConfig
	// RobotsConfig says how robots.txt is read, and what the pages are used for (Purposes: see
	// docs/ai-use.md). The zero Agent is made from Agent; another, which may have wider tokens, must
	// have its product token.
	RobotsConfig gate.Config
	// FrontierConfig says which URLs belong to the crawl, and their order. Scope nil: the URLs
	// that the collector allows.
	FrontierConfig frontier.Config
	// FetchConfig says how requests are sent. Wrap sets UserAgent from Agent and Contact, and
	// Cookies if KeepCookies is set.
	FetchConfig httpfetch.Config
	// Settings are the limits of a run. Workers 0 is one worker, so that callbacks run one at a
	// time, unless the collector is Async. Sitemaps are not read: the callbacks say what to visit.
	Settings crawler.Settings

	// Hooks are called at points of the crawl, from several workers at a time.
	Hooks    crawler.Hooks
	Recorder crawler.Recorder // nil: pages are not recorded
	Log      *slog.Logger     // nil: slog.Default
}

// A Crawl is a collector with a complete crawl around it. Wrap makes one.
type Crawl struct {
	*Collector

	crawler          *crawler.Crawler
	gateNotes        storage.NoteStore
	frontierStore    storage.Store
	ledger           *ledgerWriter   // nil: the crawl keeps no ledger
	ctx              context.Context // from colly.StdlibContext
	async            atomic.Bool     // from colly.Async
	workerCount      int             // WrapOptions.Settings.Workers
	mustReleaseHolds bool            // suspensions of an earlier process have yet to be reviewed
	isRunning        atomic.Bool     // Run, or a Visit that waits, is under way
	queueRuns        []*queueRun     // unfinished; only the goroutine that set isRunning uses it, and Close
}

// Wrap builds a polite, persistent and resumable crawl around c. From then on, the URLs that c visits
// are queued, and requested when robots.txt allows it and their host is due. Callbacks registered
// before or after Wrap work as they do in colly. The Crawl is a collector, too: use it in place of c.
// The rest of a program stays the same and ends with Visit or, if c is Async, with Wait. Call Close
// at the end.
//
// Wrap returns an error for settings of c that decorum cannot support, and for invalid WrapOptions.
// docs/colly.md lists them.
func Wrap(c *colly.Collector, o WrapOptions) (_ *Crawl, err error) {
	crawl := &Crawl{ctx: c.Context, workerCount: o.Settings.Workers}
	crawl.async.Store(c.Async)
	if err := o.setIdentity(); err != nil {
		return nil, fmt.Errorf("collyfetch: %w", err)
	}
	o = o.withDefaults(c)
	if err := errors.Join(o.Policy.Validate(), o.RobotsConfig.Validate()); err != nil {
		return nil, fmt.Errorf("collyfetch: %w", err)
	}
	if o.KeepLedger && o.StateDir == "" {
		return nil, errLedgerNeedsDir
	}
	// Open the files of the crawl, and close them if a later step fails.
	if err := crawl.openStores(o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, crawl.Close())
		}
	}()
	if o.KeepCookies {
		o.FetchConfig.Cookies = httpfetch.NewCookies(crawl.frontierStore)
	}
	fetcher, err := httpfetch.New(o.FetchConfig)
	if err != nil {
		return nil, err
	}
	crawl.assembleCrawler(o)
	if crawl.Collector, err = wrapCollector(c, crawl.crawler.Frontier, fetcher, o.Log); err != nil {
		return nil, err
	}
	crawl.Collector.MaxRequestBody = o.MaxRequestBody
	crawl.crawler.Fetcher, crawl.crawler.Handler = crawl.Collector, crawl.Handle
	return crawl, nil
}

// setIdentity sets, from Agent and Contact, what robots.txt rules are looked up by and what requests
// say of the crawl. It returns an error for a field that says something else.
func (o *WrapOptions) setIdentity() error {
	product, userAgent, err := httpheader.BuildUserAgent(o.Agent, o.Contact)
	if err != nil {
		return err
	}
	switch token := o.RobotsConfig.Agent.Token(); {
	case o.FetchConfig.UserAgent != "" && o.FetchConfig.UserAgent != userAgent:
		return fmt.Errorf("FetchConfig.UserAgent %q: Agent and Contact make it %q", o.FetchConfig.UserAgent, userAgent)
	case token != "" && !strings.EqualFold(token, product):
		return fmt.Errorf("RobotsConfig.Agent %q: Agent is %q", token, o.Agent)
	case o.Settings.ProductToken != "" && !strings.EqualFold(o.Settings.ProductToken, product):
		return fmt.Errorf("Settings.ProductToken %q: Agent is %q", o.Settings.ProductToken, o.Agent)
	case token == "":
		if o.RobotsConfig.Agent, err = robots.PresetOrNewAgent(o.RobotsConfig.Dialect, product); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
	}
	o.FetchConfig.UserAgent, o.Settings.ProductToken = userAgent, product
	return nil
}

// withDefaults sets the fields that o leaves empty, from the collector's settings where it has them.
func (o WrapOptions) withDefaults(c *colly.Collector) WrapOptions {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.LimiterConfig.IPConcurrency = cmp.Or(o.LimiterConfig.IPConcurrency, 2)
	o.Settings.NoSitemaps = true
	o.Settings.MaxPages = cmp.Or(o.Settings.MaxPages, int64(c.MaxRequests))
	o.FetchConfig.MaxBody = cmp.Or(o.FetchConfig.MaxBody, int64(c.MaxBodySize))
	if o.FrontierConfig.Scope == nil { // the collector checks MaxDepth itself
		scope := frontier.ScopeConfig{Mode: frontier.AnyScope, MaxDepth: math.MaxInt, CurrentYear: time.Now().Year()}
		o.FrontierConfig.Scope = frontier.NewScope(scope, nil)
	}
	return o
}

// openStores opens the stores of the crawl, in StateDir or in memory, and the ledger if the crawl keeps
// one. It closes them if it returns an error.
func (c *Crawl) openStores(o WrapOptions) error {
	if o.StateDir == "" {
		c.gateNotes, c.frontierStore = memory.New(memory.Config{}), memory.New(memory.Config{})
		return nil
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return fmt.Errorf("collyfetch: cannot create the directory of the crawl: %w", err)
	}
	opts := bolt.Options{PostInterruptionDelay: o.Policy.WithDefaults().Delay,
		OnStallChange: func(err error) {
			o.Log.Warn("the state of the crawl cannot be written (error nil: it can be again)", "error", err)
		},
		OnDamaged: func(err error) { o.Log.Error("a record of the crawl's state is damaged", "error", err) }}
	notes, err := bolt.OpenNotes(filepath.Join(o.StateDir, "robots.db"), opts)
	if err == nil {
		c.gateNotes = notes
		err = c.openLedgerIfEnabled(o)
	}
	if err == nil {
		// The robots.txt files and the ledger must be on disk before the frontier says that the
		// requests they permitted have been made.
		opts.BeforeWrite = func() error { return errors.Join(notes.Flush(context.Background()), c.ledger.sync()) }
		opts.ListOutputFiles = c.ledger.durableFileExtents
		var s *bolt.Store
		if s, err = bolt.Open(filepath.Join(o.StateDir, "frontier.db"), opts); err == nil {
			c.frontierStore = s
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("collyfetch: cannot open the state of the crawl: %w", err), c.Close())
	}
	c.mustReleaseHolds = true
	return nil
}

// assembleCrawler creates the Crawler from the options and the open stores.
func (c *Crawl) assembleCrawler(o WrapOptions) {
	if c.mustReleaseHolds {
		o.LimiterConfig.RestartedAt = time.Now()
	}
	limits := politeness.NewLimiter(o.LimiterConfig)
	robotsGate := gate.New(o.RobotsConfig, c.gateNotes)
	o.FrontierConfig.CleanURL, o.FrontierConfig.Budget = robotsGate.CleanURL, limits
	c.crawler = &crawler.Crawler{
		Frontier: frontier.New(c.frontierStore, o.FrontierConfig), Gate: robotsGate, Policy: o.Policy, Limiter: limits,
		PageRecorder: o.Recorder, Hooks: o.Hooks, Settings: o.Settings, Log: o.Log,
	}
	if c.ledger != nil {
		c.crawler.Ledger = c.ledger
	}
}

// errAlreadyRunning is the error of a second Run at the same time.
var errAlreadyRunning = errors.New("collyfetch: the crawl is running")

// Run crawls until no URL is left to visit, and returns the error of Crawler.Run. Call it again when
// there are more URLs to visit.
func (c *Crawl) Run(ctx context.Context) error {
	if !c.isRunning.CompareAndSwap(false, true) {
		return errAlreadyRunning
	}
	defer c.isRunning.Store(false)
	if err := c.rereadSettings(); err != nil {
		return err
	}
	return c.runWithQueues(ctx)
}

// run crawls until the frontier is empty, for runWithQueues.
func (c *Crawl) run(ctx context.Context) error {
	if c.mustReleaseHolds {
		// The settings may differ from those of the last run: end its suspensions, except for hosts
		// that are not due and need a longer delay than this run waits for.
		if err := c.crawler.Frontier.EndSuspensionsExcept(ctx, c.crawler.ShouldStaySuspended); err != nil {
			return err
		}
		c.mustReleaseHolds = false
	}
	c.crawler.Settings.Workers = c.workerCount
	if c.workerCount == 0 && !c.async.Load() {
		c.crawler.Settings.Workers = 1 // callbacks of a synchronous program do not run concurrently
		for _, r := range c.queueRuns {
			c.crawler.Settings.Workers = max(c.crawler.Settings.Workers, r.threads)
		}
	}
	return c.crawler.Run(ctx)
}

// rereadSettings applies what the program has changed in the collectors since the last run.
func (c *Crawl) rereadSettings() error {
	if c.Async {
		c.async.Store(true)
	}
	return c.Collector.reapplyOverrides()
}

// Wait crawls until no URL is left to visit, as colly's Wait does for an Async collector. It logs the
// error of the crawl; use Run to get it.
func (c *Crawl) Wait() {
	if err := c.warnIfOnlySuspendedLeft(c.Run(c.ctx)); err != nil {
		c.Log.Error("the crawl ended early", "error", err)
	}
}

// warnIfOnlySuspendedLeft logs frontier.ErrOnlySuspendedLeft and returns nil for it, because colly's
// users do not expect an error when origins do not answer. It returns any other err.
func (c *Crawl) warnIfOnlySuspendedLeft(err error) error {
	if errors.Is(err, frontier.ErrOnlySuspendedLeft) {
		c.Log.Warn("not every URL was visited", "why", err)
		return nil
	}
	return err
}

// Stats returns the counts of the crawl so far.
func (c *Crawl) Stats() crawler.Stats { return c.crawler.Stats() }

// Close flushes the state of the crawl to disk, and closes its files and idle connections. It logs
// that requests are queued which no run has visited.
func (c *Crawl) Close() (err error) {
	for _, r := range c.queueRuns {
		r.drain()
	}
	c.queueRuns = nil
	if c.Collector != nil {
		if n := c.unvisitedRequests.Load(); n > 0 {
			c.Log.Warn("requests are queued, and no run has visited them: call Run, Wait or, for a queue, RunQueue of "+
				"the Crawl", "requests", n)
		}
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

// Visit queues a URL. Like colly's Visit, it returns when that URL and all URLs that follow from it
// have been visited. If the collector is Async or the crawl is running, as during a callback, it
// returns at once. Visit also completes earlier visits that were interrupted. It logs origins that
// do not answer, and returns no error for them.
func (c *Crawl) Visit(url string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Visit(url) })
}

// Head is Visit with the method HEAD.
func (c *Crawl) Head(url string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Head(url) })
}

// Post is Visit with the method POST and a form as the body. The request is sent at most once, even
// if the program is killed: see docs/colly.md.
func (c *Crawl) Post(url string, form map[string]string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Post(url, form) })
}

// PostRaw is Post with an arbitrary body.
func (c *Crawl) PostRaw(url string, body []byte) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.PostRaw(url, body) })
}

// PostMultipart is Post with a multipart form.
func (c *Crawl) PostMultipart(url string, form map[string][]byte) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.PostMultipart(url, form) })
}

// Request is Visit with any method but TRACE and CONNECT. A request with an unsafe method (RFC 9110,
// section 9.2.1) is sent at most once, like that of Post.
func (c *Crawl) Request(method, url string, body io.Reader, ctx *colly.Context, header http.Header) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Request(method, url, body, ctx, header) })
}

// enqueueAndRunUnlessAsync calls enqueue and then crawls, unless the crawl is Async or running.
func (c *Crawl) enqueueAndRunUnlessAsync(enqueue func() error) error {
	if c.async.Load() || !c.isRunning.CompareAndSwap(false, true) {
		return enqueue()
	}
	defer c.isRunning.Store(false)
	if err := c.rereadSettings(); err != nil { // the program may have set Async
		return err
	}
	if err := enqueue(); err != nil || c.async.Load() {
		return err
	}
	return c.warnIfOnlySuspendedLeft(c.runWithQueues(c.ctx))
}
