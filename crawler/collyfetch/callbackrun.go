package collyfetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
)

// A callbackRun is one page on its way through colly and its callbacks. It runs as
// a coroutine, so that colly can wait between request and response.
type callbackRun struct {
	collector         *Collector
	joinedCollector   *joinedCollyCollector
	ticket            crawler.Ticket
	collyRequest      *colly.Request // as colly is asked for it
	callbackRequest   *colly.Request // as the callbacks see it
	lastUnsentRequest *colly.Request // as callbacks left it when it was not sent last time; nil: none
	pauseCoroutine    func(struct{}) bool
	resumeCoroutine   func() (struct{}, bool)
	stopCoroutine     func()
	reachedTransport  bool // colly has handed the request to collyTransport
	response          *decorum.Response
	fetchOrCollyErr   error // of the fetch; then of colly's reading

	mu             sync.Mutex      // guards the fields below
	ctx            context.Context // of the fetch; then of Handle
	visit          *crawler.Visit  // nil: Handle has not been called
	acceptsLinks   bool            // links, which Handle will return
	retryRequested bool            // a callback called Retry
	links          []crawler.LinkToVisit
	linkBytes      int   // bytes of links
	linkErr        error // why a link could not be queued
}

// maxLinkBytes is how many bytes of links wait until their page has been read. Further
// ones are queued at once.
const maxLinkBytes = 4 << 20

// Headers that lead from a request of colly to what it is for. Their names are
// no HTTP: nobody meets them by chance, and net/http sends no request with them.
const (
	leaseTokenHeader = "decorum token"
	refusalHeader    = "decorum refusal"
)

// findCallbackRunByHeader returns the page in hand that a request is for, nil if for none. A Clone
// has its transport from the collector that it was made of, so that requests of
// another crawl, with tokens of its own, may come here as well.
func (c *Collector) findCallbackRunByHeader(h http.Header) *callbackRun {
	values := h[leaseTokenHeader]
	if len(values) != 2 || values[0] != c.instanceID {
		return nil
	}
	token, _ := strconv.ParseUint(values[1], 10, 64)
	return c.findCallbackRun(token)
}

// newCallbackRun returns the callbackRun of the page that t is for.
func (c *Collector) newCallbackRun(ctx context.Context, t crawler.Ticket) (*callbackRun, error) {
	lease := t.Lease()
	b, err := decodeRequestMetadata(lease.CallbackData)
	if err != nil {
		c.Log.Warn("what was kept with a URL is not of these callbacks, and passed by", "url", t.URL(), "error", err)
	}
	joined := c.joinedCollectors[b.CollectorName]
	if joined == nil {
		return nil, fmt.Errorf("no collector has joined as %q, whose request it is", b.CollectorName)
	}
	r := &callbackRun{collector: c, joinedCollector: joined, ctx: ctx, ticket: t}
	if r.collyRequest, err = joined.collyRequestForTicket(t, lease.Depth+1); err != nil {
		return nil, err
	}
	h := http.Header{}
	if joined.Headers != nil {
		h = joined.Headers.Clone()
	}
	maps.Copy(h, b.headerFor(t))
	r.collyRequest.Ctx, r.collyRequest.Headers = b.collyContext(), &h
	if unsent := c.unsentRequests.take(t); unsent != nil {
		r.lastUnsentRequest, r.collyRequest.Ctx = unsent, unsent.Ctx
		maps.Copy(h, *unsent.Headers)
	}
	r.collyRequest.Ctx.Put(leaseTokenHeader, r)
	h[leaseTokenHeader] = []string{c.instanceID, strconv.FormatUint(lease.Token, 10)}
	r.resumeCoroutine, r.stopCoroutine = iter.Pull(r.runColly)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callbackRuns[lease.Token] = r
	return r, nil
}

// collyRequestForTicket returns a request of m for what t is for, so deep.
func (m *joinedCollyCollector) collyRequestForTicket(t crawler.Ticket, depth int) (*colly.Request, error) {
	r := *m.blankRequest
	var err error
	r.URL, err = url.Parse(t.URL().String())
	r.Method, r.Body, r.Depth = t.Request().MethodOrGet(), t.Request().BodyReader(), depth
	return &r, err
}

// runColly is the coroutine: colly's whole way with a page.
func (r *callbackRun) runColly(pause func(struct{}) bool) {
	r.pauseCoroutine = pause
	defer func() {
		switch p := recover(); p {
		case nil, errStopCoroutine:
		default:
			panic(&callbackPanic{p, debug.Stack()})
		}
	}()
	r.fetchOrCollyErr = r.collyRequest.Do()
}

