package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A leasedVisit is a lease on its way through the pipeline, and owns all that must be given back
// for it. Exactly one of abort and finish ends it; release comes last, when the lease is acked.
//
//	taken                          by abort      by finish                        by release
//	lease, host entry                                                             given back
//	claim on a tdmrep.json                                                        given back
//	lookup of a robots.txt         given back    left to Gate.RecordFetch
//	page of the run's budget       given back    stays counted, but for uncountPage
//	permit                         unused        back at the end of the transfer
//
// A visit whose worker is lost after its request may have been sent, by runtime.Goexit in a callback
// say, is never ended: its host rests as after a visit when the crawl leaves the SharedHosts.
type leasedVisit struct {
	leasedVisitConfig
	lease       storage.Lease
	clearance   gate.Clearance    // zero: it is not cleared
	kind        VisitKind         // known when it is cleared
	permit      politeness.Permit // zero: it has none
	pageCounted bool              // the budget of the run counts it
	mayBeSent   bool              // the fetcher was called: something may have been sent
	ended       bool              // abort or finish was called
}

// A leasedVisitConfig is from whom a leasedVisit takes.
type leasedVisitConfig struct {
	activeLeases *activeLeases
	hosts        *hostTable
	tdmrepCache  *tdmrepCache
	gate         *gate.Gate
	limiter      *politeness.Limiter
	budget       *runBudget
	now          func() time.Time
}

// take begins the use of a lease and of its host, and returns the context of the visit.
func (lv *leasedVisit) take(ctx context.Context, l storage.Lease) context.Context {
	lv.lease = l
	ctx = lv.activeLeases.addLease(ctx, l)
	lv.hosts.acquireHost(l)
	return ctx
}

// clear notes what the visit is cleared for.
func (lv *leasedVisit) clear(cl gate.Clearance) {
	lv.clearance, lv.kind = cl, visitKindOf(lv.lease, cl)
}

// countPage counts the visit in the budget of the run, if it may be made.
func (lv *leasedVisit) countPage() decorum.Decision {
	d := lv.budget.countVisitIfAllowed(lv.kind)
	lv.pageCounted = d.Action == decorum.Proceed
	return d
}

// uncountPage takes back what countPage did: the visit will be repeated.
func (lv *leasedVisit) uncountPage() {
	if lv.pageCounted {
		lv.budget.uncountVisit(lv.kind)
		lv.pageCounted = false
	}
}

// abort ends a visit for which nothing was sent: nothing is held against anybody.
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

// finish ends a visit whose transfer ended at end, before its answer is handled: the address of
// the server is free for another host. What the host itself is owed is decided with the answer.
func (lv *leasedVisit) finish(end time.Time) {
	lv.ended = true
	lv.limiter.ReleaseAfterTransfer(lv.permit, end)
}

// release gives back the lease and the host, and aborts a visit that was given up before its request.
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
	notBefore time.Time                    // of RetryAt and RevisitAt
	history   *storage.VisitHistorySummary // of RevisitAt: what is known of the page by now
	host      *storage.HostState           // nil: the state of its host stays as it is
	// uncleanedURL is what is visited from now on in place of the clean URL, where nothing is.
	// Zero: the URL stays as it is.
	uncleanedURL decorum.URL
	// behindRevisits of RetryAt has the URL, which has not failed, take turns with revisits.
	behindRevisits bool
}

// newAck returns the ack of a lease: as the lease was, but for what follows from the result.
func newAck(l storage.Lease, r leaseOutcome) storage.Ack {
	switch {
	case r.behindRevisits:
		l.PriorityClass = max(l.PriorityClass, storage.ClassNormal)
	case r.outcome == storage.RetryAt:
		l.FailedAttempts++
	case r.outcome == storage.RevisitAt:
		l.FailedAttempts, l.VisitHistorySummary = 0, r.history
		if l.Source != storage.SourcePrerequisite && !isAnnouncedFeed(l) {
			l.Source = storage.SourceRevisit
		}
	}
	if !r.uncleanedURL.IsZero() {
		l.UncleanedURL, l.UseUncleanedURL, l.VisitHistorySummary = r.uncleanedURL, true, nil // what was left there says nothing of another URL
	}
	return storage.Ack{Lease: l, Outcome: r.outcome, NotBefore: r.notBefore, HostState: r.host}
}
