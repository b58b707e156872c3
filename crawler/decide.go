package crawler

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// The exported decisions in this file depend on no limit that crawls or processes share, and get the
// time as an argument, so decorum explain calls the same functions. decorum.Decision gives the order in
// which a crawl takes them.

// RefusalDecision returns the Decision that err stands for, with err as its Cause; nil stands for
// Proceed. err comes from frontier.Scope, gate.Gate or tdmrep.json. Any other error means that no
// decision was made, and is returned.
func RefusalDecision(err error) (decorum.Decision, error) {
	if err == nil {
		return decorum.Decision{}, nil
	}
	d := decorum.Decision{Action: decorum.Refuse, Cause: err}
	refusal, isRefusal := errors.AsType[*gate.Refusal](err)
	postponed, isPostponed := errors.AsType[*gate.OriginPostponedError](err)
	redirect, isRedirect := errors.AsType[*gate.RedirectDisallowedError](err)
	switch {
	case errors.Is(err, decorum.OutOfScope):
		d.Reason = decorum.ReasonScope
	case isRefusal && refusal.TDMRepSHA256 != "":
		d.Reason, d.Rule, d.Line = decorum.ReasonTDMRep, refusal.Verdict.Rule, refusal.Verdict.Line
	case isRefusal:
		d.Reason, d.Rule, d.Line = decorum.ReasonRobots, refusal.Verdict.Rule, refusal.Verdict.Line
	case isPostponed:
		d.Action, d.Reason, d.Until = decorum.Postpone, decorum.ReasonRobotsUnreachable, postponed.Until
		if errors.Is(err, decorum.Pending) {
			d.Reason = decorum.ReasonRobotsPending
		}
		if postponed.Suspended {
			d.Action = decorum.Suspend
		}
	case isRedirect:
		d.Reason, d.Rule, d.Line =
			decorum.ReasonRobotsRedirect, redirect.Refusal.Verdict.Rule, redirect.Refusal.Verdict.Line
	case errors.Is(err, decorum.Dropped):
		d.Reason = decorum.ReasonDropped
	default:
		return decorum.Decision{}, err
	}
	return d, nil
}

// KnownRulesDecision returns the decision about a visit to u at now, from the rules in robots.txt
// and tdmrep.json that are known and still valid. A file that is unknown lets the visit proceed. It
// fetches no file and ignores lookups in flight.
func KnownRulesDecision(ctx context.Context, robotsGate *gate.Gate, notes storage.Notes, now time.Time,
	u decorum.URL) (decorum.Decision, error) {
	err := robotsGate.CheckKnown(ctx, now, u)
	isCovered := u.Origin().IsHTTP() && u != u.Origin().RobotsURL()
	if err != nil || !isCovered || !aiuse.PurposesIncludeTDM(robotsGate.Purposes()) {
		return RefusalDecision(err)
	}
	file, fileErr := robotsGate.LastFetchSummary(ctx, u.Origin())
	r, noteErr := ReadCachedTDMRep(ctx, notes, u.Origin())
	if err := errors.Join(fileErr, noteErr); err != nil {
		return decorum.Decision{}, err
	}
	return r.decision(now, u, robotsGate.Purposes(), file)
}

// VisitHoursDecision returns whether a visit may begin at now, within the policy's visit window and
// the Visit-time of robots.txt, which allows the next visit at opensAt.
func VisitHoursDecision(policy politeness.Policy, opensAt, now time.Time) decorum.Decision {
	opensAt = timecmp.Later(opensAt, policy.VisitWindow.NextOpen(now))
	if !opensAt.After(now) {
		return decorum.Decision{}
	}
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonVisitHours, Until: opensAt}
}

// localFailureDecision returns the Decision about a visit that failed on this machine before it
// sent anything.
func localFailureDecision(err error, now time.Time) decorum.Decision {
	d := decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonLocalFailure, Cause: err}
	if _, full := errors.AsType[*bodymem.FullError](err); full {
		d.Reason, d.Until = decorum.ReasonBodyMemory, now.Add(memoryRetryDelay)
	}
	return d
}

// waitsForShared reports whether reason means that a resource shared with other hosts, crawls or
// processes is busy.
func waitsForShared(reason decorum.DecisionReason) bool {
	switch reason {
	case decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate, decorum.ReasonOtherProcesses:
		return true
	}
	return false
}

// suspendDuration is how long an origin stays suspended for one of the crawl's own reasons before
// it is checked again. The check sends no request, and the reason may be gone by then.
const suspendDuration = time.Minute

// maxWindowWait bounds how long a host outside its visit hours is held, because the hours or the
// clock may be changed in the meantime.
const maxWindowWait = 10 * time.Minute

// reserve takes, in this order, a page of the host's budget, a permit, and a page of the run's
// budget. If the decision is not to Proceed, the caller returns what was taken.
func (c *Crawler) reserve(ctx context.Context, lv *leasedVisit) (d decorum.Decision, err error) {
	if d = c.checkAndSpendHostBudget(lv.lease, lv.kind); d.Action != decorum.Proceed {
		return d, nil
	}
	if lv.permit, d, err = c.requestPermit(ctx, lv.lease, lv.clearance); err != nil || d.Action != decorum.Proceed {
		return d, err
	}
	return lv.countPage(), nil
}

