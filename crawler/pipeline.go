package crawler

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// step takes one URL through the pipeline: one lease, at most one visit, one ack.
// It stops the crawl with the error it returns. ctx ends the waiting for a
// lease, work ends what is in hand.
func (c *Crawler) step(ctx, workCtx context.Context) error {
	lease, err := c.Frontier.Next(ctx)
	if err != nil {
		return err
	}
	visitCtx := c.activeLeases.addLease(workCtx, lease)
	defer c.activeLeases.removeLease(lease)
	c.hostTable.acquireHost(lease)
	defer c.hostTable.releaseHost(lease)
	defer c.tdmrepCache.releaseLookup(lease)
	ack, err := c.processLease(visitCtx, lease)
	if err != nil && errors.Is(context.Cause(visitCtx), errLeaseExpired) {
		ack, err = storage.Ack{Outcome: storage.Requeue}, nil // we broke it off: that ends no crawl
	}
	ack.Lease = leaseAfterAck(lease, ack)
	// What was done is done: the ack must reach the store even when work is over.
	ackErr := c.ackLease(commitContext(workCtx), &ack)
	if errors.Is(ackErr, storage.ErrStaleLease) {
		c.Log.Warn("lease ran out during its visit; the URL will be visited again", "url", lease.URL)
		ackErr = nil
	}
	if ack.HostState != nil && ack.HostState.LostVisitDelay >= minDurableDelay && ack.HostState.LostVisitDelay > lease.HostState.LostVisitDelay {
		err = errors.Join(err, flushUnlessStalled(workCtx, c.Frontier.Store()))
	}
	if c.Hooks.Acked != nil {
		c.Hooks.Acked(ack)
	}
	return errors.Join(err, ackErr, c.wakeReadyHosts(workCtx))
}

// minDurableDelay is how long a rest is that is made durable at once if it is longer
// than the host's last: a host that asks to be left alone for an hour is left
// alone though the crawl be killed in the next moment. After a crash every host
// has its last rest anyway, so that a rest that stays the same costs nothing.
const minDurableDelay = 10 * time.Second

// flushUnlessStalled makes all that is in a store durable. Where that cannot be for now, or the
// crawl is being halted, it goes the usual way.
func flushUnlessStalled(ctx context.Context, store interface{ Flush(context.Context) error }) error {
	err := store.Flush(ctx)
	if errors.Is(err, storage.ErrWriteStalled) || ctx.Err() != nil {
		return nil
	}
	return err
}

