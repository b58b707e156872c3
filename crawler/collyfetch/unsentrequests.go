package collyfetch

import (
	"errors"
	"maps"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// maxUnsentRequests is how many pages are remembered, at most, that were asked for and
// turned away. Of those beyond OnRequest is told again.
const maxUnsentRequests = 1 << 14

// awaiting are the pages that OnRequest has been told of and that were turned away
// before anything was sent: the address of their host was busy, say. They come
// again with what the callbacks made of them, of which nobody is told twice.
type awaiting struct {
	mu    sync.Mutex
	pages map[awaited]*colly.Request
}

// awaited is the identity of a page that is to be visited.
type awaited struct {
	url   decorum.URL
	print uint64
}

func awaitedOf(t crawler.Ticket) awaited {
	lease := t.Lease()
	return awaited{t.URL(), lease.Fingerprint()}
}

// put remembers a page that was turned away.
func (a *awaiting) put(t crawler.Ticket, page *colly.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pages == nil {
		a.pages = map[awaited]*colly.Request{}
	}
	for k := range a.pages {
		if len(a.pages) < maxUnsentRequests {
			break
		}
		delete(a.pages, k)
	}
	copied := *page
	copied.Body = nil // it comes again with the lease
	a.pages[awaitedOf(t)] = &copied
}

// take returns the page as it was turned away, and forgets it; nil if it was not.
func (a *awaiting) take(t crawler.Ticket) *colly.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	page := a.pages[awaitedOf(t)]
	delete(a.pages, awaitedOf(t))
	return page
}

// turnedAway reports whether r was refused before it was sent, or failed on this
// machine; the crawl then queues it again.
func (r *callbackRun) turnedAway() bool {
	return r.page != nil && (errors.Is(r.err, decorum.NotDue) || errors.Is(r.err, decorum.Local))
}

// goOn makes r the page that was turned away before: as the callbacks left it.
func (r *callbackRun) goOn(before *colly.Request) {
	r.before, r.request.Ctx = before, before.Ctx
	maps.Copy(*r.request.Headers, *before.Headers)
}
