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

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// A Collector is a colly.Collector whose requests decorum makes. All of colly's
// callbacks work; a request that one of them makes is enqueued: Visit returns
// nil at once, and the page comes to the callbacks when robots.txt allows it and
// its host is due, or never. Register callbacks before the crawl begins. What
// becomes of each of colly's settings is told in docs/colly.md.
//
// A Collector is both Fetcher and, by Handle, Handler of its crawl: colly runs
// the callbacks for a request, pauses while decorum does the accounts of the
// answer, and goes on with the callbacks for the response.
type Collector struct {
	*colly.Collector
	Log *slog.Logger // of what is wrong with the callbacks' requests; slog.Default at first
	// MaxRequestBody is how many bytes the body of a request may have that callbacks make.
	// 0 is 1 MiB; at most 16 MiB. A request with a longer one is refused.
	MaxRequestBody int64

	frontier         *frontier.Frontier
	fetcher          *httpfetch.Fetcher
	joinedCollectors map[string]*joinedCollyCollector // by name
	requestCallbacks []colly.RequestCallback
	canceledCtx      context.Context
	instanceID       string      // no other Collector has it
	hasRequestedPage atomic.Bool // a page has been asked for: what is visited now was found by a callback
	unsentRequests   unsentRequests

	mu           sync.Mutex              // guards callbackRuns
	callbackRuns map[uint64]*callbackRun // the pages in hand, by the token of their lease
}

var (
	_ crawler.Fetcher               = (*Collector)(nil)
	_ crawler.VisitResourceReleaser = (*Collector)(nil)
)

// NewCollector returns a Collector without callbacks, for a crawl of f whose
// requests fetcher sends. It must be made the Fetcher of the Crawler, and its
// Handle the Handler.
func NewCollector(f *frontier.Frontier, fetcher *httpfetch.Fetcher) *Collector {
	c, err := wrapCollector(newBareCollector(fetcher.UserAgent()), f, fetcher, slog.Default())
	if err != nil {
		panic(err) // never: nothing is set that could be refused
	}
	return c
}

func wrapCollector(collyCollector *colly.Collector, f *frontier.Frontier, fetcher *httpfetch.Fetcher, log *slog.Logger) (*Collector, error) {
	c := &Collector{Collector: collyCollector, frontier: f, fetcher: fetcher, Log: log, canceledCtx: canceledContext(), instanceID: rand.Text(),
		joinedCollectors: map[string]*joinedCollyCollector{}, callbackRuns: map[uint64]*callbackRun{}}
	return c, c.joinCollyCollector("", collyCollector)
}

// newBareCollector returns a collector with everything off that decorum decides, and that
// configure leaves alone. Fields are set after NewCollector, so that no COLLY_
// environment variable has the last word.
func newBareCollector(userAgent string) *colly.Collector {
	c := colly.NewCollector()
	c.UserAgent = userAgent
	c.AllowURLRevisit = false        // join warns of it
	c.ParseHTTPErrorResponse = false // errors are for OnError
	c.DetectCharset = false
	c.CacheDir = ""
	c.MaxDepth, c.MaxBodySize = 0, 0 // the fetcher's bound holds, which can tell that it cut
	c.AllowedDomains, c.DisallowedDomains = nil, nil
	return c
}

// JoinCollector makes the requests of another collector, such as a Clone, go the same
// way. Its requests are queued under the name, which must be the same in the
// next run, and answered to its callbacks. Call it before the crawl begins.
func (c *Collector) JoinCollector(name string, other *colly.Collector) error {
	if name == "" || c.joinedCollectors[name] != nil {
		return errors.New("collyfetch: JoinCollector: each collector needs a name of its own")
	}
	return c.joinCollyCollector(name, other)
}

func (c *Collector) joinCollyCollector(name string, m *colly.Collector) error {
	isClone := m.Context == c.canceledCtx // a Clone
	if !isClone && errors.Is(context.Cause(m.Context), errTransportReplaced) {
		return errCollectorInUse
	}
	if m.AllowURLRevisit && !isClone {
		c.Log.Warn("AllowURLRevisit has no effect: a crawl visits a URL once")
	}
	if err := c.overrideSettings(m); err != nil {
		return err
	}
	blankRequest, err := m.UnmarshalRequest([]byte(`{"Method": "GET"}`))
	if err != nil {
		return err
	}
	blankRequest.Body = nil
	joined := &joinedCollyCollector{m, name, blankRequest}
	c.joinedCollectors[name] = joined
	m.SetClient(&http.Client{Transport: &collyTransport{c}, CheckRedirect: stopAtRedirect})
	m.OnRequest(func(r *colly.Request) { c.interceptRequest(joined, r) })
	m.OnResponse(restoreStatus)
	return nil
}

