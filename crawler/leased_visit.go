package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A leasedVisit is a lease on its way through the pipeline. It owns everything that must be
// returned for the lease. Exactly one of abort and finish ends it; release comes last, after the
// ack.
//
//	resource                       abort         finish                           release
//	lease, host entry                                                             returned
//	lookup of a tdmrep.json                                                       returned
//	lookup of a robots.txt         returned      left to Gate.RecordFetch
//	page of the run's budget       returned      stays counted, unless uncounted
//	permit                         unused        returned at the end of the transfer
//
// If runtime.Goexit in a callback ends the worker after the request may have been sent, neither is
// called: the host rests as after a visit once the crawl leaves the SharedHosts.
type leasedVisit struct {
	leasedVisitConfig
	lease       storage.Lease
	clearance   gate.Clearance    // zero until clear is called
	kind        VisitKind         // set by clear
	permit      politeness.Permit // zero if none was issued
	pageCounted bool              // the run's budget counts the visit
	mayBeSent   bool              // the fetcher was called: a request may have been sent
	ended       bool              // abort or finish was called
}

// A leasedVisitConfig has the parts that a leasedVisit takes resources from.
type leasedVisitConfig struct {
	activeLeases *activeLeases
	hosts        *hostTable
	tdmrepCache  *tdmrepCache
	gate         *gate.Gate
	limiter      *politeness.Limiter
	budget       *runBudget
	now          func() time.Time
}

// take registers l and its host as in use, and returns the context of the visit, which ends when
// the lease expires.
func (lv *leasedVisit) take(ctx context.Context, l storage.Lease) context.Context {
	lv.lease = l
	ctx = lv.activeLeases.addLease(ctx, l)
	lv.hosts.acquireHost(l)
	return ctx
}

// clear records the clearance, and the kind of visit that follows from it.
func (lv *leasedVisit) clear(cl gate.Clearance) {
	lv.clearance, lv.kind = cl, visitKindOf(lv.lease, cl)
}

// countPage counts the visit in the run's budget, if the budget allows it.
func (lv *leasedVisit) countPage() decorum.Decision {
	d := lv.budget.countVisitIfAllowed(lv.kind)
	lv.pageCounted = d.Action == decorum.Proceed
	return d
}

// uncountPage undoes countPage for a visit that will be repeated.
func (lv *leasedVisit) uncountPage() {
	if lv.pageCounted {
		lv.budget.uncountVisit(lv.kind)
		lv.pageCounted = false
	}
}

// abort ends a visit that sent nothing: the host, its address and the budgets are as before.
func (lv *leasedVisit) abort() {
	if lv.ended {
		return
	}
	lv.ended = true
	if lv.permit.WasIssued() {
		lv.limiter.ReleaseUnused(lv.now(), lv.permit)
	}
	lv.gate.CancelFetch(lv.clearance)
	lv.uncountPage()
}

// finish ends a visit whose transfer ended at end, before its answer is handled. It frees the
// server's address for another host; updateHostAfterVisit later decides how long the host itself
// rests.
func (lv *leasedVisit) finish(end time.Time) {
	lv.ended = true
	lv.limiter.ReleaseAfterTransfer(lv.permit, end)
}

// release returns the lease and the host entry, and aborts a visit that made no request.
func (lv *leasedVisit) release() {
	if !lv.mayBeSent {
		lv.abort()
	}
	lv.tdmrepCache.releaseLookup(lv.lease)
	lv.hosts.releaseHost(lv.lease)
	lv.activeLeases.removeLease(lv.lease)
}

// A leaseOutcome is what becomes of a leased URL.
type leaseOutcome struct {
	outcome   storage.AckOutcome
	notBefore time.Time                    // for RetryAt and RevisitAt
	history   *storage.VisitHistorySummary // for RevisitAt: what the visits have learnt of the page
	host      *storage.HostState           // nil leaves the state of the host unchanged
	// uncleanedURL replaces the clean URL in further visits, because nothing is there. Zero keeps
	// the clean URL.
	uncleanedURL decorum.URL
	// behindRevisits, with RetryAt, makes a URL that has not failed take turns with revisits.
	behindRevisits bool
	// learnedSlowerPace means that the learned delay in host has become longer and must be durable.
	learnedSlowerPace bool
}

// newAck returns the ack of l: the lease with the changes that r makes.
func newAck(l storage.Lease, r leaseOutcome) storage.Ack {
	switch {
	case r.behindRevisits:
		l.PriorityClass = max(l.PriorityClass, storage.ClassNormal)
	case r.outcome == storage.RetryAt:
		l.FailedAttempts++
	case r.outcome == storage.RevisitAt:
		l.FailedAttempts, l.VisitHistorySummary = 0, r.history
		if l.Source != storage.SourcePrerequisite && l.Source != storage.SourceResource && !isFeed(l) {
			l.Source = storage.SourceRevisit
		}
	}
	if !r.uncleanedURL.IsZero() {
		// The history belongs to the clean URL.
		l.UncleanedURL, l.UseUncleanedURL, l.VisitHistorySummary = r.uncleanedURL, true, nil
	}
	return storage.Ack{Lease: l, Outcome: r.outcome, NotBefore: r.notBefore, HostState: r.host}
}
