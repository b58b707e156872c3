package crawler

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// ErrPages is the error of Run when MaxPages pages have been visited.
var ErrPages = errors.New("the limit of pages is reached")

// ErrBytes is the error of Run when MaxReceivedBytes bytes have been received.
var ErrBytes = errors.New("the limit of bytes is reached")

// checkAndSpendHostBudget returns to Proceed if the budget of l's host permits the visit, and
// then counts the page in the host's memo; otherwise to Suspend. The budget limits
// first visits only: retries and revisits request pages that the host has
// already served.
func (c *Crawler) checkAndSpendHostBudget(l storage.Lease, kind VisitKind) decorum.Decision {
	isRepeat := l.FailedAttempts > 0 || l.UseUncleanedURL || l.VisitHistorySummary != nil
	switch {
	case isRepeat || kind.IsRobots():
		return decorum.Decision{}
	case !c.hostTable.isBelowByteLimit(l, c.Settings.MaxBytesPerHost):
		return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonHostBytes,
			Until: c.now().Add(suspendDuration), Limit: c.Settings.MaxBytesPerHost}
	case kind.IsPage() && !c.hostTable.tryReservePage(l, int64(c.Settings.MaxPagesPerHost)):
		return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonHostPages,
			Until: c.now().Add(suspendDuration), Limit: int64(c.Settings.MaxPagesPerHost)}
	}
	return decorum.Decision{}
}

// requeueOverHostBudget gives back a page whose host has used up its budget, but not to the
// head of the queue: the next lease of its origin may be a revisit, which is
// welcome and takes turns with URLs of ClassNormal. When no visit was made since
// the last time, the origin as a whole is set aside, and not one URL after the
// other.
func (c *Crawler) requeueOverHostBudget(ctx context.Context, l storage.Lease, until time.Time) (storage.Ack, error) {
	requeued := l
	requeued.PriorityClass = max(l.PriorityClass, storage.ClassNormal)
	ack := storage.Ack{Outcome: storage.RetryAt, NotBefore: c.now(), Lease: requeued}
	if l.PriorityClass < requeued.PriorityClass || !c.hostTable.markOverBudget(l) {
		return ack, nil // what goes before revisits is only handed out so once
	}
	return ack, c.Frontier.Hold(ctx, l.URL.Origin(), until, true)
}

// markOverBudget notes that a page of l's host was put off, and reports whether one
// was before, with no visit since.
func (ms *hostTable) markOverBudget(l storage.Lease) (again bool) {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	again, m.requeuedOverBudget = m.requeuedOverBudget, true
	return again
}

// tryReservePage notes that the first visit to a page is under way, unless its host has
// had the most pages it may have; 0 is no limit.
func (ms *hostTable) tryReservePage(l storage.Lease, maxPages int64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	if maxPages > 0 && m.PagesRequested+int64(len(m.firstVisitTokens)) >= maxPages {
		return false
	}
	m.firstVisitTokens[l.Token] = struct{}{}
	return true
}

// isBelowByteLimit reports whether l's host has sent fewer than limit bytes; 0 means no
// limit.
func (ms *hostTable) isBelowByteLimit(l storage.Lease, limit int64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return limit <= 0 || ms.hosts[l.URL.Origin().Host()].Bytes < limit
}

// countPageIfFirstVisit counts the page of v if it was asked for the first time. A visit that was
// broken off will be made again. It requires hostTable.mu.
func (m *hostEntry) countPageIfFirstVisit(v *Visit) {
	m.requeuedOverBudget = false
	if _, first := m.firstVisitTokens[v.Lease.Token]; first && !v.interrupted {
		m.PagesRequested++
		delete(m.firstVisitTokens, v.Lease.Token)
	}
}

// A Coordinator is the other processes that work on the same crawl, as far as a visit
// depends on them, and the limits of all together. Its methods are called by many
// workers at a time, and must not block.
type Coordinator interface {
	// CheckVisit returns whether a visit may begin at now, or else to Postpone, for
	// decorum.ReasonOtherProcesses: it is not known whether others have said that it must not.
	CheckVisit(now time.Time) decorum.Decision
	// AcquireCrawlPageBudget counts a page that is about to be visited. It returns to Postpone, for
	// ReasonOtherProcesses, if all that are permitted for now have been visited, and
	// PageLimitDecision if no more will be. It counts only what may proceed.
	AcquireCrawlPageBudget() decorum.Decision
	// ReleaseCrawlPageBudget takes back the counting of a visit that was not made.
	ReleaseCrawlPageBudget()
	// AddBodyBytes counts the bytes of a body, as decoded.
	AddBodyBytes(bytes int64)
}

// checkVisitWithCoordinator is Coordinator.CheckVisit, of a crawl that may be alone.
func (c *Crawler) checkVisitWithCoordinator(now time.Time) decorum.Decision {
	if c.Coordinator == nil {
		return decorum.Decision{}
	}
	return c.Coordinator.CheckVisit(now)
}

// PageLimitDecision returns the Decision when MaxPages pages have been visited: the run ends with
// its Err, which is ErrPages.
func PageLimitDecision() decorum.Decision {
	return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonPageLimit, Cause: ErrPages}
}

// acquireCrawlPageBudget counts a page that is about to be visited, if it may be.
func (c *Crawler) acquireCrawlPageBudget() decorum.Decision {
	if n := c.pagesBegun.Add(1); c.Settings.MaxPages > 0 && n > c.Settings.MaxPages {
		return PageLimitDecision()
	}
	if c.Coordinator == nil {
		return decorum.Decision{}
	}
	d := c.Coordinator.AcquireCrawlPageBudget()
	if d.Action != decorum.Proceed {
		c.pagesBegun.Add(-1)
	}
	return d
}

// releaseCrawlPageBudget takes back what page did.
func (c *Crawler) releaseCrawlPageBudget() {
	c.pagesBegun.Add(-1)
	if c.Coordinator != nil {
		c.Coordinator.ReleaseCrawlPageBudget()
	}
}

// addBodyBytes counts the bytes of a body.
func (c *Crawler) addBodyBytes(bytes int) {
	c.bodyBytesReceived.Add(int64(bytes))
	if c.Coordinator != nil {
		c.Coordinator.AddBodyBytes(int64(bytes))
	}
}
