package crawler

import (
	"context"
	"errors"
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// step takes one URL through the pipeline: one lease, at most one visit, one ack. An error stops
// the crawl. ctx bounds the wait for a lease, workCtx bounds the visit.
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
		result, err = leaseOutcome{outcome: storage.Requeue}, nil // an expired lease does not stop the crawl
	}
	// The ack must reach the store even after workCtx is done: the visit was made.
	return errors.Join(err, c.commit(workCtx, &lv, result), c.waitlist.wakeReadyHosts(workCtx))
}

// process takes a lease through the pipeline to its outcome, each step once. It never sleeps.
func (c *Crawler) process(ctx context.Context, lv *leasedVisit) (leaseOutcome, error) {
	// Check scope, robots.txt and tdmrep.json. A file that must come first becomes this visit's target.
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

	// Act on the robots.txt that cleared the URL, once for each version of that file.
	if !lv.kind.IsRobots() {
		err := c.prerequisites.queueSitemapsAndUnparkOnce(ctx, clearance.RobotsOrigin(), clearance.FetchSummary())
		if err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	if lv.kind.IsPage() {
		if err := c.prerequisites.trySitemapXMLOnce(ctx, lv.lease.URL, clearance.FetchSummary()); err != nil {
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

	// Reserve: the host's budget, politeness, the run's budget. abort returns what was reserved
	// before handleUnvisited runs, because another URL of the host may be waiting for it.
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

// visit makes the visit of a ticket, attributes a failure to the host or to this machine, and
// dispatches the answer.
func (c *Crawler) visit(ctx context.Context, lv *leasedVisit, t Ticket) (leaseOutcome, error) {
	if f, ok := c.Fetcher.(VisitResourceReleaser); ok {
		defer f.ReleaseVisitResources(t)
	}
	defer func() { t.data.bodyShare.Close() }() // no later step uses the body
	lv.mayBeSent = true
	v := c.fetch(ctx, lv, t)
	ledgerErr := c.ledgerEntries.writeLedgerResponse(ctx, v, t)
	c.faults.attributeFault(ctx, v)
	if d := visitAbortReason(v, t, c.now()); d.Action != decorum.Proceed {
		lv.abort()
		c.countAbortedConnection(v)
		return c.handleUnvisited(ctx, lv.lease, d)
	}
	if isLocalFault(v) || v.interrupted && !t.data.sendWasAllowed.Load() {
		lv.uncountPage() // the URL will be visited again
	}
	c.counters.count(func(s *Stats) { s.countVisit(v) })
	lv.finish(v.End)
	wakeErr := c.waitlist.wakeReadyHosts(ctx) // now, because the handler may take long
	result, err := c.dispatch(ctx, v)
	c.pages.releaseLinkBuffer(v)                // no later step uses the links
	if errors.Is(v.Err, errOtherProductToken) { // every visit would fail: the run ends, and keeps its URLs
		err = errors.Join(err, v.Err)
	}
	return result, errors.Join(err, wakeErr, ledgerErr)
}

// countAbortedConnection counts what the connection of an aborted visit cost its host, which got no request:
// the connection may have been opened for it, or may carry other visits over HTTP/2.
func (c *Crawler) countAbortedConnection(v *Visit) {
	traffic := v.Connection.traffic()
	c.counters.count(func(s *Stats) { s.HostTraffic.Add(traffic) })
	c.hostTable.addTraffic(v.Lease, traffic)
	if c.Hooks.VisitAborted != nil && traffic != (HostTraffic{}) {
		c.Hooks.VisitAborted(v.Lease, traffic)
	}
}

// fetch makes the request of a ticket and returns its Visit.
func (c *Crawler) fetch(ctx context.Context, lv *leasedVisit, t Ticket) *Visit {
	v := &Visit{Lease: lv.lease, Kind: lv.kind, Clearance: lv.clearance,
		previousEnd: c.hostTable.lastVisitEnd(lv.lease), Start: c.now()}
	ctx, done := c.activeLeases.beginRequest(ctx, lv.lease, t)
	defer done()
	// A brake that is set after this check cancels the request: see onBrakesChanged.
	if v.Err = c.Brakes.CheckStopped(v.host(), v.Start).Err(); v.Err == nil {
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
		errors.Is(v.Err, errNotMarked) || errors.Is(v.Err, errOtherProductToken) ||
		d.Reason == decorum.ReasonBrake || waitsForShared(d.Reason))
	return v
}

// callFetcher calls the Fetcher, and returns a panic, for example of a callback, as an error.
func (c *Crawler) callFetcher(ctx context.Context, t Ticket) (res *decorum.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, c.pages.handlePanic(p, t.URL())
		}
	}()
	return c.Fetcher.Fetch(ctx, t)
}

// dispatch passes an answer to its receiver: the gate, the sitemap reader, or the handler.
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
	// This follows the answer, because a robots.txt may just have set a Crawl-delay.
	result.host, result.learnedSlowerPace, restErr = c.hostTable.updateHostAfterVisit(ctx, v)
	if c.Hooks.Visited != nil {
		c.Hooks.Visited(c.pages.content.visitWithoutWithheldContent(v))
	}
	return result, errors.Join(archiveErr, err, restErr)
}

// commit acks a lease in the store.
func (c *Crawler) commit(ctx context.Context, lv *leasedVisit, r leaseOutcome) error {
	l := lv.lease
	ack := newAck(l, r)
	err := c.hostTable.ackLease(commitContext(ctx), &ack)
	c.announceNextVisit(commitContext(ctx), l.URL.Origin().Host(), ack.HostState)
	if errors.Is(err, storage.ErrStaleLease) {
		c.Log.Warn("lease ran out during its visit; the URL will be visited again", "url", l.URL)
		lv.uncountPage()
		err = nil
	}
	if h := ack.HostState; h != nil && (r.learnedSlowerPace || h.LostVisitDelay >= minDurableDelay &&
		h.LostVisitDelay > l.HostState.LostVisitDelay) {
		err = errors.Join(err, flushUnlessStalled(ctx, c.Frontier.Store()))
	}
	if c.Hooks.Acked != nil {
		c.Hooks.Acked(ack)
	}
	return err
}

// archiveVisit writes v to the Archive. A visit that it cannot write is interrupted: it is made again.
func (c *Crawler) archiveVisit(ctx context.Context, v *Visit) error {
	if c.Archive == nil || v.interrupted {
		return nil
	}
	if v.Exchange != nil { // the archive builds its record in memory
		v.bodyShare.Charge(int64(len(v.Exchange.RawResponse)))
		defer v.bodyShare.Release(int64(len(v.Exchange.RawResponse)))
	}
	err := c.Archive.Record(ctx, c.pages.content.visitWithoutWithheldContent(v))
	if v.interrupted = err != nil; err == nil || ctx.Err() != nil {
		return nil // the archive may have been waiting for disk space
	}
	return fmt.Errorf("cannot archive %s: %w", v.URL(), err)
}
