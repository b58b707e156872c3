package collyfetch

import (
	"errors"
	"maps"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/internal/recent"
)

// unsentRequestsSize is how many pages are remembered, at least, that were asked for and turned away, twice
// as many at most. Of those beyond OnRequest is told again.
const unsentRequestsSize = 1 << 13

// unsentRequests are the pages that OnRequest has been told of and that were turned away
// before anything was sent: the address of their host was busy, say. They come
// again with what the callbacks made of them, of which nobody is told twice.
type unsentRequests struct {
	mu       sync.Mutex // guards requests
	requests recent.Map[unsentRequestKey, *colly.Request]
}

// unsentRequestKey is the identity of a page that is to be visited.
type unsentRequestKey struct {
	url         decorum.URL
	fingerprint uint64
}

func unsentRequestKeyOf(t crawler.Ticket) unsentRequestKey {
	lease := t.Lease()
	return unsentRequestKey{t.URL(), lease.RequestFingerprint()}
}

// put remembers a page that was turned away.
func (a *unsentRequests) put(t crawler.Ticket, req *colly.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	copied := *req
	copied.Body = nil // it comes again with the lease
	a.requests.Put(unsentRequestKeyOf(t), &copied, unsentRequestsSize)
}

// take returns the page as it was turned away, and forgets it; nil if it was not.
func (a *unsentRequests) take(t crawler.Ticket) *colly.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	req, _ := a.requests.Peek(unsentRequestKeyOf(t))
	a.requests.Delete(unsentRequestKeyOf(t))
	return req
}

// isUnsent reports whether r was refused before it was sent, or failed on this
// machine; the crawl then queues it again.
func (r *callbackRun) isUnsent() bool {
	return r.callbackRequest != nil && (errors.Is(r.fetchOrCollyErr, decorum.NotDue) || errors.Is(r.fetchOrCollyErr, decorum.LocalFailure))
}

// restoreFromUnsentRequest makes r the page that was turned away before: as the callbacks left it.
func (r *callbackRun) restoreFromUnsentRequest(unsent *colly.Request) {
	r.lastUnsentRequest, r.collyRequest.Ctx = unsent, unsent.Ctx
	maps.Copy(*r.collyRequest.Headers, *unsent.Headers)
}
