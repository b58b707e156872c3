package collyfetch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// A Collector is a colly.Collector whose requests decorum makes. All of colly's callbacks work. A
// request that a callback makes is queued: Visit returns nil at once, and the callbacks get the
// page once robots.txt allows it and its host is due, or never. Register callbacks before the crawl
// begins. docs/colly.md lists the effect of each of colly's settings.
//
// A Collector is both the Fetcher and, with Handle, the Handler of its crawl. Colly runs the
// callbacks for a request, pauses while decorum ends the visit, and continues with the callbacks
// for the response.
type Collector struct {
	*colly.Collector
	// Log gets the problems with requests of callbacks. NewCollector sets slog.Default.
	Log *slog.Logger
	// MaxRequestBody bounds the body, in bytes, of a request that callbacks make. A request with a
	// longer body is refused. 0 is 1 MiB; at most 16 MiB.
	MaxRequestBody int64

	frontier *frontier.Frontier
	fetcher  *httpfetch.Fetcher
	// joinedCollectors has the collectors by the name they joined under; "" is the embedded one.
	joinedCollectors map[string]*joinedCollyCollector
	requestCallbacks []colly.RequestCallback // registered with OnRequest
	canceledCtx      context.Context         // see canceledContext
	instanceID       string                  // distinguishes the lease tokens of several Collectors
	hasRequestedPage atomic.Bool             // a page was requested in this run, so a Visit may come from a callback
	unsentRequests   unsentRequests          // what callbacks made of requests that could not be sent
	// unvisitedRequests counts the URLs that were queued without a callback since the last run.
	unvisitedRequests atomic.Int64
	warnings          warnings

	mu           sync.Mutex              // guards callbackRuns
	callbackRuns map[uint64]*callbackRun // pages from Fetch until ReleaseVisitResources, by lease token
}

var (
	_ crawler.Fetcher               = (*Collector)(nil)
	_ crawler.VisitResourceReleaser = (*Collector)(nil)
	_ crawler.ProductTokenReporter  = (*Collector)(nil)
	_ crawler.ConnectionKeeper      = (*Collector)(nil)
)

// NewCollector returns a Collector without callbacks, for a crawl with the frontier f whose requests
// fetcher sends. The caller must make it the Fetcher of the Crawler, and its Handle the Handler.
func NewCollector(f *frontier.Frontier, fetcher *httpfetch.Fetcher) *Collector {
	c, err := wrapCollector(newBareCollector(fetcher.UserAgent()), f, fetcher, slog.Default())
	if err != nil {
		panic(err) // unreachable: the bare collector has no setting that is refused
	}
	return c
}

// wrapCollector returns a Collector with collyCollector joined under the empty name.
func wrapCollector(collyCollector *colly.Collector, f *frontier.Frontier, fetcher *httpfetch.Fetcher,
	log *slog.Logger) (*Collector, error) {
	c := &Collector{Collector: collyCollector, frontier: f, fetcher: fetcher, Log: log,
		canceledCtx: canceledContext(), instanceID: rand.Text(),
		joinedCollectors: map[string]*joinedCollyCollector{}, callbackRuns: map[uint64]*callbackRun{}}
	return c, c.joinCollyCollector("", collyCollector)
}

// newBareCollector returns a collector with every setting off that decorum decides and that
// overrideSettings leaves alone. The fields are set after colly.NewCollector, so that they override
// COLLY_ environment variables.
func newBareCollector(userAgent string) *colly.Collector {
	c := colly.NewCollector()
	c.UserAgent = userAgent
	c.AllowURLRevisit = false        // joinCollyCollector warns if it is set
	c.ParseHTTPErrorResponse = false // error responses go to OnError
	c.DetectCharset = false
	c.CacheDir = ""
	c.MaxDepth, c.MaxBodySize = 0, 0 // the Fetcher limits bodies, and reports which it cut
	c.AllowedDomains, c.DisallowedDomains = nil, nil
	return c
}

