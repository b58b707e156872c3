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

// handleUnvisited carries out a decision not to visit l now, and returns its outcome. The host's
// clock is unchanged, because nothing was sent.
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
	case decorum.ReasonNetwork, decorum.ReasonLocalFailure: // the frontier leases the URL again when it may
		return leaseOutcome{outcome: storage.Requeue}, nil
	case decorum.ReasonPageLimit, decorum.ReasonByteLimit:
		return leaseOutcome{outcome: storage.Requeue}, d.Err()
	}
	return c.waitlist.requeueAndHoldOrigin(ctx, l, d.Until, d.Action == decorum.Suspend)
}

// handleRefused parks or drops a URL that is refused, after applying the robots.txt that refused
// it.
func (c *Crawler) handleRefused(ctx context.Context, l storage.Lease, d decorum.Decision) (leaseOutcome, error) {
	switch d.Reason {
	case decorum.ReasonRobots, decorum.ReasonTDMRep:
		refusal, _ := errors.AsType[*gate.Refusal](d.Cause)
		if err := c.prerequisites.applyRobotsAfterDisallow(ctx, l.URL.Origin(), refusal.FetchSummary); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
		c.counters.count(func(s *Stats) { s.BlockedURLs++ })
		if err := c.pages.requeueTwinOnHTTP(ctx, l.Entry); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	case decorum.ReasonRobotsRedirect:
		redirect, _ := errors.AsType[*gate.RedirectDisallowedError](d.Cause)
		return leaseOutcome{outcome: storage.Drop},
			c.prerequisites.followRobotsRedirectOrSetHold(ctx, l.URL, l.Source, redirect.FetchResult, nil)
	case decorum.ReasonDropped:
		return leaseOutcome{outcome: storage.Drop}, nil
	}
	return leaseOutcome{outcome: storage.Park}, nil
}

// recheckDelay is how long a worker waits before it asks the gate again about a robots.txt that
// another worker is fetching. It is short, because its hold may be set after the other worker has
// released the origin.
const recheckDelay = 5 * time.Second

// handlePostponed holds an origin whose robots.txt is unknown, and queues the redirect target that
// its robots.txt waits for.
func (c *Crawler) handlePostponed(ctx context.Context, l storage.Lease, d decorum.Decision) (leaseOutcome, error) {
	until, o := d.Until, l.URL.Origin()
	if d.Reason == decorum.ReasonRobotsPending { // another worker is fetching it
		until = timecmp.Earlier(until, c.now().Add(recheckDelay))
	}
	postponed, ok := errors.AsType[*gate.OriginPostponedError](d.Cause)
	if ok && !postponed.RedirectURL.IsZero() {
		if err := c.prerequisites.queueRobotsRedirect(ctx, o.RobotsURL(), o, postponed); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	suspended := d.Action == decorum.Suspend
	if !suspended && d.Reason == decorum.ReasonRobotsUnreachable && mayGiveUpDeadTwin(l.Source) {
		var err error
		if suspended, err = IsDeadTwin(ctx, c.Gate, o); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	return c.waitlist.requeueAndHoldOrigin(ctx, l, until, suspended)
}

// requeueOverHostBudget requeues a page whose host has used up its budget, but not at the head of
// the queue: the next lease of the origin may be a revisit, which the budget allows and which takes
// turns with URLs of ClassNormal. If no visit was made since the last such page, only such pages
// are left, and the whole origin is suspended.
func (c *Crawler) requeueOverHostBudget(ctx context.Context, l storage.Lease, until time.Time) (leaseOutcome, error) {
	result := leaseOutcome{outcome: storage.RetryAt, notBefore: c.now(), behindRevisits: true}
	if l.PriorityClass < storage.ClassNormal || !c.hostTable.markOverBudget(l) {
		return result, nil // a higher class is lowered to ClassNormal by behindRevisits
	}
	return result, c.Frontier.Hold(ctx, l.URL.Origin(), until, true)
}

// skipPageInDryRun acks a page of a dry run as done, after all checks that do not depend on time.
// The host's clock is unchanged.
func (c *Crawler) skipPageInDryRun(ctx context.Context, l storage.Lease, cl gate.Clearance) (leaseOutcome, error) {
	origin, now := cl.URL().Origin(), c.now()
	delay, _, err := c.hostTable.crawlDelays.hostDelayAndNextAllowedTime(ctx, origin, now)
	if err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	if d := CrawlDelayDecision(
		c.hostTable.politenessPolicyOf(origin.Host(), now), delay, now,
	); d.Action != decorum.Proceed {
		return c.handleUnvisited(ctx, l, d)
	}
	if c.Hooks.SkippedInDryRun != nil {
		c.Hooks.SkippedInDryRun(l, cl)
	}
	return leaseOutcome{outcome: storage.Done}, nil
}