// processLease is the pipeline. It never sleeps, and nothing in it goes back to an
// earlier step.
func (c *Crawler) processLease(ctx context.Context, l storage.Lease) (storage.Ack, error) {
	clearance, d, err := c.checkScopeAndGetClearance(ctx, l)
	if err != nil {
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	if clean, ok := c.cleanParamReplacement(l, clearance, d); ok {
		return c.requeueAsCleanURL(ctx, l, clean)
	}
	if d.Action != decorum.Proceed {
		return c.handleUnvisited(ctx, l, d)
	}
	if !clearance.IsForRobots() {
		if err := c.queueSitemapsAndUnparkOnce(ctx, clearance.RobotsOrigin(), clearance.FetchSummary()); err != nil {
			return storage.Ack{Outcome: storage.Requeue}, err
		}
	}
	kind := visitKindOf(l, clearance)
	if kind == RobotsRefresh {
		return c.robotsRefreshAck(), nil
	}
	if c.Settings.DryRun && kind.IsPage() {
		return c.skipPageInDryRun(ctx, l, clearance)
	}
	if stored, err := c.storeRobotsInLedger(ctx, clearance.RobotsOrigin(), clearance.FetchSummary()); err != nil || !stored {
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	if d := c.checkAndSpendHostBudget(l, kind); d.Action != decorum.Proceed {
		return c.handleUnvisited(ctx, l, d)
	}
	permit, d, err := c.requestPermit(ctx, l, clearance)
	if err != nil {
		c.Gate.CancelFetch(clearance)
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	if d.Action != decorum.Proceed {
		c.Gate.CancelFetch(clearance)
		return c.handleUnvisited(ctx, l, d)
	}
	if d := c.acquireRunBudget(kind); d.Action != decorum.Proceed {
		c.Limiter.ReleaseUnused(c.now(), permit)
		return c.handleUnvisited(ctx, l, d)
	}
	ticket, err := c.newTicketForLease(l, kind, clearance, permit)
	if err != nil {
		c.Limiter.ReleaseUnused(c.now(), permit)
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	return c.performVisit(ctx, l, clearance, permit, ticket)
}

// performVisit makes the visit of a ticket, decides who is to blame if it fails, and handles
// its outcome.
func (c *Crawler) performVisit(ctx context.Context, l storage.Lease, cl gate.Clearance,
	permit politeness.Permit, ticket Ticket) (storage.Ack, error) {
	if f, ok := c.Fetcher.(VisitResourceReleaser); ok {
		defer f.ReleaseVisitResources(ticket)
	}
	defer func() { ticket.data.bodyShare.Close() }() // no step after this uses the body
	v := c.fetch(ctx, l, cl, ticket)
	ledgerErr := c.writeLedgerResponse(ctx, v, ticket)
	c.attributeFault(ctx, v)
	if isLocalFault(v) {
		c.counters.count(func(s *Stats) { s.LocalFaults++ })
		c.countIfBodyMemoryFull(v)
	}
	if d := visitAbortReason(v, ticket, c.now()); d.Action != decorum.Proceed {
		return c.abortUnsentVisit(ctx, v, permit, d)
	}
	if isLocalFault(v) {
		c.releaseRunBudget(v.Kind) // the visit will be repeated
	}
	ack, err := c.handleOutcome(ctx, v, permit)
	return ack, errors.Join(err, ledgerErr)
}

// handleOutcome follows what came of a visit.
func (c *Crawler) handleOutcome(ctx context.Context, v *Visit, permit politeness.Permit) (storage.Ack, error) {
	c.counters.count(func(s *Stats) { s.countVisit(v) })
	c.Limiter.ReleaseAfterTransfer(permit, v.End)
	wakeErr := c.wakeReadyHosts(ctx) // before the handler takes its time
	ack, err := c.dispatchResponse(ctx, v)
	return ack, errors.Join(err, wakeErr)
}

// checkScopeAndGetClearance asks scope again, and the robots gate: for the URL, or for its
// robots.txt if that must come first, or for a hop of somebody's robots.txt; and
// tdmrep.json, if the crawl has a purpose of which that speaks. The Clearance is valid if the
// Decision is to Proceed.
func (c *Crawler) checkScopeAndGetClearance(ctx context.Context, l storage.Lease) (clearance gate.Clearance, d decorum.Decision, err error) {
	entry := l.Entry
	entry.URL = urlToVisit(l.Entry)
	err = c.Frontier.CheckScope(entry) // it may be narrower than when the URL was found
	switch {
	case err != nil:
	case !l.RobotsFor.IsZero():
		clearance, err = c.Gate.CheckRobotsRedirect(ctx, c.now(), l.URL, l.RobotsFor)
	default:
		clearance, err = c.Gate.Check(ctx, c.now(), urlToVisit(l.Entry))
	}
	if err != nil {
		d, err = RefusalDecision(err)
		return gate.Clearance{}, d, err
	}
	if !l.RobotsFor.IsZero() {
		return clearance, decorum.Decision{}, nil
	}
	return c.tdmrepClearance(ctx, l, clearance)
}

// acquireRunBudget counts a page that is about to be visited, if it, or a sitemap, may be: by the
// limits of the run.
func (c *Crawler) acquireRunBudget(kind VisitKind) decorum.Decision {
	switch {
	case kind.IsRobots():
	case c.Settings.MaxReceivedBytes > 0 && c.bodyBytesReceived.Load() >= c.Settings.MaxReceivedBytes:
		return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonByteLimit, Cause: ErrBytes}
	case kind.IsPage():
		return c.acquireCrawlPageBudget()
	}
	return decorum.Decision{}
}

// releaseRunBudget takes back the counting of a visit that was not made.
func (c *Crawler) releaseRunBudget(kind VisitKind) {
	if kind.IsPage() {
		c.releaseCrawlPageBudget()
	}
}

// handleUnvisited says what becomes of a URL that is not visited now, and does it. That cost the
// host nothing.
func (c *Crawler) handleUnvisited(ctx context.Context, l storage.Lease, d decorum.Decision) (storage.Ack, error) {
	if c.Hooks.VisitRefused != nil {
		c.Hooks.VisitRefused(l, d)
	}
	if err := c.writeLedgerRefusal(ctx, l, d); err != nil {
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	if d.Action == decorum.Refuse {
		return c.handleRefused(ctx, l, d)
	}
	switch d.Reason {
	case decorum.ReasonRobotsPending, decorum.ReasonRobotsUnreachable:
		return c.handlePostponed(ctx, l, d)
	case decorum.ReasonHostPages, decorum.ReasonHostBytes:
		return c.requeueOverHostBudget(ctx, l, d.Until)
	case decorum.ReasonBrake:
		return c.postponeBrakedLease(ctx, l, d)
	case decorum.ReasonHostRest:
		return c.requeueAndDelayHostAck(l, d.Rest), nil
	case decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate, decorum.ReasonOtherProcesses:
		return c.postponeBusyLease(ctx, l, d.Until)
	case decorum.ReasonNetwork, decorum.ReasonLocalFailure: // it is asked again when a lease is to be had
		return storage.Ack{Outcome: storage.Requeue}, nil
	case decorum.ReasonPageLimit, decorum.ReasonByteLimit:
		return storage.Ack{Outcome: storage.Requeue}, d.Err()
	}
	return c.requeueAndHoldOrigin(ctx, l, d.Until, d.Action == decorum.Suspend)
}

// handleRefused parks a URL that is refused, or gives it up.
func (c *Crawler) handleRefused(ctx context.Context, l storage.Lease, d decorum.Decision) (storage.Ack, error) {
	if refusal, ok := errors.AsType[*gate.Refusal](d.Cause); ok {
		if err := c.applyRobotsAfterDisallow(ctx, l.URL.Origin(), refusal.FetchSummary); err != nil {
			return storage.Ack{Outcome: storage.Requeue}, err
		}
		c.counters.count(func(s *Stats) { s.BlockedURLs++ })
		return storage.Ack{Outcome: storage.Park}, nil
	}
	if redirect, ok := errors.AsType[*gate.RedirectDisallowedError](d.Cause); ok {
		return storage.Ack{Outcome: storage.Drop}, c.followRobotsRedirectOrSetHold(ctx, l.URL, redirect.Result, nil)
	}
	if d.Reason == decorum.ReasonDropped {
		return storage.Ack{Outcome: storage.Drop}, nil
	}
	return storage.Ack{Outcome: storage.Park}, nil
}

// requeueAndDelayHostAck gives back a lease whose host has to rest for so long, from now on.
func (c *Crawler) requeueAndDelayHostAck(l storage.Lease, delay time.Duration) storage.Ack {
	host := c.hostTable.updateState(l, func(h storage.HostState) storage.HostState {
		h.Due, h.LostVisitDelay = timecmp.Later(h.Due, c.now().Add(delay)), max(h.LostVisitDelay, delay)
		return h
	})
	return storage.Ack{Outcome: storage.Requeue, HostState: &host}
}

// recheckDelay is when a worker that found a robots.txt being looked up by another
// has the gate asked again. Its hold may come after the one that the other
// lifted, so it is short.
const recheckDelay = 5 * time.Second

// handlePostponed puts off a URL whose origin is closed, and queues the hop that its
// robots.txt waits for.
func (c *Crawler) handlePostponed(ctx context.Context, l storage.Lease, d decorum.Decision) (storage.Ack, error) {
	until, o := d.Until, l.URL.Origin()
	if d.Reason == decorum.ReasonRobotsPending { // another worker is looking it up
		until = timecmp.Earlier(until, c.now().Add(recheckDelay))
	}
	postponed, ok := errors.AsType[*gate.OriginPostponedError](d.Cause)
	if ok && !postponed.RedirectURL.IsZero() {
		if err := c.queueRobotsRedirect(ctx, o.RobotsURL(), o, postponed); err != nil {
			return storage.Ack{Outcome: storage.Requeue}, err
		}
	}
	return c.requeueAndHoldOrigin(ctx, l, until, d.Action == decorum.Suspend)
}

// fetch makes the visit.
func (c *Crawler) fetch(ctx context.Context, l storage.Lease, cl gate.Clearance, t Ticket) *Visit {
	v := &Visit{Lease: l, Kind: t.Kind(), Clearance: cl, previousEnd: c.hostTable.lastVisitEnd(l), Start: c.now()}
	host := cl.URL().Origin().Host()
	ctx, done := c.activeLeases.beginRequest(ctx, l, t)
	defer done()
	if v.Err = c.Brakes.CheckStopped(host, v.Start).Err(); v.Err == nil { // from now on it would be broken off
		v.Err = c.checkVisitWithCoordinator(v.Start).Err()
	}
	if v.Err == nil {
		lag := c.timerLag.beginVisit()
		v.Response, v.Err = c.callFetcher(ctx, t)
		v.timerLag = c.timerLag.endVisit() - lag
	}
	v.End, v.Exchange, v.unsafeSendRecorded = c.now(), t.data.exchange, t.isUnsafeSendRecorded()
	v.hostSlots = t.data.permit.HostSlots()
	if addr := t.data.remoteAddr.Load(); addr != nil {
		v.remoteAddr = *addr
	}
	if v.Response != nil {
		v.Start, v.End = v.Response.Start, v.Response.End
	}
	v.bodyShare, v.bodySHA256 = t.data.bodyShare, lazyBodySHA256(v.Response)
	if v.Response != nil && t.data.bodySpool != nil {
		v.bodySpool, v.bodySHA256 = t.data.bodySpool, t.data.bodySpool.SHA256
	}
	if v.Kind.IsPage() {
		c.setLazyVisitFields(v)
	}
	d, _ := decorum.DecisionOf(v.Err)
	v.interrupted = v.Response == nil && (ctx.Err() != nil || isLocalFault(v) || t.data.ledgerFailed ||
		errors.Is(v.Err, errNotMarked) || d.Reason == decorum.ReasonBrake)
	return v
}

// callFetcher lets the fetcher make the request, and catches a panic: of a callback, if
// the fetcher calls any.
func (c *Crawler) callFetcher(ctx context.Context, t Ticket) (res *decorum.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, c.handlePanic(p, t.URL())
		}
	}()
	return c.Fetcher.Fetch(ctx, t)
}
