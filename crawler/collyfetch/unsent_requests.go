package collyfetch

import (
	"errors"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/internal/recent"
)

// unsentRequestsSize is how many unsent requests are remembered at least; at most twice as many are.
// For requests beyond that, OnRequest is called again.
const unsentRequestsSize = 1 << 14

// unsentRequests holds the requests for which OnRequest was called, and which were refused before
// anything was sent, for example because the address of their host was busy. They are sent later as
// the callbacks left them, and OnRequest is not called again.
type unsentRequests struct {
	mu       sync.Mutex // guards requests
	requests recent.Map[requestIdentity, *colly.Request]
}

// A requestIdentity identifies a page to visit.
type requestIdentity struct {
	url         decorum.URL
	fingerprint uint64 // of path, method and body: see storage.Entry.RequestFingerprint
}

func requestIdentityOf(t crawler.Ticket) requestIdentity {
	lease := t.Lease()
	return requestIdentity{t.URL(), lease.RequestFingerprint()}
}

// put remembers req, which was not sent for t.
func (a *unsentRequests) put(t crawler.Ticket, req *colly.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	copied := *req
	copied.Body = nil // the lease has the body
	a.requests.Put(requestIdentityOf(t), &copied, unsentRequestsSize)
}

// take removes and returns the request that was remembered for t, or nil.
func (a *unsentRequests) take(t crawler.Ticket) *colly.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	req, _ := a.requests.Peek(requestIdentityOf(t))
	a.requests.Delete(requestIdentityOf(t))
	return req
}

// isUnsent reports whether r was refused before it was sent, or failed on this machine. The crawl then
// queues it again.
func (r *callbackRun) isUnsent() bool {
	return r.callbackRequest != nil &&
		(errors.Is(r.fetchOrCollyErr, decorum.NotDue) || errors.Is(r.fetchOrCollyErr, decorum.LocalFailure))
}
