package crawler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/storage"
)

// receive gives an answer to whom it is for: the robots gate, the sitemap
// parser, or the user's handler.
func (c *Crawler) receive(ctx context.Context, v *Visit) (ack storage.Ack, err error) {
	page := isPage(v.Lease, v.Clearance)
	archived := c.archive(ctx, v)
	switch {
	case isDetour(v.Lease, v.Clearance):
		ack, err = c.receiveReservation(ctx, v)
	case v.Clearance.ForRobots():
		ack, err = c.receiveRobots(ctx, v)
	case !page:
		ack, err = c.receiveSitemap(ctx, v)
	default:
		ack, err = c.receivePage(ctx, v)
	}
	if v.Response != nil {
		c.received(v.Bytes())
	}
	var restErr error
	ack.Host, restErr = c.rest(ctx, v) // after receiving: a robots.txt may just have asked for a delay
	if c.Hooks.Visited != nil {
		c.Hooks.Visited(c.shown(v))
	}
	return ack, errors.Join(archived, err, restErr)
}

// archive keeps a visit. One that could not be kept counts as broken off: nobody
// reads it, and it will be made again.
func (c *Crawler) archive(ctx context.Context, v *Visit) error {
	if c.Archive == nil || v.brokenOff {
		return nil
	}
	if v.Exchange != nil { // a record is put together in memory
		v.share.Charge(int64(len(v.Exchange.Response)))
		defer v.share.Release(int64(len(v.Exchange.Response)))
	}
	err := c.Archive.Record(ctx, c.shown(v))
	if v.brokenOff = err != nil; err == nil || ctx.Err() != nil {
		return nil // it may have been waiting for room on the disk
	}
	return fmt.Errorf("cannot archive %s: %w", v.URL(), err)
}

// receivePage follows a page's answer to its outcome.
func (c *Crawler) receivePage(ctx context.Context, v *Visit) (storage.Ack, error) {
	if v.brokenOff {
		return storage.Ack{Outcome: storage.Again}, nil
	}
	links, verdict := c.read(ctx, v)
	if !v.marked && isEndOf(ctx, verdict) {
		v.brokenOff = true
		return storage.Ack{Outcome: storage.Again}, nil
	}
	if verdict == nil {
		c.countDuplicate(v)
	}
	if v.Err == nil {
		v.Err = verdict
	}
	v.Links = len(links)
	c.doubt(v)
	if c.Recorder != nil {
		err := c.Recorder.Record(ctx, c.shown(v))
		if err != nil && ctx.Err() != nil {
			return storage.Ack{Outcome: storage.Again}, nil // it was waiting for room on the disk
		}
		if err != nil {
			return storage.Ack{Outcome: storage.Again}, fmt.Errorf("cannot record %s: %w", v.URL(), err)
		}
	}
	// What was read is kept, even when the crawl is being halted.
	if err := c.discover(afterwards(ctx), v, links); err != nil {
		return storage.Ack{Outcome: storage.Again}, err
	}
	return c.decideOutcome(afterwards(ctx), v, verdict)
}

// isEndOf reports whether a handler gave up because its context was done: the crawl was
// halted, or the lease has run out. That says nothing of the page.
func isEndOf(ctx context.Context, verdict error) bool {
	return ctx.Err() != nil && (errors.Is(verdict, ctx.Err()) || errors.Is(verdict, context.Cause(ctx)))
}

// scan returns what finds in an answer what a crawl needs, when it is first asked.
func (c *Crawler) scan(res *decorum.Response, read func(*extract.Scanner) *extract.Document) func() *extract.Document {
	return sync.OnceValue(func() *extract.Document {
		if res == nil {
			return nil
		}
		defer func() {
			if p := recover(); p != nil {
				c.tally.panics.Add(1)
				c.Log.Error("page could not be scanned", "url", res.URL, "panic", p, "stack", string(debug.Stack()))
			}
		}()
		s := c.scanner()
		doc := read(s)
		c.scanners.Put(s) // not after a panic: who knows what it has left
		if doc != nil && doc.More {
			c.Log.Warn("page has more links than are read", "url", res.URL, "limit", len(doc.Links))
		}
		return doc
	})
}

// scanner returns a scanner that nobody uses.
func (c *Crawler) scanner() *extract.Scanner {
	s, ok := c.scanners.Get().(*extract.Scanner)
	if !ok {
		s = new(extract.Scanner)
	}
	s.MaxLinks, s.Images = c.Settings.MaxLinks, c.Settings.Follow.Images
	return s
}

// read calls the handler, and catches its panic. Of a page that has not changed
// there is nothing to read. One that is not to be used is read for its links alone,
// where no handler of the user's says what leads on.
func (c *Crawler) read(ctx context.Context, v *Visit) (links []Link, err error) {
	if v.Response == nil || v.Status() == http.StatusNotModified {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			links, err = nil, c.caught(p, v.URL())
		}
	}()
	if !c.withheld(v) {
		return c.Handler(ctx, v)
	}
	v.withheld = true
	c.tally.withheld.Add(1)
	if !c.follows {
		return nil, nil
	}
	return c.FollowLinks(ctx, v)
}

// caught logs and counts the panic of a callback, and returns it as an error. A
// panic that was handed on from another goroutine knows where it was.
func (c *Crawler) caught(p any, u decorum.URL) error {
	c.tally.panics.Add(1)
	stack := debug.Stack()
	if elsewhere, ok := p.(interface{ Stack() []byte }); ok {
		stack = elsewhere.Stack()
	}
	c.Log.Error("callback panicked", "url", u, "panic", p, "stack", string(stack))
	return &decorum.Error{Op: "handle", URL: u.String(), Kind: decorum.Panicked, Err: fmt.Errorf("%v", p)}
}

// discover offers a page's links to the frontier, and its redirect's target.
func (c *Crawler) discover(ctx context.Context, v *Visit, links []Link) error {
	var entries []storage.Entry
	found := storage.Entry{Depth: v.Lease.Depth + 1, Referrer: v.URL().String()}
	for _, l := range links {
		if l.Request == nil && c.Frontier.Knows(l.URL) { // as most links of a site are
			continue
		}
		found.URL, found.Context, found.Source, found.Request = l.URL, l.Context, l.source(), l.Request
		if err := found.Check(); err != nil {
			c.Log.Warn("a handler returned a link that cannot be kept", "page", v.URL(), "error", err)
			continue
		}
		if l.URL.Path() != "/robots.txt" { // the gate asks for it, and knows when
			entries = append(entries, found)
		}
	}
	if len(entries) > 0 {
		if _, err := c.Frontier.Offer(ctx, nil, entries); err != nil {
			return err
		}
	}
	return c.redirect(ctx, v)
}
