package collyfetch

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
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

	frontier  *frontier.Frontier
	fetcher   *Fetcher
	members   map[string]*member // by name
	onRequest []colly.RequestCallback
	shut      context.Context
	id        string // no other Collector has it

	begun atomic.Bool // a page has been asked for: what is visited now was found by a callback

	mu       sync.Mutex
	readings map[uint64]*callbackRun // the pages in hand, by the token of their lease
	awaiting awaiting
}

var (
	_ crawler.Fetcher  = (*Collector)(nil)
	_ crawler.Finisher = (*Collector)(nil)
)

// NewCollector returns a Collector without callbacks, for a crawl of f whose
// requests fetcher sends. It must be made the Fetcher of the Crawler, and its
// Handle the Handler.
func NewCollector(f *frontier.Frontier, fetcher *Fetcher) *Collector {
	c, err := newCollector(newEngine(fetcher.cfg.UserAgent), f, fetcher, slog.Default())
	if err != nil {
		panic(err) // never: nothing is set that could be refused
	}
	return c
}

func newCollector(engine *colly.Collector, f *frontier.Frontier, fetcher *Fetcher, log *slog.Logger) (*Collector, error) {
	c := &Collector{Collector: engine, frontier: f, fetcher: fetcher, Log: log, shut: shutContext(), id: rand.Text(),
		members: map[string]*member{}, readings: map[uint64]*callbackRun{}}
	return c, c.join("", engine)
}

// newEngine returns a collector with everything off that decorum decides, and that
// configure leaves alone. Fields are set after NewCollector, so that no COLLY_
// environment variable has the last word.
func newEngine(userAgent string) *colly.Collector {
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

// Join makes the requests of another collector, such as a Clone, go the same
// way. Its requests are queued under the name, which must be the same in the
// next run, and answered to its callbacks. Call it before the crawl begins.
func (c *Collector) Join(name string, other *colly.Collector) error {
	if name == "" || c.members[name] != nil {
		return errors.New("collyfetch: Join: each collector needs a name of its own")
	}
	return c.join(name, other)
}

func (c *Collector) join(name string, m *colly.Collector) error {
	own := m.Context == c.shut // a Clone
	if !own && errors.Is(context.Cause(m.Context), errReplaced) {
		return errTaken
	}
	if m.AllowURLRevisit && !own {
		c.Log.Warn("AllowURLRevisit has no effect: a crawl visits a URL once")
	}
	if err := c.configure(m); err != nil {
		return err
	}
	blank, err := newBlank(m)
	if err != nil {
		return err
	}
	joined := &member{m, name, blank}
	c.members[name] = joined
	m.SetClient(&http.Client{Transport: &door{c}, CheckRedirect: stay})
	m.OnRequest(func(r *colly.Request) { c.request(joined, r) })
	m.OnResponse(trueStatus)
	return nil
}

// A member is a collector that has joined.
type member struct {
	*colly.Collector
	name  string         // that its requests are queued under
	blank *colly.Request // of it, for nothing yet: only colly can make one
}

// newBlank returns a request of m for nothing yet.
func newBlank(m *colly.Collector) (*colly.Request, error) {
	r, err := m.UnmarshalRequest([]byte(`{"Method": "GET"}`))
	if err == nil {
		r.Body = nil
	}
	return r, err
}

// stay keeps colly from following a redirect itself: those that lead on are queued.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// errTaken refuses a collector that another crawl has.
var errTaken = errors.New("collyfetch: the collector, or the one that it is a Clone of, belongs to a crawl already: see Join")

// settle configures the collectors anew: the program may have set their fields.
func (c *Collector) settle() error {
	for _, m := range c.members {
		if m.Async {
			m.Wait() // colly still queues
		}
		if err := c.configure(m.Collector); err != nil {
			return err
		}
	}
	return nil
}

// OnRequest registers a callback that is called right before a request is sent,
// whose headers it may change and which it may Abort. (One that is registered
// on the colly.Collector itself is also called when a link is queued.)
func (c *Collector) OnRequest(f colly.RequestCallback) { c.onRequest = append(c.onRequest, f) }

// Fetch is the crawler.Fetcher of the crawl: it lets colly make the request of a
// page, which calls the callbacks for requests, sends it, and leaves colly
// waiting for Handle. The crawl's own errands go past the callbacks.
func (c *Collector) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	if t.IsPrerequisite() || t.URL().IsZero() {
		return c.fetcher.Fetch(ctx, t)
	}
	c.begun.Store(true)
	r, err := c.begin(ctx, t)
	if err != nil {
		c.Log.Error("a page is given up", "url", t.URL(), "why", err)
		return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid, Err: err}
	}
	if !r.resume() {
		if r.turnedAway() {
			c.awaiting.put(t, r.page)
		}
		return nil, r.failure()
	}
	if _, _, redirects := crawler.Redirection(t.Request(), r.response); redirects || r.response.Status == http.StatusNotModified {
		c.Finish(t) // there is nothing to read
	}
	return r.response, nil
}

