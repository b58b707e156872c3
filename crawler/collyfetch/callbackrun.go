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
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
)

// A callbackRun takes one page through colly and its callbacks. It runs as a coroutine, so that colly
// can pause between request and response.
type callbackRun struct {
	collector         *Collector
	joinedCollector   *joinedCollyCollector
	ticket            crawler.Ticket
	collyRequest      *colly.Request          // the request that colly is started with
	callbackRequest   *colly.Request          // the request that callbacks get; nil before they do
	lastUnsentRequest *colly.Request          // the request after OnRequest, if an earlier attempt was not sent
	pauseCoroutine    func(struct{}) bool     // called inside the coroutine; false: it must end
	resumeCoroutine   func() (struct{}, bool) // false: the coroutine has ended
	stopCoroutine     func()
	reachedTransport  bool              // colly has called collyTransport with the request
	response          *decorum.Response // nil before the response has arrived
	fetchOrCollyErr   error             // the error of the fetch, or else of colly reading the page

	mu             sync.Mutex            // guards ctx, visit, acceptsLinks, retryRequested, links, linkBytes, linkErr
	ctx            context.Context       // Fetch's; from startAcceptingLinks on Handle's
	visit          *crawler.Visit        // nil before Handle
	acceptsLinks   bool                  // links are buffered for Handle to return
	retryRequested bool                  // a callback called Retry
	links          []crawler.LinkToVisit // to be returned by Handle
	linkBytes      int                   // size of links
	linkErr        error                 // why a link could not be queued; nil: all were
}

// maxLinkBytes bounds the links, in bytes, that are buffered until their page has been read. Further
// links are queued at once.
const maxLinkBytes = 4 << 20

// Headers that connect a request of colly to its callbackRun. Their names are invalid in HTTP, so no
// program uses them by accident, and net/http refuses to send a request with them.
const (
	leaseTokenHeader = "decorum token"
	refusalHeader    = "decorum refusal"
)

// findCallbackRunByHeader returns the callbackRun that a request belongs to, or nil. A Clone shares
// the transport of its original, so requests of another crawl, with its lease tokens, may come here
// as well: instanceID tells them apart.
func (c *Collector) findCallbackRunByHeader(h http.Header) *callbackRun {
	values := h[leaseTokenHeader]
	if len(values) != 2 || values[0] != c.instanceID {
		return nil
	}
	token, _ := strconv.ParseUint(values[1], 10, 64)
	return c.findCallbackRun(token)
}

// newCallbackRun returns the callbackRun of t's page, whose coroutine has not started. It returns an
// error if the collector that queued the page has not joined in this run.
func (c *Collector) newCallbackRun(ctx context.Context, t crawler.Ticket) (*callbackRun, error) {
	lease := t.Lease()
	// Find the collector that queued the page. Data of other programs is ignored.
	b, err := decodeRequestMetadata(lease.CallbackData)
	if err != nil {
		c.Log.Warn("the data kept with a URL is not of these callbacks, and is ignored", "url", t.URL(), "error", err)
	}
	joined := c.joinedCollectors[b.CollectorName]
	if joined == nil {
		return nil, fmt.Errorf("no collector has joined as %q, which queued the request", b.CollectorName)
	}
	// Rebuild the queued request: the headers of the collector, then those of the request.
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
	// If OnRequest has already seen the request, send it as the callbacks left it.
	if unsent := c.unsentRequests.take(t); unsent != nil {
		r.lastUnsentRequest, r.collyRequest.Ctx = unsent, unsent.Ctx
		maps.Copy(h, *unsent.Headers)
	}
	// Mark the request and its context, so that callbacks and the transport find this run.
	r.collyRequest.Ctx.Put(leaseTokenHeader, r)
	h[leaseTokenHeader] = []string{c.instanceID, strconv.FormatUint(lease.Token, 10)}
	r.resumeCoroutine, r.stopCoroutine = iter.Pull(r.runColly)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callbackRuns[lease.Token] = r
	return r, nil
}

// collyRequestForTicket returns a request of m for the URL of t, with the given depth.
func (m *joinedCollyCollector) collyRequestForTicket(t crawler.Ticket, depth int) (*colly.Request, error) {
	r := *m.blankRequest
	var err error
	if r.URL, err = url.Parse(t.URL().String()); err != nil {
		// net/url refuses percent signs that begin no escape. Colly gets them escaped; the request goes to
		// the URL of t.
		r.URL, err = url.Parse(escapeStrayPercentSigns(t.URL().String()))
	}
	r.Method, r.Body, r.Depth = t.Request().MethodOrGet(), t.Request().BodyReader(), depth
	return &r, err
}

// escapeStrayPercentSigns returns s with each percent sign escaped that begins no escape.
func escapeStrayPercentSigns(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('%')
		if _, err := strconv.ParseUint(after[:min(len(after), 2)], 16, 8); err != nil || len(after) < 2 {
			b.WriteString("25")
		}
		s = after
	}
}

