package collyfetch

import (
	"errors"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/internal/recent"
)

// unsentRequestsSize is how many requests are remembered, at least, that were not sent, and
// half of the most. OnRequest is called again for those beyond.
const unsentRequestsSize = 1 << 14

// unsentRequests are the requests for which OnRequest was called and that were refused
// before anything was sent: the address of their host was busy, say. They are sent later
// as the callbacks left them, and OnRequest is not called again.
type unsentRequests struct {
	mu       sync.Mutex // guards requests
	requests recent.Map[requestIdentity, *colly.Request]
}

// requestIdentity is the identity of a page that is to be visited.
type requestIdentity struct {
	url         decorum.URL
	fingerprint uint64
}

func requestIdentityOf(t crawler.Ticket) requestIdentity {
	lease := t.Lease()
	return requestIdentity{t.URL(), lease.RequestFingerprint()}
}

// put remembers a request that was not sent.
func (a *unsentRequests) put(t crawler.Ticket, req *colly.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	copied := *req
	copied.Body = nil // it comes again with the lease
	a.requests.Put(requestIdentityOf(t), &copied, unsentRequestsSize)
}

// take returns the request for what t is for, and forgets it; nil if none was put.
func (a *unsentRequests) take(t crawler.Ticket) *colly.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	req, _ := a.requests.Peek(requestIdentityOf(t))
	a.requests.Delete(requestIdentityOf(t))
	return req
}

// isUnsent reports whether r was refused before it was sent, or failed on this
// machine; the crawl then queues it again.
func (r *callbackRun) isUnsent() bool {
	return r.callbackRequest != nil && (errors.Is(r.fetchOrCollyErr, decorum.NotDue) || errors.Is(r.fetchOrCollyErr, decorum.LocalFailure))
}
