package collyfetch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawl"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
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

	crawl       *crawl.Crawl
	crawler     *crawler.Crawler // that of crawl
	ctx         context.Context  // from colly.StdlibContext
	async       atomic.Bool      // from colly.Async
	workerCount int              // WrapOptions.Settings.Workers
	isRunning   atomic.Bool      // Run, or a Visit that waits, is under way
	queueRuns   []*queueRun      // unfinished; only the goroutine that set isRunning uses it, and Close
}

// Wrap builds a polite, persistent and resumable crawl around c. From then on, the URLs that c visits
// are queued, and requested when robots.txt allows it and their host is due. Callbacks registered
// before or after Wrap work as they do in colly. The Crawl is a collector, too: use it in place of c.
// The rest of a program stays the same and ends with Visit or, if c is Async, with Wait. Call Close
// at the end.
//
// Wrap returns an error for settings of c that decorum cannot support, and for invalid WrapOptions.
// docs/colly.md lists them.
func Wrap(c *colly.Collector, o WrapOptions) (*Crawl, error) {
	base, err := crawl.Open(o.config(c))
	if err != nil {
		return nil, err
	}
	w := &Crawl{crawl: base, crawler: base.Crawler(), ctx: c.Context, workerCount: o.Settings.Workers}
	w.async.Store(c.Async)
	if w.Collector, err = wrapCollector(c, w.crawler.Frontier, base.Fetcher(), w.crawler.Log); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	w.Collector.MaxRequestBody = o.MaxRequestBody
	w.crawler.Fetcher, w.crawler.Handler = w.Collector, w.Handle
	return w, nil
}

// config returns the configuration of the crawl. Fields that o leaves empty come from the settings of
// the collector where it has them.
func (o WrapOptions) config(c *colly.Collector) crawl.Config {
	o.Settings.NoSitemaps = true
	o.Settings.MaxPages = cmp.Or(o.Settings.MaxPages, int64(c.MaxRequests))
	o.FetchConfig.MaxBody = cmp.Or(o.FetchConfig.MaxBody, int64(c.MaxBodySize))
	if o.FrontierConfig.Scope == nil { // the collector checks MaxDepth itself
		scope := frontier.ScopeConfig{Mode: frontier.AnyScope, MaxDepth: math.MaxInt, CurrentYear: time.Now().Year()}
		o.FrontierConfig.Scope = frontier.NewScope(scope, nil)
	}
	return crawl.Config{
		Agent: o.Agent, Contact: o.Contact, StateDir: o.StateDir, KeepLedger: o.KeepLedger, KeepCookies: o.KeepCookies,
		Policy: o.Policy, LimiterConfig: o.LimiterConfig, RobotsConfig: o.RobotsConfig,
		FrontierConfig: o.FrontierConfig, FetchConfig: o.FetchConfig, Settings: o.Settings,
		Hooks: o.Hooks, Recorder: o.Recorder, Log: o.Log,
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
	if err := c.crawl.ReleaseHolds(ctx); err != nil {
		return err
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
func (c *Crawl) Close() error {
	for _, r := range c.queueRuns {
		r.drain()
	}
	c.queueRuns = nil
	if n := c.unvisitedRequests.Load(); n > 0 {
		c.Log.Warn("requests are queued, and no run has visited them: call Run, Wait or, for a queue, RunQueue of "+
			"the Crawl", "requests", n)
	}
	return c.crawl.Close()
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
