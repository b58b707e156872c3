package crawler

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// suspendDuration is how long an origin is set aside for a reason of our own, until it
// is looked at again. That costs no request: the reason may be gone by then.
const suspendDuration = time.Minute

// maxWindowWait is for how long a host is left alone at a time that is outside
// its hours: they may be changed meanwhile, or the clocks.
const maxWindowWait = 10 * time.Minute

// requestPermit asks for a permit: the host must be within its hours, and due, by the
// store's clock and by the limiter's, which knows of other crawls, and so must its
// address. Where the rest that the store knows of is shorter than the Crawl-delay
// that is known now (another crawl learnt it, a crash came between learning it and
// the ack, or it is for other hours), the host rests for that first. An error says that
// something could not be read.
func (c *Crawler) requestPermit(ctx context.Context, l storage.Lease,
	cl gate.Clearance) (politeness.Permit, decorum.Decision, error) {
	origin, now := cl.URL().Origin(), c.now()
	if d := c.checkVisitWithCoordinator(now); d.Action != decorum.Proceed {
		return politeness.Permit{}, d, nil
	}
	policy := c.politenessPolicyOf(origin.Host(), now)
	delay, opensAt, err := c.hostDelayAndNextAllowedTime(ctx, origin, now)
	if err != nil {
		return politeness.Permit{}, decorum.Decision{}, err
	}
	if d := VisitHoursDecision(policy, opensAt, now); d.Action != decorum.Proceed {
		return politeness.Permit{}, d, nil
	}
	if d := CrawlDelayDecision(policy, delay, now); d.Action != decorum.Proceed && !cl.IsForRobots() {
		return politeness.Permit{}, d, nil
	}
	brake, d := c.checkBrake(l, origin.Host(), now)
	if d.Action != decorum.Proceed {
		return politeness.Permit{}, d, nil
	}
	if l.HostState.LostVisitDelay < delay {
		return politeness.Permit{}, politeness.HostRestDecision(now, delay), nil
	}
	if err := c.HostDueStore.applyStoredHostDue(ctx, c.Limiter, origin.Host(), now); err != nil {
		return politeness.Permit{}, decorum.Decision{}, err
	}
	slots := min(max(l.HostState.Slots, 1), policy.Concurrency) // it may have been lowered since
	if delay > 0 || brake.Delay > 0 {
		slots = 1 // DELAY-12; what the store says may be of before it was learnt
	}
	lastWaiting, lastBraked := c.originsAwaitingPermit.lastArrivalNumber(), c.brakedOrigins.lastArrivalNumber()
	permit, d := c.Limiter.Reserve(now, origin.Host(),
		politeness.PermitRequest{NotBefore: l.HostState.Due, HostSlots: slots, Delay: max(policy.Delay, delay, brake.Delay)})
	if waitsForShared(d.Reason) && brake.Delay > 0 {
		d = brake.Decision(d.Until) // if it is lifted, it may be sooner
	}
	if d.Action == decorum.Proceed { // what waits for this permit to come back came after it was asked for
		c.originsAwaitingPermit.removeUnlessNewer(l.URL.Origin(), lastWaiting)
		c.brakedOrigins.removeUnlessNewer(l.URL.Origin(), lastBraked)
	}
	return permit, d, nil
}

// requeueAndHoldOrigin gives a lease back whose origin is not to be asked before until, for a
// reason that is not its host's rest: the host's clock stays as it is.
func (c *Crawler) requeueAndHoldOrigin(ctx context.Context, l storage.Lease, until time.Time, suspended bool) (storage.Ack, error) {
	if l.RobotsFor == l.URL.Origin() { // a robots.txt hop goes ahead of any hold of its own origin
		return storage.Ack{Outcome: storage.RetryAt, NotBefore: timecmp.Earlier(until, c.now().Add(recheckDelay))}, nil
	}
	return storage.Ack{Outcome: storage.Requeue}, c.Frontier.Hold(ctx, l.URL.Origin(), until, suspended)
}

// abortUnsentVisit takes back a visit that was refused when it was about to connect, as
// visitAbortReason says: nothing was sent, and nothing is held against anybody.
func (c *Crawler) abortUnsentVisit(ctx context.Context, v *Visit, permit politeness.Permit, d decorum.Decision) (storage.Ack, error) {
	c.Limiter.ReleaseUnused(c.now(), permit)
	c.Gate.CancelFetch(v.Clearance)
	c.releaseRunBudget(v.Kind)
	return c.handleUnvisited(ctx, v.Lease, d)
}