// JoinCollector makes the requests of another collector, such as a Clone, part of the crawl. They are
// queued under name, and their responses go to the callbacks of that collector. The name must be
// unique and the same in the next run. Call JoinCollector before the crawl begins. It returns an
// error if other belongs to a crawl already, or has a setting that decorum cannot support.
func (c *Collector) JoinCollector(name string, other *colly.Collector) error {
	if name == "" || c.joinedCollectors[name] != nil {
		return errors.New("collyfetch: JoinCollector: each collector needs a unique name")
	}
	return c.joinCollyCollector(name, other)
}

// joinCollyCollector makes m part of the crawl: it overrides m's settings, and hooks into its
// transport and callbacks.
func (c *Collector) joinCollyCollector(name string, m *colly.Collector) error {
	isClone := m.Context == c.canceledCtx || isNamedClone(m.Context, c) // of a collector that has joined
	if !isClone && errors.Is(context.Cause(m.Context), errTransportReplaced) {
		return errCollectorInUse
	}
	// A Clone has AllowURLRevisit from overrideSettings, not from the program.
	if m.AllowURLRevisit && !isClone {
		c.Log.Warn("AllowURLRevisit has no effect: a crawl visits a URL once")
	}
	if err := c.overrideSettings(m); err != nil {
		return err
	}
	// Only colly can make a request that belongs to m; collyRequestForTicket copies this one.
	blankRequest, err := m.UnmarshalRequest([]byte(`{"Method": "GET"}`))
	if err != nil {
		return err
	}
	blankRequest.Body = nil
	joined := &joinedCollyCollector{m, name, blankRequest}
	c.joinedCollectors[name] = joined
	// OnRequest queues what is not a page's own request, the transport sends the others, and
	// restoreStatus is the first callback for responses.
	m.SetClient(&http.Client{Transport: &collyTransport{c}, CheckRedirect: stopAtRedirect})
	m.OnRequest(func(r *colly.Request) { c.interceptRequest(joined, r) })
	m.OnResponse(restoreStatus)
	return nil
}

// A joinedCollyCollector is a collector that has joined a Collector.
type joinedCollyCollector struct {
	*colly.Collector
	name         string         // under which its requests are queued
	blankRequest *colly.Request // copied for each page
}

// stopAtRedirect keeps colly from following a redirect itself: the crawl queues redirect targets.
func stopAtRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// errCollectorInUse is the error of a collector that belongs to another crawl.
var errCollectorInUse = errors.New("collyfetch: the collector, or the one that it is a Clone of, belongs to a crawl " +
	"already: see JoinCollector")

// reapplyOverrides overrides the settings of all collectors again, because the program may have
// changed them.
func (c *Collector) reapplyOverrides() error {
	for _, m := range c.joinedCollectors {
		if m.Async {
			m.Wait() // until colly has queued the requests made so far
		}
		if err := c.overrideSettings(m.Collector); err != nil {
			return err
		}
	}
	return nil
}

// OnRequest registers a callback that is called right before a request is sent. It may change the
// headers, and may Abort the request. A callback that is registered on the embedded
// colly.Collector is called when a link is queued, too.
func (c *Collector) OnRequest(f colly.RequestCallback) {
	c.requestCallbacks = append(c.requestCallbacks, f)
}

// Fetch is the crawler.Fetcher of the crawl. For a page, it makes colly run the callbacks for
// requests and send the request, and leaves colly paused until Handle. Robots.txt files, sitemaps
// and other prerequisites bypass colly.
func (c *Collector) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	if !t.Kind().IsPage() || t.URL().IsZero() {
		return c.fetcher.Fetch(ctx, t)
	}
	c.hasRequestedPage.Store(true)
	if !t.Request().IsSafe() {
		c.warnings.noteUnsafeRequest(c)
	}
	r, err := c.newCallbackRun(ctx, t)
	if err != nil {
		c.Log.Error("a page is given up", "url", t.URL(), "why", err)
		return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid, Err: err}
	}
	if !r.resume() {
		if r.isUnsent() {
			c.unsentRequests.put(t, r.callbackRequest)
		}
		return nil, r.noResponseError()
	}
	c.warnings.noteCookies(c, t.URL(), r.response.Header)
	// A redirect or a 304 has no page that callbacks could read.
	if _, _, redirects := crawler.RedirectTarget(t.Request(), r.response); redirects ||
		r.response.Status == http.StatusNotModified {
		c.ReleaseVisitResources(t)
	}
	return r.response, nil
}