// A joinedCollyCollector is a collector that has joined.
type joinedCollyCollector struct {
	*colly.Collector
	name         string         // that its requests are queued under
	blankRequest *colly.Request // of it, for nothing yet: only colly can make one
}

// stopAtRedirect keeps colly from following a redirect itself: those that lead on are queued.
func stopAtRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// errCollectorInUse refuses a collector that another crawl has.
var errCollectorInUse = errors.New("collyfetch: the collector, or the one that it is a Clone of, belongs to a crawl already: see JoinCollector")

// reapplyOverrides configures the collectors anew: the program may have set their fields.
func (c *Collector) reapplyOverrides() error {
	for _, m := range c.joinedCollectors {
		if m.Async {
			m.Wait() // colly still queues
		}
		if err := c.overrideSettings(m.Collector); err != nil {
			return err
		}
	}
	return nil
}

// OnRequest registers a callback that is called right before a request is sent,
// whose headers it may change and which it may Abort. (One that is registered
// on the colly.Collector itself is also called when a link is queued.)
func (c *Collector) OnRequest(f colly.RequestCallback) {
	c.requestCallbacks = append(c.requestCallbacks, f)
}

// Fetch is the crawler.Fetcher of the crawl: it lets colly make the request of a
// page, which calls the callbacks for requests, sends it, and leaves colly
// waiting for Handle. The crawl's own errands go past the callbacks.
func (c *Collector) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	if !t.Kind().IsPage() || t.URL().IsZero() {
		return c.fetcher.Fetch(ctx, t)
	}
	c.hasRequestedPage.Store(true)
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
	if _, _, redirects := crawler.RedirectTarget(t.Request(), r.response); redirects || r.response.Status == http.StatusNotModified {
		c.ReleaseVisitResources(t) // there is nothing to read
	}
	return r.response, nil
}

// errNotFetched is of a Crawler that was put together wrongly.
var errNotFetched = errors.New("the callbacks do not know the page: is the Collector the Fetcher of the Crawler, and Handle called at most once for a page?")

// Handle is the crawler.Handler that runs the callbacks for a response. What
// they visit it returns as links. A Handler may wrap it.
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
	case linkErr != nil: // it is not read as long as not all of it is kept
		return links, linkErr
	case retry:
		return links, errRetryRequested
	case r.fetchOrCollyErr != nil && v.OK() && !errors.Is(r.fetchOrCollyErr, colly.ErrAbortedAfterHeaders):
		// A page that cannot be parsed today cannot be parsed tomorrow.
		return links, &decorum.Error{Op: "read", URL: v.URL().String(), Kind: decorum.Dropped, Err: r.fetchOrCollyErr}
	}
	return links, nil
}

// errRetryRequested is the verdict of callbacks that called Request.Retry.
var errRetryRequested = errors.New("a callback asks for the page again")

// interceptRequest is called for every request of a collector, before it is sent: that
// for a page lets it pass, any other is queued. Where that cannot be, collyTransport
// refuses it, so that whoever asked gets the error.
func (c *Collector) interceptRequest(m *joinedCollyCollector, r *colly.Request) {
	if run := c.findCallbackRunByHeader(*r.Headers); run != nil && run.callbackRequest == nil {
		run.callbackRequest = r
		if run.lastUnsentRequest != nil {
			r.ResponseCharacterEncoding = run.lastUnsentRequest.ResponseCharacterEncoding
			return
		}
		if m.name == "" { // those who joined have callbacks of their own
			for _, f := range c.requestCallbacks {
				f(r)
			}
		}
		return
	}
	if r.IsAbort() {
		return
	}
	if err := c.enqueueRequest(m, r); err != nil {
		r.Headers.Set(refusalHeader, err.Error())
		return
	}
	r.Abort()
}

// defaultMaxRequestBody is the default of Collector.MaxRequestBody.
const defaultMaxRequestBody = 1 << 20