// errNotFetched is of a Crawler that was put together wrongly.
var errNotFetched = errors.New("the callbacks do not know the page: is the Collector the Fetcher of the Crawler, and Handle called at most once for a page?")

// Handle is the crawler.Handler that runs the callbacks for a response. What
// they visit it returns as links. A Handler may wrap it.
func (c *Collector) Handle(ctx context.Context, v *crawler.Visit) ([]crawler.Link, error) {
	r := c.findCallbackRun(v.Lease.Token)
	if r == nil {
		if _, _, redirects := crawler.Redirection(v.Lease.Request, v.Response); redirects {
			return nil, nil
		}
		return nil, &decorum.Error{Op: "handle", URL: v.URL().String(), Kind: decorum.Invalid, Err: errNotFetched}
	}
	r.open(ctx, v)
	r.resume()
	links, again, lost := r.close()
	switch {
	case lost != nil: // it is not read as long as not all of it is kept
		return links, lost
	case again:
		return links, errAgain
	case r.err != nil && v.OK() && !errors.Is(r.err, colly.ErrAbortedAfterHeaders):
		// A page that cannot be parsed today cannot be parsed tomorrow.
		return links, &decorum.Error{Op: "read", URL: v.URL().String(), Kind: decorum.Dropped, Err: r.err}
	}
	return links, nil
}

// errAgain is the verdict of callbacks that called Request.Retry.
var errAgain = errors.New("a callback asks for the page again")

// request is called for every request of a collector, before it is sent: that
// for a page lets it pass, any other is queued. Where that cannot be, the door
// refuses it, so that whoever asked gets the error.
func (c *Collector) request(m *member, r *colly.Request) {
	if own := c.asked(*r.Headers); own != nil && own.page == nil {
		own.page = r
		if own.before != nil {
			r.ResponseCharacterEncoding = own.before.ResponseCharacterEncoding
			return
		}
		if m.name == "" { // those who joined have callbacks of their own
			for _, f := range c.onRequest {
				f(r)
			}
		}
		return
	}
	if r.IsAbort() {
		return
	}
	if err := c.enqueue(m, r); err != nil {
		r.Headers.Set(refusalHeader, err.Error())
		return
	}
	r.Abort()
}

// enqueue queues the request as a link of the page that it was made for, or of
// none.
func (c *Collector) enqueue(m *member, r *colly.Request) error {
	u, err := decorum.ParseURL(r.URL.String())
	if err != nil {
		return err
	}
	request, err := requestOf(r, c.fetcher.cfg.MaxRequestBody)
	if err == nil && request != nil && !u.Origin().IsHTTP() {
		err = errScheme
	}
	if err != nil {
		return err
	}
	parent := c.parent(r.Ctx)
	if parent.retries(m, r, request) {
		return nil
	}
	baggage, err := pack(m.name, u, r.Ctx, beyond(m.Collector, *r.Headers, request))
	if err != nil {
		return err
	}
	return c.queue(parent, crawler.Link{URL: u, Context: baggage, Request: request}, r.Depth)
}

// queue queues a link, which colly counts as so deep, with those of the page that it
// was found on, or on its own.
func (c *Collector) queue(parent *callbackRun, l crawler.Link, depth int) error {
	if parent.add(l) {
		return nil
	}
	e := storage.Entry{URL: l.URL, Source: storage.Seed, Depth: max(depth-1, 0), Context: l.Context, Request: l.Request}
	if c.begun.Load() { // limits against made-up URLs hold, which do not for seeds
		e.Source = storage.Link
	}
	if parent == nil {
		_, err := c.frontier.Discover(context.Background(), e)
		return err
	}
	e.Referrer = parent.ticket.URL().String()
	_, err := c.frontier.Discover(parent.context(), e)
	if err != nil {
		parent.lose(err)
	}
	return err
}