// ProductToken implements crawler.ProductTokenReporter.
func (c *Collector) ProductToken() string { return c.fetcher.ProductToken() }

// SetNextVisit implements crawler.ConnectionKeeper.
func (c *Collector) SetNextVisit(host string, due time.Time) { c.fetcher.SetNextVisit(host, due) }

// CloseConnections implements crawler.ConnectionKeeper.
func (c *Collector) CloseConnections(wants func(host string) bool) { c.fetcher.CloseConnections(wants) }

// errNotFetched is the error of a Crawler that was assembled incorrectly.
var errNotFetched = errors.New("the callbacks have not seen the request for the page: is the Collector the Fetcher " +
	"of the Crawler, and Handle called at most once for a page?")

// Handle is the crawler.Handler that runs the callbacks for a response. It returns the URLs that they
// visit as links. A program's Handler may call it. Its error is of Kind Dropped if colly cannot
// parse the page, which is then not visited again.
func (c *Collector) Handle(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
	r := c.findCallbackRun(v.Lease.Token)
	if r == nil {
		if _, _, redirects := crawler.RedirectTarget(v.Lease.Request, v.Response); redirects {
			return nil, nil
		}
		return nil, &decorum.Error{Op: "handle", URL: v.URL().String(), Kind: decorum.Invalid, Err: errNotFetched}
	}
	r.startAcceptingLinks(ctx, v)
	r.resume()
	links, retry, linkErr := r.closeAndTakeLinks()
	switch {
	case linkErr != nil: // the page is visited again, because not all of its links are queued
		return links, linkErr
	case retry:
		return links, errRetryRequested
	case r.fetchOrCollyErr != nil && v.OK() && !errors.Is(r.fetchOrCollyErr, colly.ErrAbortedAfterHeaders):
		// A page that cannot be parsed today cannot be parsed tomorrow.
		return links, &decorum.Error{Op: "read", URL: v.URL().String(), Kind: decorum.Dropped, Err: r.fetchOrCollyErr}
	}
	return links, nil
}

// errRetryRequested is Handle's error when a callback called Request.Retry.
var errRetryRequested = errors.New("a callback called Retry for the page")

// interceptRequest is called for every request of a collector, before it is sent. A page's own
// request passes; any other request is queued and aborted. If it cannot be queued, collyTransport
// refuses it, so that the caller gets the error.
func (c *Collector) interceptRequest(m *joinedCollyCollector, r *colly.Request) {
	if run := c.findCallbackRunByHeader(*r.Headers); run != nil && run.callbackRequest == nil {
		run.callbackRequest = r
		// The callbacks have seen this request before it could not be sent.
		if run.lastUnsentRequest != nil {
			r.ResponseCharacterEncoding = run.lastUnsentRequest.ResponseCharacterEncoding
			return
		}
		if m.name == "" { // joined collectors have separate callbacks
			for _, f := range c.requestCallbacks {
				f(r)
			}
		}
		return
	}
	if r.IsAbort() {
		return
	}
	if c.isOfQueueRun(m, r) {
		r.Headers.Set(refusalHeader, errUseRunQueue.Error())
		return
	}
	// The limits of URL traps apply to links, not to seeds.
	if err := c.enqueueRequest(m, r, !c.hasRequestedPage.Load()); err != nil {
		r.Headers.Set(refusalHeader, err.Error())
		return
	}
	r.Abort()
}

// defaultMaxRequestBody is the default of Collector.MaxRequestBody.
const defaultMaxRequestBody = 1 << 20

// enqueueRequest queues r as a link of the page whose callback made it, or as a URL without a
// referrer, which isSeed says is a seed or a link. It returns an error if r cannot be queued.
func (c *Collector) enqueueRequest(m *joinedCollyCollector, r *colly.Request, isSeed bool) error {
	u, err := decorum.ParseURL(r.URL.String())
	if err != nil {
		return err
	}
	request, err := storageRequest(r, min(cmp.Or(c.MaxRequestBody, defaultMaxRequestBody), storage.MaxBodyBytes))
	if err == nil && request != nil && !u.Origin().IsHTTP() {
		err = errMethodNeedsHTTP
	}
	if err != nil {
		return err
	}
	// A request of the page's own URL by Retry is noted; any other becomes a link of the page.
	parent := callbackRunFromContext(r.Ctx)
	if parent != nil && parent.collector != c {
		parent = nil
	}
	if parent.noteIfRetry(m, r, request) {
		return nil
	}
	metadata, err := encodeRequestMetadata(m.name, u, r.Ctx,
		headerWithoutCollectorDefaults(m.Collector, *r.Headers, request))
	if err != nil {
		return err
	}
	return c.enqueueLink(parent, crawler.LinkToVisit{URL: u, CallbackData: metadata, Request: request}, r.Depth,
		isSeed)
}

