package crawler

import (
	"cmp"
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

// dispatchResponse gives an answer to whom it is for: the robots gate, the sitemap
// parser, or the user's handler.
func (c *Crawler) dispatchResponse(ctx context.Context, v *Visit) (ack storage.Ack, err error) {
	archiveErr := c.archiveVisit(ctx, v)
	switch v.Kind {
	case TDMRepVisit:
		ack, err = c.handleTDMRepResponse(ctx, v)
	case RobotsVisit, RobotsRedirectVisit:
		ack, err = c.handleRobots(ctx, v)
	case SitemapVisit:
		ack, err = c.handleSitemap(ctx, v)
	default:
		ack, err = c.handlePage(ctx, v)
	}
	if v.Response != nil {
		c.addBodyBytes(v.BodyLen())
	}
	var restErr error
	ack.HostState, restErr = c.updateHostAfterVisit(ctx, v) // after receiving: a robots.txt may just have asked for a delay
	if c.Hooks.Visited != nil {
		c.Hooks.Visited(c.visitWithoutWithheldContent(v))
	}
	return ack, errors.Join(archiveErr, err, restErr)
}

// archiveVisit keeps a visit. One that could not be kept counts as broken off: nobody
// reads it, and it will be made again.
func (c *Crawler) archiveVisit(ctx context.Context, v *Visit) error {
	if c.Archive == nil || v.interrupted {
		return nil
	}
	if v.Exchange != nil { // a record is put together in memory
		v.bodyShare.Charge(int64(len(v.Exchange.RawResponse)))
		defer v.bodyShare.Release(int64(len(v.Exchange.RawResponse)))
	}
	err := c.Archive.Record(ctx, c.visitWithoutWithheldContent(v))
	if v.interrupted = err != nil; err == nil || ctx.Err() != nil {
		return nil // it may have been waiting for room on the disk
	}
	return fmt.Errorf("cannot archive %s: %w", v.URL(), err)
}

// handlePage follows a page's answer to its outcome.
func (c *Crawler) handlePage(ctx context.Context, v *Visit) (storage.Ack, error) {
	if v.interrupted {
		return storage.Ack{Outcome: storage.Requeue}, nil
	}
	links, verdict := c.callHandlerIfContentUsable(ctx, v)
	if !v.unsafeSendRecorded && isCancellation(ctx, verdict) {
		v.interrupted = true
		return storage.Ack{Outcome: storage.Requeue}, nil
	}
	if verdict == nil {
		c.countDuplicateOrNonCanonical(v)
	}
	v.Err = cmp.Or(v.Err, verdict)
	v.LinkCount = len(links)
	c.countAndLogIfInDoubt(v)
	if c.PageRecorder != nil {
		err := c.PageRecorder.Record(ctx, c.visitWithoutWithheldContent(v))
		if err != nil && ctx.Err() != nil {
			return storage.Ack{Outcome: storage.Requeue}, nil // it was waiting for room on the disk
		}
		if err != nil {
			return storage.Ack{Outcome: storage.Requeue}, fmt.Errorf("cannot record %s: %w", v.URL(), err)
		}
	}
	// What was read is kept, even when the crawl is being halted.
	if err := c.addLinksAndRedirectToFrontier(commitContext(ctx), v, links); err != nil {
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	return c.decideOutcome(commitContext(ctx), v, verdict)
}

// isCancellation reports whether a handler gave up because its context was done: the crawl was
// halted, or the lease has run out. That says nothing of the page.
func isCancellation(ctx context.Context, verdict error) bool {
	return ctx.Err() != nil && (errors.Is(verdict, ctx.Err()) || errors.Is(verdict, context.Cause(ctx)))
}

// lazyScan returns what finds in an answer what a crawl needs, when it is first asked.
func (c *Crawler) lazyScan(res *decorum.Response, scan func(*extract.Scanner) *extract.ScanResult) func() *extract.ScanResult {
	return sync.OnceValue(func() *extract.ScanResult {
		if res == nil {
			return nil
		}
		defer func() {
			if p := recover(); p != nil {
				c.counters.count(func(s *Stats) { s.Panics++ })
				c.Log.Error("page could not be scanned", "url", res.URL, "panic", p, "stack", string(debug.Stack()))
			}
		}()
		s := c.getScanner()
		doc := scan(s)
		c.scannerPool.Put(s) // not after a panic: who knows what it has left
		if doc != nil && doc.LinksTruncated {
			c.Log.Warn("page has more links than are read", "url", res.URL, "limit", len(doc.Links))
		}
		return doc
	})
}

// getScanner returns a scanner that nobody uses.
func (c *Crawler) getScanner() *extract.Scanner {
	s, ok := c.scannerPool.Get().(*extract.Scanner)
	if !ok {
		s = new(extract.Scanner)
	}
	s.MaxLinks, s.IncludeImages = c.Settings.MaxLinks, c.Settings.FollowedLinkKinds.Images
	return s
}

// callHandlerIfContentUsable calls the handler, and catches its panic. Of a page that has not changed
// there is nothing to read. One that is not to be used is read for its links alone,
// where no handler of the user's says what leads on.
func (c *Crawler) callHandlerIfContentUsable(ctx context.Context, v *Visit) (links []LinkToVisit, err error) {
	if v.Response == nil || v.Status() == http.StatusNotModified {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			links, err = nil, c.handlePanic(p, v.URL())
		}
	}()
	if !c.forbidsContentUse(v) {
		return c.Handler(ctx, v)
	}
	v.contentWithheld = true
	c.counters.count(func(s *Stats) { s.PagesWithheld++ })
	if !c.usesDefaultHandler {
		return nil, nil
	}
	return c.LinksToFollow(ctx, v)
}

// handlePanic logs and counts the panic of a callback, and returns it as an error. A
// panic that was handed on from another goroutine knows where it was.
func (c *Crawler) handlePanic(p any, u decorum.URL) error {
	c.counters.count(func(s *Stats) { s.Panics++ })
	stack := debug.Stack()
	if elsewhere, ok := p.(interface{ Stack() []byte }); ok {
		stack = elsewhere.Stack()
	}
	c.Log.Error("callback panicked", "url", u, "panic", p, "stack", string(stack))
	return &decorum.Error{Op: "handle", URL: u.String(), Kind: decorum.Panicked, Err: fmt.Errorf("%v", p)}
}

// addLinksAndRedirectToFrontier offers a page's links to the frontier, and its redirect's target.
func (c *Crawler) addLinksAndRedirectToFrontier(ctx context.Context, v *Visit, links []LinkToVisit) error {
	var entries []storage.Entry
	found := storage.Entry{Depth: v.Lease.Depth + 1, Referrer: v.URL().String()}
	for _, l := range links {
		if l.Request == nil && c.Frontier.WasRecentlyOffered(l.URL) { // as most links of a site are
			continue
		}
		found.URL, found.CallbackData, found.Source, found.Request = l.URL, l.CallbackData, l.discoverySource(), l.Request
		if err := found.Validate(); err != nil {
			c.Log.Warn("a handler returned a link that cannot be kept", "page", v.URL(), "error", err)
			continue
		}
		if l.URL.PathAndQuery() != "/robots.txt" { // the gate asks for it, and knows when
			entries = append(entries, found)
		}
	}
	if len(entries) > 0 {
		if _, err := c.Frontier.DiscoverReportingRefusals(ctx, nil, entries); err != nil {
			return err
		}
	}
	return c.discoverRedirectAndNoteHTTPS(ctx, v)
}
