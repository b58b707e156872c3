package crawler

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// handleUnvisited says what becomes of a URL that is not visited now, and does it. That cost the
// host nothing.
func (c *Crawler) handleUnvisited(ctx context.Context, l storage.Lease, d decorum.Decision) (leaseOutcome, error) {
	if c.Hooks.VisitRefused != nil {
		c.Hooks.VisitRefused(l, d)
	}
	if err := c.ledgerEntries.writeLedgerRefusal(ctx, l, d); err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
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
		return c.waitlist.postponeBrakedLease(ctx, l, d)
	case decorum.ReasonHostRest:
		return c.hostTable.requeueAndDelayHost(l, d.Rest), nil
	case decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate, decorum.ReasonOtherProcesses:
		return c.waitlist.postponeBusyLease(ctx, l, d.Until)
	case decorum.ReasonVisitHours:
		return c.waitlist.requeueAndHoldOrigin(ctx, l, timecmp.Earlier(d.Until, c.now().Add(maxWindowWait)), false)
	case decorum.ReasonNetwork, decorum.ReasonLocalFailure: // it is asked again when a lease is to be had
		return leaseOutcome{outcome: storage.Requeue}, nil
	case decorum.ReasonPageLimit, decorum.ReasonByteLimit:
		return leaseOutcome{outcome: storage.Requeue}, d.Err()
	}
	return c.waitlist.requeueAndHoldOrigin(ctx, l, d.Until, d.Action == decorum.Suspend)
}

// handleRefused parks a URL that is refused, or gives it up.
func (c *Crawler) handleRefused(ctx context.Context, l storage.Lease, d decorum.Decision) (leaseOutcome, error) {
	switch d.Reason {
	case decorum.ReasonRobots, decorum.ReasonTDMRep:
		refusal, _ := errors.AsType[*gate.Refusal](d.Cause)
		if err := c.prerequisites.applyRobotsAfterDisallow(ctx, l.URL.Origin(), refusal.FetchSummary); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
		c.counters.count(func(s *Stats) { s.BlockedURLs++ })
	case decorum.ReasonRobotsRedirect:
		redirect, _ := errors.AsType[*gate.RedirectDisallowedError](d.Cause)
		return leaseOutcome{outcome: storage.Drop}, c.prerequisites.followRobotsRedirectOrSetHold(ctx, l.URL, redirect.FetchResult, nil)
	case decorum.ReasonDropped:
		return leaseOutcome{outcome: storage.Drop}, nil
	}
	return leaseOutcome{outcome: storage.Park}, nil
}

// recheckDelay is when a worker that found a robots.txt being looked up by another
// has the gate asked again. Its hold may come after the one that the other
// lifted, so it is short.
const recheckDelay = 5 * time.Second

// handlePostponed puts off a URL whose origin is closed, and queues the redirect that its
// robots.txt waits for.
func (c *Crawler) handlePostponed(ctx context.Context, l storage.Lease, d decorum.Decision) (leaseOutcome, error) {
	until, o := d.Until, l.URL.Origin()
	if d.Reason == decorum.ReasonRobotsPending { // another worker is looking it up
		until = timecmp.Earlier(until, c.now().Add(recheckDelay))
	}
	postponed, ok := errors.AsType[*gate.OriginPostponedError](d.Cause)
	if ok && !postponed.RedirectURL.IsZero() {
		if err := c.prerequisites.queueRobotsRedirect(ctx, o.RobotsURL(), o, postponed); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	return c.waitlist.requeueAndHoldOrigin(ctx, l, until, d.Action == decorum.Suspend)
}

// requeueOverHostBudget gives back a page whose host has used up its budget, but not to the
// head of the queue: the next lease of its origin may be a revisit, which is
// welcome and takes turns with URLs of ClassNormal. When no visit was made since
// the last time, the origin as a whole is set aside, and not one URL after the
// other.
func (c *Crawler) requeueOverHostBudget(ctx context.Context, l storage.Lease, until time.Time) (leaseOutcome, error) {
	result := leaseOutcome{outcome: storage.RetryAt, notBefore: c.now(), behindRevisits: true}
	if l.PriorityClass < storage.ClassNormal || !c.hostTable.markOverBudget(l) {
		return result, nil // what goes before revisits is only handed out so once
	}
	return result, c.Frontier.Hold(ctx, l.URL.Origin(), until, true)
}

// skipPageInDryRun ends the way of a page in a dry run: all has been asked that is
// asked before a visit, but for what time will tell. The page counts as done, and
// its host's clock stays as it is.
func (c *Crawler) skipPageInDryRun(ctx context.Context, l storage.Lease, cl gate.Clearance) (leaseOutcome, error) {
	origin, now := cl.URL().Origin(), c.now()
	delay, _, err := c.hostTable.crawlDelays.hostDelayAndNextAllowedTime(ctx, origin, now)
	if err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	if d := CrawlDelayDecision(c.hostTable.politenessPolicyOf(origin.Host(), now), delay, now); d.Action != decorum.Proceed {
		return c.handleUnvisited(ctx, l, d)
	}
	if c.Hooks.SkippedInDryRun != nil {
		c.Hooks.SkippedInDryRun(l, cl)
	}
	return leaseOutcome{outcome: storage.Done}, nil
}