// enqueueLink queues l, whose depth as colly counts it is depth. It becomes one of the links that
// Handle returns for parent, or is queued at once if parent is nil or cannot hold it.
func (c *Collector) enqueueLink(parent *callbackRun, l crawler.LinkToVisit, depth int, isSeed bool) error {
	if parent.tryBufferLink(l) {
		return nil
	}
	e := storage.Entry{URL: l.URL, Source: storage.SourceLink, Depth: max(depth-1, 0),
		CallbackData: l.CallbackData, Request: l.Request}
	if isSeed {
		e.Source = storage.SourceSeed
	}
	if parent == nil {
		added, err := c.frontier.Discover(context.Background(), e)
		c.unvisitedRequests.Add(int64(added))
		return err
	}
	e.Referrer = parent.ticket.URL().String()
	_, err := c.frontier.Discover(parent.currentContext(), e)
	if err != nil {
		parent.setLinkError(err)
	}
	return err
}

// NamedCallbacks maps the name in a project's handler field to a func that registers callbacks on
// the Collector of one crawl. Many workers may call the callbacks concurrently. NamedCallbacks
// implements daemon.PageHandlerRegistry.
type NamedCallbacks map[string]func(*Collector)

// Names returns the names whose func is not nil, sorted.
func (n NamedCallbacks) Names() []string {
	isNil := func(name string) bool { return n[name] == nil }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n)), isNil)
}

// Attach makes the callbacks called name, which is one of Names, the callbacks of c: it sets c's
// Fetcher and Handler. fetcher sends their requests; the body of a request has at most
// maxRequestBody bytes, see Collector.MaxRequestBody.
func (n NamedCallbacks) Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64) {
	callbacks := NewCollector(c.Frontier, fetcher)
	callbacks.Log, callbacks.MaxRequestBody = c.Log, maxRequestBody
	n[name](callbacks)
	c.Fetcher, c.Handler = callbacks, callbacks.Handle
}

// overrideSettings turns off the settings of m that decorum decides. It returns an error if m has a
// setting that decorum cannot support.
func (c *Collector) overrideSettings(m *colly.Collector) error {
	userAgent := c.fetcher.UserAgent()
	switch {
	case m.CheckHead:
		return errors.New("collyfetch: CheckHead: a page is requested once; OnResponseHeaders gets the headers of " +
			"the response")
	case m.CacheDir != "":
		return errors.New("collyfetch: CacheDir: the crawl remembers the visited URLs, and sends If-None-Match when " +
			"it visits one again")
	case m.UserAgent != userAgent && m.UserAgent != defaultCollyAgent && m.UserAgent != "":
		return fmt.Errorf("collyfetch: UserAgent %q: the crawl's User-Agent is %q", m.UserAgent, userAgent)
	}
	setIfDifferent(&m.UserAgent, userAgent)
	setIfDifferent(&m.IgnoreRobotsTxt, true) // decorum's gate decides
	setIfDifferent(&m.AllowURLRevisit, true) // decorum's seen set decides
	setIfDifferent(&m.Async, false)          // decorum has workers, and recovers their panics
	setIfDifferent(&m.MaxRequests, 0)        // decorum counts pages
	setIfDifferent(&m.Context, c.canceledCtx)
	return nil
}

// setIfDifferent sets a field unless it has the value: other goroutines of the program may read the
// field in a Visit at the same time.
func setIfDifferent[T comparable](field *T, value T) {
	if *field != value {
		*field = value
	}
}

// defaultCollyAgent is the User-Agent of a collector for which the program set none.
const defaultCollyAgent = "colly - https://github.com/gocolly/colly"
