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

// WrapOptions are how a wrapped collector crawls. Agent and Contact are compulsory;
// the zero value of any other field is the default of its package.
type WrapOptions struct {
	// Agent is the product token that robots.txt is searched for, or
	// product/version. Letters, "_" and "-" only (RFC 9309, section 2.2.1).
	Agent string
	// Contact is a URL or mailto: that a site's owner can reach you by. It is
	// part of the User-Agent header.
	Contact string
	// StateDir keeps the state of the crawl, so that a program that was stopped, or
	// killed, goes on where it was when it is started again. It holds
	// frontier.db and robots.db; delete it to start anew. Empty: the state is
	// in memory, and ends with the process.
	StateDir string
	// KeepLedger writes down what permits each request before its first byte leaves, in the
	// directory ledger of StateDir: "decorum ledger verify --data StateDir" checks it. A run ends
	// where that cannot be written.
	KeepLedger bool
	// KeepCookies shows to sites the cookies that they set, and keeps them in the state
	// of the crawl. Without it, cookies are ignored.
	KeepCookies bool
	// MaxRequestBody is how many bytes the body of a request may have: see Collector.
	MaxRequestBody int64

	Policy         politeness.Policy        // how long hosts rest
	LimiterConfig  politeness.LimiterConfig // of the whole crawl, and of addresses; IPConcurrency 0 is 2
	RobotsConfig   gate.Config              // how robots.txt is read, and what the pages are for (Purposes: see docs/ai-use.md); Agent is set from Agent
	FrontierConfig frontier.Config          // what belongs to the crawl and in which order; Scope nil: what the collector allows
	FetchConfig    httpfetch.Config         // how requests are sent; UserAgent and From are set from Agent and Contact, KeepCookies from KeepCookies
	Settings       crawler.Settings         // limits of a run. Workers 0 is one, so that callbacks run one at a time, unless Async is set; sitemaps are not read: the callbacks say what is visited

	Hooks    crawler.Hooks
	Recorder crawler.Recorder // nil: none
	Log      *slog.Logger     // nil: slog.Default
}

// A Crawl is a collector that a crawl of its own was built around.
type Crawl struct {
	*Collector

	crawler          *crawler.Crawler
	gateNotes        storage.NoteStore
	frontierStore    storage.Store
	ledger           *ledgerWriter   // nil: none
	ctx              context.Context // of colly.StdlibContext
	async            atomic.Bool     // of colly.Async
	workerCount      int             // as the WrapOptions say
	mustReleaseHolds bool            // the state is of an earlier process, and has not been looked at yet
	isRunning        atomic.Bool
}