// requestPermit asks for a permit. The host must be within its visit hours and due, both by the
// store's clock and by the Limiter's, which knows of other crawls; its address must be due, too. If
// the rest in the store is shorter than the Crawl-delay that is known now, the host rests for that
// delay first: another crawl learnt it, or the process crashed between learning it and the ack, or
// it belongs to other hours. An error means that something could not be read.
func (c *Crawler) requestPermit(ctx context.Context, l storage.Lease,
	cl gate.Clearance) (politeness.Permit, decorum.Decision, error) {
	origin, now := cl.URL().Origin(), c.now()
	if d := c.budget.checkVisitWithCoordinator(now); d.Action != decorum.Proceed {
		return politeness.Permit{}, d, nil
	}
	policy := c.hostTable.politenessPolicyOf(origin.Host(), now)
	delay, opensAt, err := c.hostTable.crawlDelays.hostDelayAndNextAllowedTime(ctx, origin, now)
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
	learnedByOthers, err := c.HostDueStore.learnedDelayOfOthers(ctx, c.Coordinator, origin.Host())
	if err != nil {
		return politeness.Permit{}, decorum.Decision{}, err
	}
	slots := min(max(l.HostState.Slots, 1), policy.Concurrency) // the policy may have been lowered
	if delay > 0 || brake.Delay > 0 {
		// DELAY-12. The slots in the store may date from before the delay was learnt.
		slots = 1
	}
	// Note who waits now: an origin that begins to wait while Reserve runs must stay in the
	// waitlist.
	lastWaiting, lastBraked :=
		c.waitlist.originsAwaitingPermit.lastArrivalNumber(), c.waitlist.brakedOrigins.lastArrivalNumber()
	permit, d := c.Limiter.Reserve(now, origin.Host(),
		politeness.PermitRequest{NotBefore: l.HostState.Due, HostSlots: slots,
			Delay:       max(policy.Delay, delay, brake.Delay),
			LearnedPace: c.hostTable.learnedPaceOf(l), LearnedByOthers: learnedByOthers,
			MaxLearnedDelay: policy.MaxLearnedDelay})
	if waitsForShared(d.Reason) && brake.Delay > 0 {
		d = brake.Decision(d.Until) // lifting the brake may allow an earlier visit
	}
	if d.Action == decorum.Proceed {
		c.waitlist.originsAwaitingPermit.removeUnlessNewer(l.URL.Origin(), lastWaiting)
		c.waitlist.brakedOrigins.removeUnlessNewer(l.URL.Origin(), lastBraked)
	}
	return permit, d, nil
}

// CrawlDelayDecision returns Suspend, until suspendDuration after now, for a host whose delay is
// longer than policy.MaxCrawlDelay.
func CrawlDelayDecision(policy politeness.Policy, delay time.Duration, now time.Time) decorum.Decision {
	if delay <= policy.MaxCrawlDelay {
		return decorum.Decision{}
	}
	return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonCrawlDelay,
		Until: now.Add(suspendDuration), Rest: delay, Limit: int64(policy.MaxCrawlDelay)}
}

// checkBrake returns the brake that slows host, if there is one, and whether brakes allow a visit
// to it now. A brake's delay is not added to the host's rest: it is checked before each visit and
// counts from the end of the last one. So it also applies to a rest that began before the brake was
// set, and ends when the brake is lifted.
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

// visitAbortReason returns why v was refused when it was about to connect: a limit is reached, a
// brake was set in the meantime, or this machine could not connect. It returns Proceed if v was not
// refused. After a refusal the crawl has sent nothing, so the host need not rest.
func visitAbortReason(v *Visit, t Ticket, now time.Time) decorum.Decision {
	if v.Response != nil {
		return decorum.Decision{}
	}
	d, _ := decorum.DecisionOf(v.Err)
	// An ftp visit claims an address a second time, for its data connection, after it has sent
	// commands.
	isFirstClaim := !t.data.serverAddrClaimed.Load() || !t.data.sendWasAllowed.Load()
	if waitsForShared(d.Reason) && isFirstClaim || d.Reason == decorum.ReasonBrake && !t.maybeSent() {
		return d
	}
	if isLocalFault(v) && !v.mayHaveArrived && !t.data.sendWasAllowed.Load() {
		return localFailureDecision(v.Err, now)
	}
	return decorum.Decision{}
}

// checkAndSpendHostBudget returns Proceed if the budget of l's host permits the visit, and then
// counts the page in the host's entry; otherwise Suspend. The budget limits first visits only:
// retries and revisits request pages that the host has already served.
func (c *Crawler) checkAndSpendHostBudget(l storage.Lease, kind VisitKind) decorum.Decision {
	isRepeat := l.FailedAttempts > 0 || l.UseUncleanedURL || l.VisitHistorySummary != nil
	switch {
	case isRepeat || kind.IsRobots():
		return decorum.Decision{}
	case !c.hostTable.isBelowByteLimit(l, c.Settings.MaxBytesPerHost):
		return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonHostBytes,
			Until: c.now().Add(suspendDuration), Limit: c.Settings.MaxBytesPerHost}
	case kind.IsPage() && !c.hostTable.tryReservePage(l, int64(c.Settings.MaxPagesPerHost)):
		return decorum.Decision{Action: decorum.Suspend, Reason: decorum.ReasonHostPages,
			Until: c.now().Add(suspendDuration), Limit: int64(c.Settings.MaxPagesPerHost)}
	}
	return decorum.Decision{}
}

// checkScopeAndGetClearance checks scope again and asks the gate for a clearance: for the URL, for
// the robots.txt or tdmrep.json that must come first, or for the redirect of a robots.txt. It reads
// tdmrep.json only if the crawl has a purpose that the file can reserve. The Clearance is valid if
// the Decision is to Proceed.
func (c *Crawler) checkScopeAndGetClearance(ctx context.Context,
	l storage.Lease) (clearance gate.Clearance, d decorum.Decision, err error) {
	entry := l.Entry
	entry.URL = urlToVisit(l.Entry)
	err = c.Frontier.CheckLeasedScope(ctx, entry) // the scope may be narrower than when the URL was found
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
	return c.prerequisites.tdmrepClearance(ctx, l, clearance)
}
