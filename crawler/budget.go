package crawler

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// ErrPages is what Run returns when MaxPages pages have been visited.
var ErrPages = errors.New("the limit of pages is reached")

// ErrBytes is what Run returns when MaxReceivedBytes bytes have been received.
var ErrBytes = errors.New("the limit of bytes is reached")

// A Coordinator enforces limits shared by all processes of a crawl. Many workers call its methods
// at a time, and they must not block.
type Coordinator interface {
	// CheckVisit returns whether a visit may begin at now. It returns Postpone, for
	// decorum.ReasonOtherProcesses, while it cannot tell whether another process has stopped
	// visits.
	CheckVisit(now time.Time) decorum.Decision
	// AcquireCrawlPageBudget counts a page that is about to be visited. It returns Postpone, for
	// ReasonOtherProcesses, if the pages granted so far are used up, and PageLimitDecision if no
	// more will be granted. It counts the page only if the decision is to Proceed.
	AcquireCrawlPageBudget() decorum.Decision
	// ReleaseCrawlPageBudget undoes AcquireCrawlPageBudget for a visit that was not made.
	ReleaseCrawlPageBudget()
	// AddBodyBytes adds the length of a decoded body.
	AddBodyBytes(bytes int64)
}

// A runBudget counts what a run has done against its own limits and those shared with other
// processes.
type runBudget struct {
	settings          Settings
	coordinator       Coordinator  // nil: the crawl has one process
	pagesBegun        atomic.Int64 // page visits begun in this run
	bodyBytesReceived atomic.Int64 // decoded body bytes received in this run
}

// beginRun sets the limits and resets the counts.
func (b *runBudget) beginRun(s Settings, others Coordinator) {
	b.settings, b.coordinator = s, others
	b.pagesBegun.Store(0)
	b.bodyBytesReceived.Store(0)
}

// checkVisitWithCoordinator calls Coordinator.CheckVisit; without a Coordinator it returns Proceed.
func (b *runBudget) checkVisitWithCoordinator(now time.Time) decorum.Decision {
	if b.coordinator == nil {
		return decorum.Decision{}
	}
	return b.coordinator.CheckVisit(now)
}

// PageLimitDecision returns the Decision for a page beyond MaxPages. The run ends with its
// Err, which is ErrPages.
func PageLimitDecision() decorum.Decision {
	return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonPageLimit, Cause: ErrPages}
}

// acquireCrawlPageBudget counts a page that is about to be visited, if the limits allow it.
func (b *runBudget) acquireCrawlPageBudget() decorum.Decision {
	if n := b.pagesBegun.Add(1); b.settings.MaxPages > 0 && n > b.settings.MaxPages {
		return PageLimitDecision()
	}
	if b.coordinator == nil {
		return decorum.Decision{}
	}
	d := b.coordinator.AcquireCrawlPageBudget()
	if d.Action != decorum.Proceed {
		b.pagesBegun.Add(-1)
	}
	return d
}

// releaseCrawlPageBudget undoes acquireCrawlPageBudget.
func (b *runBudget) releaseCrawlPageBudget() {
	b.pagesBegun.Add(-1)
	if b.coordinator != nil {
		b.coordinator.ReleaseCrawlPageBudget()
	}
}

// addBodyBytes adds the length of a decoded body.
func (b *runBudget) addBodyBytes(bytes int) {
	b.bodyBytesReceived.Add(int64(bytes))
	if b.coordinator != nil {
		b.coordinator.AddBodyBytes(int64(bytes))
	}
}

// countVisitIfAllowed checks the byte limit for a visit other than to robots.txt, and counts a
// page.
func (b *runBudget) countVisitIfAllowed(kind VisitKind) decorum.Decision {
	switch {
	case kind.IsRobots():
	case b.settings.MaxReceivedBytes > 0 && b.bodyBytesReceived.Load() >= b.settings.MaxReceivedBytes:
		return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonByteLimit, Cause: ErrBytes}
	case kind.IsPage():
		return b.acquireCrawlPageBudget()
	}
	return decorum.Decision{}
}

// uncountVisit undoes countVisitIfAllowed for a visit that was not made.
func (b *runBudget) uncountVisit(kind VisitKind) {
	if kind.IsPage() {
		b.releaseCrawlPageBudget()
	}
}