// enqueueRequest queues the request as a link of the page that it was made for, or of
// none.
func (c *Collector) enqueueRequest(m *joinedCollyCollector, r *colly.Request) error {
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
	parent := callbackRunFromContext(r.Ctx) // the page whose callback made the request
	if parent != nil && parent.collector != c {
		parent = nil
	}
	if parent.noteIfRetry(m, r, request) {
		return nil
	}
	metadata, err := encodeRequestMetadata(m.name, u, r.Ctx, headerWithoutCollectorDefaults(m.Collector, *r.Headers, request))
	if err != nil {
		return err
	}
	return c.enqueueLink(parent, crawler.LinkToVisit{URL: u, CallbackData: metadata, Request: request}, r.Depth)
}

// enqueueLink queues a link, which colly counts as so deep, with those of the page that it
// was found on, or on its own.
func (c *Collector) enqueueLink(parent *callbackRun, l crawler.LinkToVisit, depth int) error {
	if parent.tryBufferLink(l) {
		return nil
	}
	e := storage.Entry{URL: l.URL, Source: storage.SourceSeed, Depth: max(depth-1, 0), CallbackData: l.CallbackData, Request: l.Request}
	if c.hasRequestedPage.Load() { // limits against made-up URLs hold, which do not for seeds
		e.Source = storage.SourceLink
	}
	if parent == nil {
		_, err := c.frontier.Discover(context.Background(), e)
		return err
	}
	e.Referrer = parent.ticket.URL().String()
	_, err := c.frontier.Discover(parent.currentContext(), e)
	if err != nil {
		parent.setLinkError(err)
	}
	return err
}

// NamedCallbacks are the callbacks of a program, by the name that a project's handler
// field calls them by. Each func registers its callbacks on the Collector of one
// crawl, which may be called by many workers at a time. They are daemon.PageHandlerRegistry.
type NamedCallbacks map[string]func(*Collector)

// Names returns the names whose func is not nil, sorted.
func (n NamedCallbacks) Names() []string {
	isNil := func(name string) bool { return n[name] == nil }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n)), isNil)
}

// Attach has the callbacks of that name, which is one of Names, called for the pages of c: it
// sets the Fetcher and the Handler of c. Their requests are sent by fetcher; the body of one
// has at most maxRequestBody bytes, see Collector.
func (n NamedCallbacks) Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64) {
	callbacks := NewCollector(c.Frontier, fetcher)
	callbacks.Log, callbacks.MaxRequestBody = c.Log, maxRequestBody
	n[name](callbacks)
	c.Fetcher, c.Handler = callbacks, callbacks.Handle
}

// overrideSettings turns off in m what decorum decides. It returns an error if m is
// set to what cannot be had.
func (c *Collector) overrideSettings(m *colly.Collector) error {
	userAgent := c.fetcher.UserAgent()
	switch {
	case m.CheckHead:
		return errors.New("collyfetch: CheckHead: a page is asked for once; OnResponseHeaders sees the headers of the answer")
	case m.CacheDir != "":
		return errors.New("collyfetch: CacheDir: the crawl remembers what it has visited, and asks with If-None-Match where it visits again")
	case m.UserAgent != userAgent && m.UserAgent != defaultCollyAgent && m.UserAgent != "":
		return fmt.Errorf("collyfetch: UserAgent %q: the crawl is known as %q", m.UserAgent, userAgent)
	}
	setIfDifferent(&m.UserAgent, userAgent)
	setIfDifferent(&m.IgnoreRobotsTxt, true) // decorum's own gate is asked
	setIfDifferent(&m.AllowURLRevisit, true) // decorum's seen set is asked
	setIfDifferent(&m.Async, false)          // decorum has workers, and catches their panics
	setIfDifferent(&m.MaxRequests, 0)        // decorum counts pages
	setIfDifferent(&m.Context, c.canceledCtx)
	return nil
}

// setIfDifferent sets a field, unless it is so: other goroutines of the program may be in a
// Visit of theirs, which reads it.
func setIfDifferent[T comparable](field *T, value T) {
	if *field != value {
		*field = value
	}
}

// defaultCollyAgent is the User-Agent of a collector that was given none.
const defaultCollyAgent = "colly - https://github.com/gocolly/colly"