// updateHostAfterVisit says when the host may be visited again after v, and remembers it. If
// the delay that the host asks for cannot be read, the rest is at least as long
// as the last.
func (c *Crawler) updateHostAfterVisit(ctx context.Context, v *Visit) (*storage.HostState, error) {
	origin := v.URL().Origin()
	policy := c.politenessPolicyOf(origin.Host(), v.End)
	delay, _, err := c.hostDelayAndNextAllowedTime(commitContext(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.HostState.LostVisitDelay
	}
	visit := politeness.FinishedVisit{
		Host: origin.Host(), Start: v.Start, End: v.End, Status: v.Status(),
		CrawlDelay: delay,
	}
	bytes := 0
	if v.Response != nil {
		visit.RetryAfter = v.Response.RetryAfter(v.End)
		bytes = v.BodyLen()
	}
	uncharged := v.interrupted || v.wasNeverSent() // it says nothing of the server
	if uncharged {
		visit.Status = http.StatusOK
	}
	host := c.hostTable.updateState(v.Lease, func(h storage.HostState) storage.HostState {
		visit.ConsecutiveFailures = h.ConsecutiveFailures
		if uncharged {
			visit.ConsecutiveFailures++ // what a success takes off
		}
		next := policy.NextVisit(visit)
		c.Limiter.SetNextVisitAndCountBytes(origin.Host(), next, bytes)
		due := timecmp.Later(h.Due, next.Due) // another visit may have earned it a longer rest
		h.Due, h.LostVisitDelay, h.Slots, h.ConsecutiveFailures = due, due.Sub(v.End), next.HostSlots, next.ConsecutiveFailures
		return h
	})
	err = errors.Join(err, c.HostDueStore.saveHostDueIfLongDelay(commitContext(ctx), origin.Host(), host))
	c.hostTable.countVisit(v, delay, policy.Delay)
	if why := suspendReason(policy, visit); why != "" {
		c.Log.Warn("host set aside: "+why, "host", origin.Host(), "until", host.Due)
		err = errors.Join(err, c.suspendHost(commitContext(ctx), origin, host.Due))
	}
	return &host, err
}

// politenessPolicyOf returns the policy for host, and tells once that an override of it
// has expired.
func (c *Crawler) politenessPolicyOf(host string, now time.Time) politeness.Policy {
	if o, ok := c.Policy.HostOverrides[host]; ok && o.Expired(now) {
		if _, warned := c.loggedExpiredOverrides.LoadOrStore(host, true); !warned {
			c.Log.Warn("the override of a host has expired and is not applied", "host", host,
				"expired", o.Expires, "reason", o.Reason)
		}
	}
	return c.Policy.ForHost(host, now)
}

// logClosedWindowAndOverrides logs whether the crawl has to wait for its hours, which overrides are
// in force, and which no longer are.
func (c *Crawler) logClosedWindowAndOverrides(now time.Time) {
	if w := c.Policy.VisitWindow; !w.IsOpen(now) {
		c.Log.Info("outside the hours of visits", "window", w, "opens", w.NextOpen(now))
	}
	for _, host := range slices.Sorted(maps.Keys(c.Policy.HostOverrides)) {
		policy, o := c.politenessPolicyOf(host, now), c.Policy.HostOverrides[host]
		if o.Expired(now) {
			continue
		}
		expires := "never"
		if !o.Expires.IsZero() {
			expires = o.Expires.Format(time.RFC3339)
		}
		c.Log.Info("the policy is overridden for a host", "host", host, "delay", max(policy.Delay, 0),
			"adaptive", max(policy.AdaptiveFactor, 0), "concurrency", policy.Concurrency, "window", policy.VisitWindow,
			"reason", cmp.Or(o.Reason, "none given"), "expires", expires)
	}
}

// skipPageInDryRun ends the walk of a page in a run that scouts: all has been asked that is
// asked before a visit, but for what time will tell. The page counts as done, and
// its host's clock stays as it is.
func (c *Crawler) skipPageInDryRun(ctx context.Context, l storage.Lease, cl gate.Clearance) (storage.Ack, error) {
	origin, now := cl.URL().Origin(), c.now()
	delay, _, err := c.hostDelayAndNextAllowedTime(ctx, origin, now)
	if err != nil {
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	if d := CrawlDelayDecision(c.politenessPolicyOf(origin.Host(), now), delay, now); d.Action != decorum.Proceed {
		return c.handleUnvisited(ctx, l, d)
	}
	if c.Hooks.SkippedInDryRun != nil {
		c.Hooks.SkippedInDryRun(l, cl)
	}
	return storage.Ack{Outcome: storage.Done}, nil
}

// CrawlDelayDecision returns to Suspend the pages of a host that asks for a longer rest than the
// policy lets the crawl wait for, as it says.
func CrawlDelayDecision(policy politeness.Policy, delay time.Duration, now time.Time) decorum.Decision {
	if delay <= policy.MaxCrawlDelay {
		return decorum.Decision{}
	}
	return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonCrawlDelay,
		Until: now.Add(suspendDuration), Rest: delay, Limit: int64(policy.MaxCrawlDelay)}
}

// suspendReason says why a host asks for a longer rest than the crawl waits for;
// empty if it does not.
func suspendReason(p politeness.Policy, v politeness.FinishedVisit) string {
	switch {
	case v.RetryAfter > p.MaxRetryAfter:
		return "it asks to be left alone for longer than the crawl waits"
	case v.CrawlDelay > p.MaxCrawlDelay:
		return "its Crawl-delay is longer than max_crawl_delay"
	}
	return ""
}

// suspendHost lets nobody wait for the host of o until then. Holds are of
// origins, and the rest is the host's: while one of them were only not due, a
// crawl would wait for all.
func (c *Crawler) suspendHost(ctx context.Context, o decorum.Origin, until time.Time) error {
	if err := c.Frontier.Hold(ctx, o, until, true); err != nil {
		return err
	}
	others, err := c.defaultPortAndNotedOrigins(ctx, o.Host())
	for _, other := range others {
		if err == nil && other != o {
			err = c.Frontier.HoldOriginIfKnown(ctx, other, until, true)
		}
	}
	return err
}

// ShouldStaySuspended reports whether an origin that an earlier run has set aside is of a
// host that is not due, and asks for a longer rest than this run waits for.
func (c *Crawler) ShouldStaySuspended(o storage.OriginInfo) bool {
	now := c.now()
	policy := c.Policy.ForHost(o.Origin.Host(), now)
	return o.HostState.Due.After(now) &&
		(o.HostState.LostVisitDelay > policy.MaxRetryAfter || DecodeHostStats(o.HostState.EncodedStats).CrawlDelay > policy.MaxCrawlDelay)
}
