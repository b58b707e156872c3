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
	collector *Collector
	member    *member
	ticket    crawler.Ticket
	request   *colly.Request // as colly is asked for it
	page      *colly.Request // as the callbacks see it
	before    *colly.Request // the same when it was turned away the last time; nil: it was not
	pause     func(struct{}) bool
	next      func() (struct{}, bool)
	stop      func()
	arrived   bool // at the door
	response  *decorum.Response
	err       error // of the fetch; then of colly's reading

	mu    sync.Mutex
	ctx   context.Context // of the fetch; then of Handle
	visit *crawler.Visit  // nil: Handle has not been called
	takes bool            // links, which Handle will return
	again bool            // a callback called Retry
	links []crawler.Link
	held  int   // bytes of links
	lost  error // why a link could not be queued
}

// maxHeld is how many bytes of links wait until their page has been read. Further
// ones are queued at once.
const maxHeld = 4 << 20

// Headers that lead from a request of colly to what it is for. Their names are
// no HTTP: nobody meets them by chance, and net/http sends no request with them.
const (
	tokenHeader   = "decorum token"
	refusalHeader = "decorum refusal"
)

// asked returns the page in hand that a request is for, nil if for none. A Clone
// has its transport from the collector that it was made of, so that requests of
// another crawl, with tokens of its own, may come here as well.
func (c *Collector) asked(h http.Header) *callbackRun {
	says := h[tokenHeader]
	if len(says) != 2 || says[0] != c.id {
		return nil
	}
	token, _ := strconv.ParseUint(says[1], 10, 64)
	return c.findCallbackRun(token)
}

// begin returns the reading of the page that t is for.
func (c *Collector) begin(ctx context.Context, t crawler.Ticket) (*callbackRun, error) {
	lease := t.Lease()
	b, err := unpack(lease.Context)
	if err != nil {
		c.Log.Warn("what was kept with a URL is not of these callbacks, and passed by", "url", t.URL(), "error", err)
	}
	member := c.members[b.Collector]
	if member == nil {
		return nil, fmt.Errorf("no collector has joined as %q, whose request it is", b.Collector)
	}
	r := &callbackRun{collector: c, member: member, ctx: ctx, ticket: t}
	if r.request, err = member.requestFor(t, lease.Depth+1); err != nil {
		return nil, err
	}
	h := headerOf(member.Collector)
	maps.Copy(h, b.headerFor(t))
	r.request.Ctx, r.request.Headers = b.context(), &h
	if before := c.awaiting.take(t); before != nil {
		r.goOn(before)
	}
	r.request.Ctx.Put(tokenHeader, r)
	h[tokenHeader] = []string{c.id, strconv.FormatUint(lease.Token, 10)}
	r.next, r.stop = iter.Pull(r.run)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings[lease.Token] = r
	return r, nil
}

// requestFor returns a request of m for what t is for, so deep.
func (m *member) requestFor(t crawler.Ticket, depth int) (*colly.Request, error) {
	r := *m.blank
	var err error
	r.URL, err = url.Parse(t.URL().String())
	r.Method, r.Body, r.Depth = t.Request().Name(), reader(t.Request()), depth
	return &r, err
}

// run is the coroutine: colly's whole way with a page.
func (r *callbackRun) run(pause func(struct{}) bool) {
	r.pause = pause
	defer func() {
		switch p := recover(); p {
		case nil, errQuit:
		default:
			panic(&crash{p, debug.Stack()})
		}
	}()
	r.err = r.request.Do()
}

// errQuit ends a coroutine in silence, past callbacks that it does not concern.
var errQuit = errors.New("quit")

// A crash is a panic of a callback, with where it was.
type crash struct {
	value any
	stack []byte
}

// String returns what the callback panicked with.
func (c *crash) String() string { return fmt.Sprint(c.value) }

// Stack returns where the callback panicked.
func (c *crash) Stack() []byte { return c.stack }

// resume lets colly go on, and reports whether it waits again.
func (r *callbackRun) resume() bool {
	_, waits := r.next()
	return waits
}

// Finish ends the way of a page, wherever it is: it is the crawler.Finisher of
// the crawl.
func (c *Collector) Finish(t crawler.Ticket) {
	token := t.Lease().Token
	if r := c.findCallbackRun(token); r != nil {
		r.stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.readings, token)
}

// errAborted is why a page is not visited that OnRequest aborted.
var errAborted = errors.New("a callback aborted the request")

// failure returns why colly ended before there was an answer.
func (r *callbackRun) failure() error {
	url := r.ticket.URL().String()
	if why := r.err; why != nil && !r.arrived && r.page != nil && !errors.Is(why, colly.ErrAbortedBeforeRequest) {
		r.collector.Log.Error("a request was kept from going past the crawl", "url", url, "why", errReplaced)
		return &decorum.Error{Op: "fetch", URL: url, Kind: decorum.Unticketed, Err: errReplaced}
	}
	var known *decorum.Error
	if errors.As(r.err, &known) {
		return known
	}
	return &decorum.Error{Op: "fetch", URL: url, Kind: decorum.Dropped, Err: cmp.Or(r.err, errAborted)}
}

// open makes the reading take links, for Handle to return.
func (r *callbackRun) open(ctx context.Context, v *crawler.Visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.visit, r.takes = ctx, v, true
}

// context returns the context of what is being done for the page.
func (r *callbackRun) context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctx
}

// lose notes that a link of the page could not be queued.
func (r *callbackRun) lose(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = why
}

// add takes a link, if it can be returned by Handle.
func (r *callbackRun) add(l crawler.Link) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(l.URL.String()) + len(l.Context)
	if l.Request != nil {
		size += len(l.Request.Body)
	}
	if !r.takes || r.held+size > maxHeld {
		return false
	}
	r.links, r.held = append(r.links, l), r.held+size
	return true
}

// close returns the links, whether the page is asked for again, and why a link could not
// be queued. Who visits from now on, from a goroutine that a callback has left behind, is
// on their own.
func (r *callbackRun) close() (links []crawler.Link, again bool, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes, r.ctx = false, context.WithoutCancel(r.ctx)
	return r.links, r.again, r.lost
}

// retries notes that a callback asks for the page itself again, by Retry: a
// Visit would be one deeper, and another body makes another request, as another
// collector does. What must not be sent twice is not; who asks for that is not told
// by an error, which would call OnError, from where it is asked for.
func (r *callbackRun) retries(m *member, req *colly.Request, asked *storage.Request) bool {
	if r == nil || r.page == nil || m != r.member || req.Depth != r.page.Depth || req.URL.String() != r.page.URL.String() ||
		!isSame(asked, r.ticket.Request()) {
		return false
	}
	if !r.ticket.Request().IsSafe() {
		r.collector.Log.Warn("Retry has no effect: a request that is not safe is not sent twice", "method", req.Method, "url", r.ticket.URL())
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again = true
	return true
}

// findCallbackRun returns the page in hand of the token, nil if there is none.
func (c *Collector) findCallbackRun(token uint64) *callbackRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readings[token]
}

// parent returns the page whose callback made a request, nil if it is not known.
func (c *Collector) parent(ctx *colly.Context) *callbackRun {
	if r := inHand(ctx); r != nil && r.collector == c {
		return r
	}
	return nil
}

// inHand returns the page in hand that a context is of, nil if it is of none.
func inHand(ctx *colly.Context) *callbackRun {
	r, _ := ctx.GetAny(tokenHeader).(*callbackRun)
	if r == nil || r.collector.findCallbackRun(r.ticket.Lease().Token) != r {
		return nil
	}
	return r
}
