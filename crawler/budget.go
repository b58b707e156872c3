package crawler

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// ErrPages is the error of Run when MaxPages pages have been visited.
var ErrPages = errors.New("the limit of pages is reached")

// ErrBytes is the error of Run when MaxReceivedBytes bytes have been received.
var ErrBytes = errors.New("the limit of bytes is reached")

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

// A runBudget counts what a run may do, by itself and together with other processes.
type runBudget struct {
	settings          Settings
	coordinator       Coordinator  // nil: the crawl is alone
	pagesBegun        atomic.Int64 // page visits begun in this run
	bodyBytesReceived atomic.Int64 // of bodies, likewise
}

// beginRun begins a run: what it counts is 0.
func (b *runBudget) beginRun(s Settings, others Coordinator) {
	b.settings, b.coordinator = s, others
	b.pagesBegun.Store(0)
	b.bodyBytesReceived.Store(0)
}

// checkVisitWithCoordinator is Coordinator.CheckVisit, of a crawl that may be alone.
func (b *runBudget) checkVisitWithCoordinator(now time.Time) decorum.Decision {
	if b.coordinator == nil {
		return decorum.Decision{}
	}
	return b.coordinator.CheckVisit(now)
}

// PageLimitDecision returns the Decision when MaxPages pages have been visited: the run ends with
// its Err, which is ErrPages.
func PageLimitDecision() decorum.Decision {
	return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonPageLimit, Cause: ErrPages}
}

// acquireCrawlPageBudget counts a page that is about to be visited, if it may be.
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

// releaseCrawlPageBudget takes back what acquireCrawlPageBudget did.
func (b *runBudget) releaseCrawlPageBudget() {
	b.pagesBegun.Add(-1)
	if b.coordinator != nil {
		b.coordinator.ReleaseCrawlPageBudget()
	}
}

// addBodyBytes counts the bytes of a body.
func (b *runBudget) addBodyBytes(bytes int) {
	b.bodyBytesReceived.Add(int64(bytes))
	if b.coordinator != nil {
		b.coordinator.AddBodyBytes(int64(bytes))
	}
}

// countVisitIfAllowed counts a page that is about to be visited, if it, or a sitemap, may be: by the
// limits of the run.
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

// uncountVisit takes back the counting of a visit that was not made.
func (b *runBudget) uncountVisit(kind VisitKind) {
	if kind.IsPage() {
		b.releaseCrawlPageBudget()
	}
}
