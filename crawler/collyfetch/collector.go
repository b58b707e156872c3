package collyfetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// A Collector carries colly callbacks, as colly.Collector does, for a crawl
// that decorum runs. Register them before the crawl begins. A callback's
// Request.Visit enqueues: it returns nil at once, and the page comes to the
// callbacks when robots.txt allows it and its host is due, or never.
type Collector struct {
	frontier *frontier.Frontier
	engine   *colly.Collector
	register []func(*colly.Collector, *reading)
}

// NewCollector returns a Collector without callbacks for a crawl of f.
func NewCollector(f *frontier.Frontier) *Collector {
	return &Collector{frontier: f, engine: newEngine("", replay{})}
}

// Visit enqueues a URL as a seed, from anywhere. In a callback, the request's
// own Visit is better: it counts the depth and names the referrer.
func (c *Collector) Visit(url string) error {
	u, err := decorum.ParseURL(url)
	if err != nil {
		return err
	}
	_, err = c.frontier.Discover(context.Background(), storage.Entry{URL: u, Source: storage.Seed, Class: storage.Early})
	return err
}

// OnRequest registers a callback for each page, called before those for its
// response. decorum has made the request by then: to change it comes too late.
func (c *Collector) OnRequest(f colly.RequestCallback) {
	c.register = append(c.register, func(e *colly.Collector, reading *reading) {
		e.OnRequest(func(r *colly.Request) {
			if r == reading.page {
				f(r)
			}
		})
	})
}

// OnResponse registers a callback for each page that was answered with 2xx.
func (c *Collector) OnResponse(f colly.ResponseCallback) {
	c.on(func(e *colly.Collector) { e.OnResponse(f) })
}

// OnHTML registers a callback for each element of an HTML page that matches
// the goquery selector.
func (c *Collector) OnHTML(selector string, f colly.HTMLCallback) {
	c.on(func(e *colly.Collector) { e.OnHTML(selector, f) })
}

// OnXML registers a callback for each element of an XML or HTML page that
// matches the XPath query.
func (c *Collector) OnXML(xpath string, f colly.XMLCallback) {
	c.on(func(e *colly.Collector) { e.OnXML(xpath, f) })
}

// OnError registers a callback for each page that was answered with another
// status than 2xx, redirects apart.
func (c *Collector) OnError(f colly.ErrorCallback) {
	c.on(func(e *colly.Collector) { e.OnError(f) })
}

// OnScraped registers a callback for each page, called after all the others.
func (c *Collector) OnScraped(f colly.ScrapedCallback) {
	c.on(func(e *colly.Collector) { e.OnScraped(f) })
}

func (c *Collector) on(register func(*colly.Collector)) {
	c.register = append(c.register, func(e *colly.Collector, _ *reading) { register(e) })
}

// A reading is one page on its way through the callbacks.
type reading struct {
	visit *crawler.Visit
	page  *colly.Request // the page's own request; all others are links
	links []crawler.Link
}

type readingKey struct{}

// Handle is the crawler.Handler that runs the callbacks. colly is handed the
// page as if it had just come over the network; whatever the callbacks visit
// is returned as links.
func (c *Collector) Handle(ctx context.Context, v *crawler.Visit) ([]crawler.Link, error) {
	if _, redirects := v.Response.Location(); redirects {
		return nil, nil // the target comes to the callbacks as a page of its own
	}
	reading := &reading{visit: v}
	e := c.engine.Clone()
	e.ParseHTTPErrorResponse = v.OK() // colly takes 203 and above for errors
	e.Context = context.WithValue(ctx, readingKey{}, reading)
	e.OnRequest(reading.request)
	for _, register := range c.register {
		register(e, reading)
	}
	err := e.Request(http.MethodGet, v.URL().String(), nil, nil, nil)
	if err == nil || !v.OK() {
		return reading.links, nil
	}
	// A page that cannot be parsed today cannot be parsed tomorrow.
	return reading.links, &decorum.Error{Op: "read", URL: v.URL().String(), Kind: decorum.Dropped, Err: err}
}

// request lets the page itself pass, and turns every other request of a
// callback into a link.
func (r *reading) request(req *colly.Request) {
	switch {
	case r.page == nil:
		r.page = req
	case req.Method == http.MethodGet:
		if u, err := decorum.ParseURL(req.URL.String()); err == nil {
			r.links = append(r.links, crawler.Link{URL: u})
		}
		req.Abort()
	}
	// Anything else is refused by the transport, with an error for the callback.
}

// replay is a transport that hands colly the page that has been fetched.
type replay struct{}

// errNotGet refuses what cannot be enqueued.
var errNotGet = errors.New("only GET can be enqueued")

// RoundTrip implements http.RoundTripper.
func (replay) RoundTrip(req *http.Request) (*http.Response, error) {
	r, _ := req.Context().Value(readingKey{}).(*reading)
	if r == nil || req.Method != http.MethodGet {
		return nil, &decorum.Error{Op: "visit", URL: req.URL.String(), Kind: decorum.Unticketed, Err: errNotGet}
	}
	res := r.visit.Response
	return &http.Response{
		Status: http.StatusText(res.Status), StatusCode: res.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: res.Header.Clone(), Request: req, Uncompressed: true,
		Body: io.NopCloser(bytes.NewReader(res.Body)), ContentLength: int64(len(res.Body)),
	}, nil
}
