package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// attributeFault decides whether this machine or the host is to blame for a failed v. If this
// machine is, the error of v gets the Kind Local. blame may wait some seconds for the
// outcome of other visits.
func (c *Crawler) attributeFault(ctx context.Context, v *Visit) {
	switch {
	case c.Now != nil: // such a crawl has its own clock and does not use this machine's network
		return
	case v.reachedServer():
		c.Limiter.NetworkBreaker().RecordAnswer(v.host(), v.Start)
		if !c.timerLag.wasOverloadedDuringVisit(v) {
			c.Limiter.MachineLoadLimiter().RecordAnswer()
		}
	case v.interrupted || v.wasNeverSent():
		return
	default:
		c.attributeUnansweredVisit(ctx, v)
	}
	c.logBreakerChange(v)
}

// reachedServer reports whether v shows that its server was reached.
func (v *Visit) reachedServer() bool {
	return v.Response != nil || isTLSError(v.Err) || isMalformedError(v.Err)
}

// host returns the host that was visited.
func (v *Visit) host() string { return v.URL().Origin().Host() }

// attributeUnansweredVisit is blame for a visit without an answer.
func (c *Crawler) attributeUnansweredVisit(ctx context.Context, v *Visit) {
	evidence, why, ok := machineFaultLikelihood(v.Err)
	if !ok {
		return
	}
	if isTimeout(v.Err) && c.timerLag.wasOverloadedDuringVisit(v) {
		c.Limiter.MachineLoadLimiter().RecordOverload(v.End, v.Start)
		if c.hostTable.tryAttributeTimeoutToMachine(v.Lease) {
			v.markLocalFailure("this machine is too busy")
			v.mayHaveArrived = true
			return
		}
	}
	if evidence == politeness.CertainlyMachine {
		c.Limiter.MachineLoadLimiter().RecordOverload(v.End, v.Start)
	}
	addr := v.remoteAddr
	if !addr.IsValid() {
		addr = dialErrorAddr(v.Err)
	}
	pendingFailure := c.Limiter.NetworkBreaker().RecordFailure(time.Now(), politeness.VisitFailure{
		Host: v.host(), Addr: addr, Start: v.Start, MachineFaultLikelihood: evidence, MachineFaultReason: why})
	if v.hostSlots > 1 { // else the host gets no other visit before this one is acked
		c.postponeHostForPendingFailure(ctx, v)
	}
	switch c.awaitFaultDecision(ctx, pendingFailure) {
	case politeness.MachineFault:
		v.markLocalFailure(why)
		v.mayHaveArrived = evidence == politeness.PossiblyMachine
	case politeness.UndecidedFault: // the crawl is being halted, or the lease has run out
		v.interrupted = true
	}
}

// postponeHostForPendingFailure keeps the host of v at rest from the end of v, as after a failure,
// until the UndecidedFailure about v is decided.
func (c *Crawler) postponeHostForPendingFailure(ctx context.Context, v *Visit) {
	origin := v.URL().Origin()
	delay, _, err := c.hostDelayAndNextAllowedTime(commitContext(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.HostState.LostVisitDelay
	}
	next := c.politenessPolicyOf(origin.Host(), v.End).NextVisit(politeness.FinishedVisit{
		Host: origin.Host(), Start: v.Start, End: v.End, CrawlDelay: delay, ConsecutiveFailures: v.Lease.HostState.ConsecutiveFailures})
	c.Limiter.PostponeHost(v.End, origin.Host(), v.End, next.Due)
}

// awaitFaultDecision returns the verdict of a doubt. It returns UndecidedFault only if ctx is done first.
func (c *Crawler) awaitFaultDecision(ctx context.Context, d *politeness.UndecidedFailure) politeness.FaultAttribution {
	for {
		verdict, wait, changed := d.DecideFault(time.Now())
		if verdict != politeness.UndecidedFault {
			return verdict
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return politeness.UndecidedFault
		}
	}
}

// markLocalFailure gives the error of v the Kind Local. The error of a request that must not be
// sent twice stays InDoubt.
func (v *Visit) markLocalFailure(why string) {
	if v.unsafeSendRecorded {
		return
	}
	v.Err = &decorum.Error{Op: "fetch", URL: v.URL().String(), Kind: decorum.LocalFailure, Err: &NetworkOutageError{why, v.Err}}
	v.interrupted = true
}

// logBreakerChange logs, after v, that visits pause because of this machine, or that they
// start again.
func (c *Crawler) logBreakerChange(v *Visit) {
	switch s, changed := c.Limiter.NetworkBreaker().PollStateChange(); {
	case !changed:
	case s.Open:
		c.Log.Warn("visits are paused: they fail on this machine, and no host is charged", "why", s.Reason, "error", v.Err)
	case s.ClosedWithoutAnswer:
		c.Log.Warn("visits go on, and hosts are charged again: none has answered for too long",
			"why", s.Reason, "paused", time.Since(s.OpenedAt).Round(time.Second))
	default:
		c.Log.Info("visits go on", "paused", time.Since(s.OpenedAt).Round(time.Second), "why", s.Reason)
	}
}
