package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// blame decides whether this machine or the host is to blame for a failed v. If this
// machine is, the error of v gets the Kind Local. blame may wait some seconds for the
// outcome of other visits.
func (c *Crawler) blame(ctx context.Context, v *Visit) {
	switch {
	case c.Now != nil: // such a crawl has its own clock and does not use this machine's network
		return
	case v.reached():
		c.Limits.Breaker().Answered(v.host(), v.Start)
		if !c.lag.late(v) {
			c.Limits.Load().Answered()
		}
	case v.brokenOff || v.unsent():
		return
	default:
		c.blameFailure(ctx, v)
	}
	c.logBreaker(v)
}

// reached reports whether v shows that its server was reached.
func (v *Visit) reached() bool { return v.Response != nil || isTLS(v.Err) || isMalformed(v.Err) }

// host returns the host that was visited.
func (v *Visit) host() string { return v.URL().Origin().Host() }

// blameFailure is blame for a visit without an answer.
func (c *Crawler) blameFailure(ctx context.Context, v *Visit) {
	evidence, why, ok := evidenceOf(v.Err)
	if !ok {
		return
	}
	if isTimeout(v.Err) && c.lag.late(v) {
		c.Limits.Load().Overloaded(v.End, v.Start)
		if c.memos.excuse(v.Lease) {
			v.setLocal("this machine is too busy")
			v.arrived = true
			return
		}
	}
	if evidence == politeness.Certain {
		c.Limits.Load().Overloaded(v.End, v.Start)
	}
	addr := v.addr
	if !addr.IsValid() {
		addr = addrOf(v.Err)
	}
	doubt := c.Limits.Breaker().Fail(time.Now(), politeness.Failure{
		Host: v.host(), Addr: addr, Start: v.Start, Evidence: evidence, Why: why})
	if v.slots > 1 { // else the host gets no other visit before this one is acked
		c.restMeanwhile(ctx, v)
	}
	switch c.await(ctx, doubt) {
	case politeness.MachineFault:
		v.setLocal(why)
		v.arrived = evidence == politeness.Possible
	case politeness.Undecided: // the crawl is being halted, or the lease has run out
		v.brokenOff = true
	}
}

// restMeanwhile keeps the host of v at rest from the end of v, as after a failure,
// until the Doubt about v is decided.
func (c *Crawler) restMeanwhile(ctx context.Context, v *Visit) {
	origin := v.URL().Origin()
	delay, _, err := c.pace(afterwards(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.Host.Gap
	}
	rest := c.policyOf(origin.Host(), v.End).Next(politeness.Visit{
		Host: origin.Host(), Start: v.Start, End: v.End, CrawlDelay: delay, Strikes: v.Lease.Host.Strikes})
	c.Limits.Owe(v.End, origin.Host(), v.End, rest.Due)
}

// await returns the verdict of a doubt. It returns Undecided only if ctx is done first.
func (c *Crawler) await(ctx context.Context, d *politeness.Doubt) politeness.Verdict {
	for {
		verdict, wait, changed := d.Decide(time.Now())
		if verdict != politeness.Undecided {
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
			return politeness.Undecided
		}
	}
}

// setLocal gives the error of v the Kind Local. The error of a request that must not be
// sent twice stays InDoubt.
func (v *Visit) setLocal(why string) {
	if v.marked {
		return
	}
	v.Err = &decorum.Error{Op: "fetch", URL: v.URL().String(), Kind: decorum.Local, Err: &NetworkFault{why, v.Err}}
	v.brokenOff = true
}

// logBreaker logs, after v, that visits pause because of this machine, or that they
// start again.
func (c *Crawler) logBreaker(v *Visit) {
	switch s, changed := c.Limits.Breaker().Changed(); {
	case !changed:
	case s.Open:
		c.Log.Warn("visits are paused: they fail on this machine, and no host is charged", "why", s.Why, "error", v.Err)
	case s.GaveUp:
		c.Log.Warn("visits go on, and hosts are charged again: none has answered for too long",
			"why", s.Why, "paused", time.Since(s.Since).Round(time.Second))
	default:
		c.Log.Info("visits go on", "paused", time.Since(s.Since).Round(time.Second), "why", s.Why)
	}
}