// Wrap makes a collector polite, persistent and resumable: from now on what it
// visits is enqueued, and requested when robots.txt allows it and its host is
// due. Callbacks that it has, and will get, work as before. The Crawl is the
// collector too: where it takes its place, the rest of a program stays as it
// was, and ends with Visit, or, where Async is set, with Wait. Close it at the
// end.
//
// Wrap returns an error for settings of the collector that cannot be had, and
// for WrapOptions that make no sense. docs/colly.md tells of each.
func Wrap(c *colly.Collector, o WrapOptions) (_ *Crawl, err error) {
	crawl := &Crawl{ctx: c.Context, workerCount: o.Settings.Workers}
	crawl.async.Store(c.Async)
	product, userAgent, err := httpheader.BuildUserAgent(o.Agent, o.Contact)
	if err != nil {
		return nil, fmt.Errorf("collyfetch: %w", err)
	}
	if o.RobotsConfig.Agent, err = robots.PresetOrNewAgent(o.RobotsConfig.Dialect, product); err != nil {
		return nil, fmt.Errorf("collyfetch: agent: %w", err)
	}
	o.FetchConfig.UserAgent, o.FetchConfig.From, o.Settings.ProductToken = userAgent, httpheader.ContactMail(o.Contact), product
	o = o.withDefaults(c)
	if err := errors.Join(o.Policy.Validate(), o.RobotsConfig.Validate()); err != nil {
		return nil, fmt.Errorf("collyfetch: %w", err)
	}
	if o.KeepLedger && o.StateDir == "" {
		return nil, errLedgerNeedsDir
	}
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

// withDefaults sets what the WrapOptions leave open, by the collector's own
// settings where it has them.
func (o WrapOptions) withDefaults(c *colly.Collector) WrapOptions {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.LimiterConfig.IPConcurrency = cmp.Or(o.LimiterConfig.IPConcurrency, 2)
	o.Settings.NoSitemaps = true
	o.Settings.MaxPages = cmp.Or(o.Settings.MaxPages, int64(c.MaxRequests))
	o.FetchConfig.MaxBody = cmp.Or(o.FetchConfig.MaxBody, int64(c.MaxBodySize))
	if o.FrontierConfig.Scope == nil { // MaxDepth is the collector's own affair
		scope := frontier.ScopeConfig{Mode: frontier.AnyScope, MaxDepth: math.MaxInt, CurrentYear: time.Now().Year()}
		o.FrontierConfig.Scope = frontier.NewScope(scope, nil)
	}
	return o
}

// openStores opens the state of the crawl.
func (c *Crawl) openStores(o WrapOptions) error {
	if o.StateDir == "" {
		c.gateNotes, c.frontierStore = memory.New(memory.Config{}), memory.New(memory.Config{})
		return nil
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return fmt.Errorf("collyfetch: cannot make the crawl's directory: %w", err)
	}
	opts := bolt.Options{PostInterruptionDelay: o.Policy.WithDefaults().Delay,
		OnStallChange: func(err error) {
			o.Log.Warn("the state of the crawl cannot be written; nil: it can again", "error", err)
		},
		OnDamaged: func(err error) { o.Log.Error("the state of the crawl is damaged in a place", "error", err) }}
	notes, err := bolt.OpenNotes(filepath.Join(o.StateDir, "robots.db"), opts)
	if err == nil {
		c.gateNotes = notes
		err = c.openLedgerIfEnabled(o)
	}
	if err == nil {
		// What was learnt of robots.txt files, and what permitted requests, is on the disk
		// before the frontier says that they have been made.
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

// assembleCrawler makes the Crawler from its parts.
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

// errAlreadyRunning refuses to run a crawl twice at a time.
var errAlreadyRunning = errors.New("collyfetch: the crawl is running")

// Run crawls until nothing is left to visit, and returns what Crawler.Run does.
// It may be called again when there is more to visit.
func (c *Crawl) Run(ctx context.Context) error {
	if !c.isRunning.CompareAndSwap(false, true) {
		return errAlreadyRunning
	}
	defer c.isRunning.Store(false)
	if err := c.rereadSettings(); err != nil {
		return err
	}
	return c.run(ctx)
}

// run is Run, for callers that have set isRunning and called rereadSettings.
func (c *Crawl) run(ctx context.Context) error {
	if c.mustReleaseHolds {
		if err := c.crawler.Frontier.EndSuspensionsExcept(ctx, c.crawler.ShouldStaySuspended); err != nil {
			return err
		}
		c.mustReleaseHolds = false
	}
	c.crawler.Settings.Workers = c.workerCount
	if c.workerCount == 0 && !c.async.Load() {
		c.crawler.Settings.Workers = 1 // the callbacks of a sync program do not expect each other
	}
	defer c.hasRequestedPage.Store(false)
	return c.crawler.Run(ctx)
}

// rereadSettings looks at what the program has set since the last time.
func (c *Crawl) rereadSettings() error {
	if c.Async {
		c.async.Store(true)
	}
	return c.Collector.reapplyOverrides()
}

// Wait crawls until nothing is left to visit, as colly's Wait returns when the
// requests of an Async collector have ended. Use Run to get its error, which
// Wait logs.
func (c *Crawl) Wait() {
	if err := c.warnIfOnlySuspendedLeft(c.Run(c.ctx)); err != nil {
		c.Log.Error("the crawl ended early", "error", err)
	}
}

// warnIfOnlySuspendedLeft logs an end of the crawl that colly's users expect to be none: origins
// are left that do not answer.
func (c *Crawl) warnIfOnlySuspendedLeft(err error) error {
	if errors.Is(err, frontier.ErrOnlySuspendedLeft) {
		c.Log.Warn("not all was visited", "why", err)
		return nil
	}
	return err
}

// Stats returns what the crawl has done so far.
func (c *Crawl) Stats() crawler.Stats { return c.crawler.Stats() }

// Close makes all of the crawl durable, and closes its files, and the
// connections that were kept for a next visit.
func (c *Crawl) Close() (err error) {
	if c.Collector != nil {
		c.fetcher.CloseIdleConnections()
	}
	if c.frontierStore != nil { // it waits for the gate's notes, and is closed before
		err = c.frontierStore.Close()
	}
	if c.gateNotes != nil {
		err = errors.Join(err, c.gateNotes.Close())
	}
	return errors.Join(err, c.ledger.close())
}

// Visit enqueues a URL. Like colly's, it returns when all that follows from it
// has been visited, unless the collector is Async, or the crawl is running, as
// it is for a callback. What follows from earlier visits that were cut short is
// visited as well. Origins that do not answer are logged, and no error.
func (c *Crawl) Visit(url string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Visit(url) })
}

// Head is Visit by HEAD.
func (c *Crawl) Head(url string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Head(url) })
}

// Post is Visit by POST, with a form for a body. It is sent once at most, however
// the program ends: see docs/colly.md.
func (c *Crawl) Post(url string, form map[string]string) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Post(url, form) })
}

// PostRaw is Post with a body of any kind.
func (c *Crawl) PostRaw(url string, body []byte) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.PostRaw(url, body) })
}

// PostMultipart is Post with a form of several parts.
func (c *Crawl) PostMultipart(url string, form map[string][]byte) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.PostMultipart(url, form) })
}

// Request is Visit by any method but TRACE and CONNECT. By one that is not safe
// (RFC 9110, section 9.2.1) it is sent once at most, as by Post.
func (c *Crawl) Request(method, url string, body io.Reader, ctx *colly.Context, header http.Header) error {
	return c.enqueueAndRunUnlessAsync(func() error { return c.Collector.Request(method, url, body, ctx, header) })
}

// enqueueAndRunUnlessAsync enqueues and then, unless the crawl is Async or running, crawls.
func (c *Crawl) enqueueAndRunUnlessAsync(enqueue func() error) error {
	if c.async.Load() || !c.isRunning.CompareAndSwap(false, true) {
		return enqueue()
	}
	defer c.isRunning.Store(false)
	if err := c.rereadSettings(); err != nil { // Async may have been set
		return err
	}
	if err := enqueue(); err != nil || c.async.Load() {
		return err
	}
	return c.warnIfOnlySuspendedLeft(c.run(c.ctx))
}
