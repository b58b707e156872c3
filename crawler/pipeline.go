package crawler

import (
	"context"
	"errors"
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// step takes one URL through the pipeline: one lease, at most one visit, one ack. Its error stops
// the crawl. ctx ends the waiting for a lease, workCtx ends what is in hand.
func (c *Crawler) step(ctx, workCtx context.Context) error {
	lease, err := c.Frontier.Next(ctx)
	if err != nil {
		return err
	}
	lv := leasedVisit{leasedVisitConfig: c.leasedVisits}
	visitCtx := lv.take(workCtx, lease)
	defer lv.release()
	result, err := c.process(visitCtx, &lv)
	if err != nil && errors.Is(context.Cause(visitCtx), errLeaseExpired) {
		result, err = leaseOutcome{outcome: storage.Requeue}, nil // we broke it off: that ends no crawl
	}
	// What was done is done: the ack must reach the store even when the work is over.
	return errors.Join(err, c.commit(workCtx, lease, result), c.waitlist.wakeReadyHosts(workCtx))
}

// process takes a lease through the pipeline to its result. It never sleeps, and nothing in it
// goes back to an earlier step.
func (c *Crawler) process(ctx context.Context, lv *leasedVisit) (leaseOutcome, error) {
	// Scope, robots.txt and tdmrep.json. Either must come first, and then is what the visit is to.
	clearance, d, err := c.checkScopeAndGetClearance(ctx, lv.lease)
	if err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	if clean, ok := c.pages.cleaner.cleanParamReplacement(lv.lease, clearance, d); ok {
		return c.pages.cleaner.requeueAsCleanURL(ctx, lv.lease, clean)
	}
	if d.Action != decorum.Proceed {
		return c.handleUnvisited(ctx, lv.lease, d)
	}
	lv.clear(clearance)

	// What follows from the robots.txt that has cleared the URL: once.
	if !lv.kind.IsRobots() {
		err := c.prerequisites.queueSitemapsAndUnparkOnce(ctx, clearance.RobotsOrigin(), clearance.FetchSummary())
		if err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	switch {
	case lv.kind == RobotsRefresh:
		return c.pages.outcomes.robotsRefreshResult(), nil
	case c.Settings.DryRun && lv.kind.IsPage():
		return c.skipPageInDryRun(ctx, lv.lease, clearance)
	}
	stored, err := c.ledgerEntries.storeRobotsInLedger(ctx, clearance.RobotsOrigin(), clearance.FetchSummary())
	if err != nil || !stored {
		return leaseOutcome{outcome: storage.Requeue}, err
	}

	// Limits of the host, politeness, limits of the run. What was taken is given back before a
	// refusal is acted on: another URL of the host may be waiting for it.
	d, err = c.reserve(ctx, lv)
	if err != nil {
		lv.abort()
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	if d.Action != decorum.Proceed {
		lv.abort()
		return c.handleUnvisited(ctx, lv.lease, d)
	}
	ticket, err := c.newTicketForLease(lv)
	if err != nil {
		lv.abort()
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	return c.visit(ctx, lv, ticket)
}

// visit makes the visit of a ticket, decides who is to blame if it fails, and has its answer
// handled.
func (c *Crawler) visit(ctx context.Context, lv *leasedVisit, t Ticket) (leaseOutcome, error) {
	if f, ok := c.Fetcher.(VisitResourceReleaser); ok {
		defer f.ReleaseVisitResources(t)
	}
	defer func() { t.data.bodyShare.Close() }() // no step after this uses the body
	lv.mayBeSent = true
	v := c.fetch(ctx, lv, t)
	ledgerErr := c.ledgerEntries.writeLedgerResponse(ctx, v, t)
	c.faults.attributeFault(ctx, v)
	if d := visitAbortReason(v, t, c.now()); d.Action != decorum.Proceed {
		lv.abort()
		return c.handleUnvisited(ctx, lv.lease, d)
	}
	if isLocalFault(v) || v.interrupted && !t.data.sendWasAllowed.Load() {
		lv.uncountPage() // it will be visited again
	}
	c.counters.count(func(s *Stats) { s.countVisit(v) })
	lv.finish(v.End)
	wakeErr := c.waitlist.wakeReadyHosts(ctx) // before the handler takes its time
	result, err := c.dispatch(ctx, v)
	return result, errors.Join(err, wakeErr, ledgerErr)
}

// fetch has the request sent, and returns the visit with what came of it.
func (c *Crawler) fetch(ctx context.Context, lv *leasedVisit, t Ticket) *Visit {
	v := &Visit{Lease: lv.lease, Kind: lv.kind, Clearance: lv.clearance, previousEnd: c.hostTable.lastVisitEnd(lv.lease), Start: c.now()}
	ctx, done := c.activeLeases.beginRequest(ctx, lv.lease, t)
	defer done()
	if v.Err = c.Brakes.CheckStopped(v.host(), v.Start).Err(); v.Err == nil { // from now on it would be broken off
		v.Err = c.budget.checkVisitWithCoordinator(v.Start).Err()
	}
	if v.Err == nil {
		lag := c.faults.timerLag.beginVisit()
		v.Response, v.Err = c.callFetcher(ctx, t)
		v.timerLag = c.faults.timerLag.endVisit() - lag
	}
	v.End = c.now()
	v.takeFromTicket(t)
	if v.Kind.IsPage() {
		c.pages.content.setLazyVisitFields(v)
	}
	d, _ := decorum.DecisionOf(v.Err)
	v.interrupted = v.Response == nil && (ctx.Err() != nil || isLocalFault(v) || t.data.ledgerFailed ||
		errors.Is(v.Err, errNotMarked) || d.Reason == decorum.ReasonBrake || waitsForShared(d.Reason))
	return v
}

// callFetcher lets the fetcher make the request, and catches a panic, of a callback say.
func (c *Crawler) callFetcher(ctx context.Context, t Ticket) (res *decorum.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, c.pages.handlePanic(p, t.URL())
		}
	}()
	return c.Fetcher.Fetch(ctx, t)
}

// dispatch gives an answer to whom it is for: the gate, the reader of sitemaps, or the handler.
func (c *Crawler) dispatch(ctx context.Context, v *Visit) (result leaseOutcome, err error) {
	archiveErr := c.archiveVisit(ctx, v)
	switch v.Kind {
	case TDMRepVisit:
		result, err = c.prerequisites.handleTDMRepResponse(ctx, v)
	case RobotsVisit, RobotsRedirectVisit:
		result, err = c.prerequisites.handleRobots(ctx, v)
	case SitemapVisit:
		result, err = c.prerequisites.handleSitemap(ctx, v)
	default:
		result, err = c.pages.handlePage(ctx, v)
	}
	if v.Response != nil {
		c.budget.addBodyBytes(v.BodyLen())
	}
	var restErr error
	result.host, restErr = c.hostTable.updateHostAfterVisit(ctx, v) // after receiving: a robots.txt may just have asked for a delay
	if c.Hooks.Visited != nil {
		c.Hooks.Visited(c.pages.content.visitWithoutWithheldContent(v))
	}
	return result, errors.Join(archiveErr, err, restErr)
}

// commit records what becomes of a lease.
func (c *Crawler) commit(ctx context.Context, l storage.Lease, r leaseOutcome) error {
	ack := newAck(l, r)
	err := c.hostTable.ackLease(commitContext(ctx), &ack)
	if errors.Is(err, storage.ErrStaleLease) {
		c.Log.Warn("lease ran out during its visit; the URL will be visited again", "url", l.URL)
		err = nil
	}
	if h := ack.HostState; h != nil && h.LostVisitDelay >= minDurableDelay && h.LostVisitDelay > l.HostState.LostVisitDelay {
		err = errors.Join(err, flushUnlessStalled(ctx, c.Frontier.Store()))
	}
	if c.Hooks.Acked != nil {
		c.Hooks.Acked(ack)
	}
	return err
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
	err := c.Archive.Record(ctx, c.pages.content.visitWithoutWithheldContent(v))
	if v.interrupted = err != nil; err == nil || ctx.Err() != nil {
		return nil // it may have been waiting for room on the disk
	}
	return fmt.Errorf("cannot archive %s: %w", v.URL(), err)
}