// runColly is the body of the coroutine. It runs colly from the request to the end of the callbacks.
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

// errStopCoroutine is the panic value that ends a coroutine without calling further callbacks.
var errStopCoroutine = errors.New("quit")

// A callbackPanic is the panic of a callback, with its stack.
type callbackPanic struct {
	value any
	stack []byte
}

// String returns the panic value as text.
func (c *callbackPanic) String() string { return fmt.Sprint(c.value) }

// Stack returns the stack of the goroutine at the panic.
func (c *callbackPanic) Stack() []byte { return c.stack }

// resume runs colly until it pauses or ends, and reports whether it has paused.
func (r *callbackRun) resume() bool {
	_, waits := r.resumeCoroutine()
	return waits
}

// ReleaseVisitResources ends the callbackRun of t's page, wherever it is paused. It implements
// crawler.VisitResourceReleaser.
func (c *Collector) ReleaseVisitResources(t crawler.Ticket) {
	token := t.Lease().Token
	if r := c.findCallbackRun(token); r != nil {
		r.stopCoroutine()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.callbackRuns, token)
}

// errAborted is why a page was not visited if OnRequest aborted the request.
var errAborted = errors.New("a callback aborted the request")

// noResponseError returns why colly ended before there was a response.
func (r *callbackRun) noResponseError() error {
	url := r.ticket.URL().String()
	// The callbacks ran, but the request did not reach collyTransport: it went to another one.
	if why := r.fetchOrCollyErr; why != nil && !r.reachedTransport && r.callbackRequest != nil &&
		!errors.Is(why, colly.ErrAbortedBeforeRequest) {
		r.collector.Log.Error("a request that would have bypassed the crawl was stopped", "url", url,
			"why", errTransportReplaced)
		return &decorum.Error{Op: "fetch", URL: url, Kind: decorum.Unticketed, Err: errTransportReplaced}
	}
	if err, ok := errors.AsType[*decorum.Error](r.fetchOrCollyErr); ok {
		return err
	}
	return &decorum.Error{Op: "fetch", URL: url, Kind: decorum.Dropped, Err: cmp.Or(r.fetchOrCollyErr, errAborted)}
}

// startAcceptingLinks makes r buffer links for Handle to return, and ctx the current context.
func (r *callbackRun) startAcceptingLinks(ctx context.Context, v *crawler.Visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.visit, r.acceptsLinks = ctx, v, true
}

// currentContext returns the context of the call, Fetch or Handle, that is running for the page.
func (r *callbackRun) currentContext() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctx
}

// setLinkError records that a link of the page could not be queued.
func (r *callbackRun) setLinkError(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.linkErr = why
}

// tryBufferLink buffers l for Handle to return. It returns false if r is nil, does not accept links,
// or already holds maxLinkBytes.
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

// closeAndTakeLinks returns the buffered links, whether a callback called Retry, and why a link could
// not be queued. From then on, the URLs that a leftover goroutine of a callback visits are queued at
// once, in a context that does not end.
func (r *callbackRun) closeAndTakeLinks() (links []crawler.LinkToVisit, retry bool, linkErr error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acceptsLinks, r.ctx = false, context.WithoutCancel(r.ctx)
	return r.links, r.retryRequested, r.linkErr
}

// noteIfRetry reports whether req is a Retry of the page itself, and records it. A Visit of the same
// URL would be one level deeper; a different body or another collector makes a different request.
// A Retry of an unsafe request is logged and dropped, because the request must not be sent twice.
// It is not an error: an error would call OnError, from where callbacks often call Retry.
func (r *callbackRun) noteIfRetry(m *joinedCollyCollector, req *colly.Request, request *storage.NonGETRequest) bool {
	if r == nil || r.callbackRequest == nil || m != r.joinedCollector || req.Depth != r.callbackRequest.Depth ||
		req.URL.String() != r.callbackRequest.URL.String() ||
		!isSameRequest(request, r.ticket.Request()) {
		return false
	}
	if !r.ticket.Request().IsSafe() {
		r.collector.Log.Warn("Retry has no effect: a request that is not safe is not sent twice",
			"method", req.Method, "url", r.ticket.URL())
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retryRequested = true
	return true
}

// findCallbackRun returns the callbackRun with the lease token, or nil.
func (c *Collector) findCallbackRun(token uint64) *callbackRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.callbackRuns[token]
}

// callbackRunFromContext returns the callbackRun whose context ctx is, or nil if ctx has none or the
// run has ended.
func callbackRunFromContext(ctx *colly.Context) *callbackRun {
	r, _ := ctx.GetAny(leaseTokenHeader).(*callbackRun)
	if r == nil || r.collector.findCallbackRun(r.ticket.Lease().Token) != r {
		return nil
	}
	return r
}