// errStopCoroutine ends a coroutine in silence, past callbacks that it does not concern.
var errStopCoroutine = errors.New("quit")

// A callbackPanic is a panic of a callback, with where it was.
type callbackPanic struct {
	value any
	stack []byte
}

// String returns what the callback panicked with.
func (c *callbackPanic) String() string { return fmt.Sprint(c.value) }

// Stack returns where the callback panicked.
func (c *callbackPanic) Stack() []byte { return c.stack }

// resume lets colly go on, and reports whether it waits again.
func (r *callbackRun) resume() bool {
	_, waits := r.resumeCoroutine()
	return waits
}

// ReleaseVisitResources ends the way of a page, wherever it is: it is the crawler.VisitResourceReleaser of
// the crawl.
func (c *Collector) ReleaseVisitResources(t crawler.Ticket) {
	token := t.Lease().Token
	if r := c.findCallbackRun(token); r != nil {
		r.stopCoroutine()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.callbackRuns, token)
}

// errAborted is why a page is not visited that OnRequest aborted.
var errAborted = errors.New("a callback aborted the request")

// noResponseError returns why colly ended before there was an answer.
func (r *callbackRun) noResponseError() error {
	url := r.ticket.URL().String()
	if why := r.fetchOrCollyErr; why != nil && !r.reachedTransport && r.callbackRequest != nil && !errors.Is(why, colly.ErrAbortedBeforeRequest) {
		r.collector.Log.Error("a request was kept from going past the crawl", "url", url, "why", errTransportReplaced)
		return &decorum.Error{Op: "fetch", URL: url, Kind: decorum.Unticketed, Err: errTransportReplaced}
	}
	if err, ok := errors.AsType[*decorum.Error](r.fetchOrCollyErr); ok {
		return err
	}
	return &decorum.Error{Op: "fetch", URL: url, Kind: decorum.Dropped, Err: cmp.Or(r.fetchOrCollyErr, errAborted)}
}

// startAcceptingLinks makes r take links, for Handle to return.
func (r *callbackRun) startAcceptingLinks(ctx context.Context, v *crawler.Visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.visit, r.acceptsLinks = ctx, v, true
}

// currentContext returns the context of what is being done for the page.
func (r *callbackRun) currentContext() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctx
}

// setLinkError notes that a link of the page could not be queued.
func (r *callbackRun) setLinkError(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.linkErr = why
}

// tryBufferLink takes a link, if it can be returned by Handle.
func (r *callbackRun) tryBufferLink(l crawler.LinkToVisit) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(l.URL.String()) + len(l.CallbackData)
	if l.Request != nil {
		size += len(l.Request.Body)
	}
	if !r.acceptsLinks || r.linkBytes+size > maxLinkBytes {
		return false
	}
	r.links, r.linkBytes = append(r.links, l), r.linkBytes+size
	return true
}

// closeAndTakeLinks returns the links, whether the page is asked for again, and why a link could not
// be queued. What a goroutine that a callback left behind visits from now on is queued on its
// own.
func (r *callbackRun) closeAndTakeLinks() (links []crawler.LinkToVisit, retry bool, linkErr error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acceptsLinks, r.ctx = false, context.WithoutCancel(r.ctx)
	return r.links, r.retryRequested, r.linkErr
}

// noteIfRetry notes that a callback asks for the page itself again, by Retry: a
// Visit would be one deeper, and another body makes another request, as another
// collector does. What must not be sent twice is not. That is logged, and no error: an error
// would call OnError, from where the callback asks.
func (r *callbackRun) noteIfRetry(m *joinedCollyCollector, req *colly.Request, request *storage.NonGETRequest) bool {
	if r == nil || r.callbackRequest == nil || m != r.joinedCollector || req.Depth != r.callbackRequest.Depth || req.URL.String() != r.callbackRequest.URL.String() ||
		!isSameRequest(request, r.ticket.Request()) {
		return false
	}
	if !r.ticket.Request().IsSafe() {
		r.collector.Log.Warn("Retry has no effect: a request that is not safe is not sent twice", "method", req.Method, "url", r.ticket.URL())
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retryRequested = true
	return true
}

// findCallbackRun returns the page in hand of the token, nil if there is none.
func (c *Collector) findCallbackRun(token uint64) *callbackRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.callbackRuns[token]
}

// callbackRunFromContext returns the page in hand that a context is of, nil if it is of none.
func callbackRunFromContext(ctx *colly.Context) *callbackRun {
	r, _ := ctx.GetAny(leaseTokenHeader).(*callbackRun)
	if r == nil || r.collector.findCallbackRun(r.ticket.Lease().Token) != r {
		return nil
	}
	return r
}
