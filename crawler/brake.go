package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// maxBrakeHold is for how long an origin is put off by a brake: then it is asked again
// whether it still is, which costs no request. Who put it off lets it come when the
// brake is lifted; but of several processes, that one may have died by then.
const maxBrakeHold = 10 * time.Minute

// checkBrake returns the brake that slows l's host, if one does, and whether the host may be
// visited now as far as brakes go. The rest that a brake asks for
// is no debt of the host's: it is asked for before a visit, and counts from the
// end of the last, so that it holds for a rest that has begun, and not for one
// that has begun when it is lifted.
func (c *Crawler) checkBrake(l storage.Lease, host string, now time.Time) (politeness.Brake, decorum.Decision) {
	b, ok := c.Brakes.ForHost(host, now)
	switch {
	case !ok:
		return politeness.Brake{}, decorum.Decision{}
	case b.Stop:
		return b, b.Decision(b.Until)
	}
	if due := c.hostTable.lastVisitEnd(l).Add(b.Delay); due.After(now) {
		return b, b.Decision(due)
	}
	return b, decorum.Decision{}
}

// postponeBrakedLease lets a URL wait until a brake lets it be visited: until then, or
// until the brakes change. Nobody waits for a host that is stopped.
func (c *Crawler) postponeBrakedLease(ctx context.Context, l storage.Lease, d decorum.Decision) (ack storage.Ack, err error) {
	origin := l.URL.Origin()
	c.brakedOrigins.add(origin)
	brake, _ := politeness.BrakeOf(d)
	until := c.brakeHoldEnd(d.Until, brake.Until)
	if d.Action == decorum.Suspend {
		ack, err = c.requeueAndHoldOrigin(ctx, l, until, true)
	} else {
		ack, err = c.postponeBusyLease(ctx, l, until)
	}
	if b, _ := c.Brakes.ForHost(origin.Host(), c.now()); b != brake && err == nil { // before it was put off
		err = c.Frontier.Hold(commitContext(ctx), origin, time.Time{}, false)
	}
	return ack, err
}

// brakeHoldEnd returns until when an origin is put off: the earliest of these times, of
// those that are one, or for as long as any is.
func (c *Crawler) brakeHoldEnd(times ...time.Time) time.Time {
	until := c.now().Add(maxBrakeHold)
	for _, t := range times {
		if !t.IsZero() {
			until = timecmp.Earlier(until, t)
		}
	}
	return until
}

// onBrakesChanged breaks off the requests to hosts that are stopped now. It is called
// when the brakes have changed, before who changed them goes on.
func (c *Crawler) onBrakesChanged() {
	now := c.now()
	c.activeLeases.cancelRequestsToHosts(func(host string) error { return c.Brakes.CheckStopped(host, now).Err() })
	select {
	case c.brakesChanged <- struct{}{}:
	default:
	}
}

// updateBrakedOriginHolds lets the origins that were put off by brakes come again, by those that
// hold now.
func (c *Crawler) updateBrakedOriginHolds(ctx context.Context) error {
	for _, host := range c.brakedOrigins.hosts() {
		until, b := time.Time{}, politeness.Brake{}
		if b, _ = c.Brakes.ForHost(host, c.now()); b.Stop {
			until = c.brakeHoldEnd(b.Until)
		}
		for _, o := range c.brakedOrigins.takeHost(host) {
			if b.Stop {
				c.brakedOrigins.add(o)
			}
			if err := c.Frontier.Hold(commitContext(ctx), o, until, b.Stop); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitAbortReason returns why v was refused when it was about to connect, to Proceed if it was
// not refused: a limit is reached, a brake was set in the meantime, or this machine could
// not connect. The crawl has sent nothing, so the host need not rest.
func visitAbortReason(v *Visit, t Ticket, now time.Time) decorum.Decision {
	if v.Response != nil {
		return decorum.Decision{}
	}
	d, _ := decorum.DecisionOf(v.Err)
	if waitsForShared(d.Reason) || d.Reason == decorum.ReasonBrake && !t.maybeSent() {
		return d
	}
	if isLocalFault(v) && !v.mayHaveArrived && !t.data.sendWasAllowed.Load() {
		return localFailureDecision(v.Err, now)
	}
	return decorum.Decision{}
}
