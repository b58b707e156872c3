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

// What decides about a visit without a limit that others share, or a clock that moves on, is
// here and in CrawlDelayDecision: decorum explain asks the same functions. The order in which
// a crawl asks them is that of decorum.Decision.

// RefusalDecision returns the Decision that an error of frontier.Scope, of gate.Gate or of
// tdmrep.json stands for, which is its Cause; of nil, to Proceed. Any other error says that no
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
		d.Reason, d.Rule, d.Line = decorum.ReasonRobotsRedirect, redirect.Refusal.Verdict.Rule, redirect.Refusal.Verdict.Line
	case errors.Is(err, decorum.Dropped):
		d.Reason = decorum.ReasonDropped
	default:
		return decorum.Decision{}, err
	}
	return d, nil
}

// KnownRulesDecision returns how a visit to u is decided at now by what is known of the robots.txt
// and the tdmrep.json of its origin, as long as that may be used: a file that is not known lets it
// proceed. It asks for no file, and knows nothing of lookups that are under way.
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

// VisitHoursDecision returns whether a visit may begin at now by the hours of a policy, and by
// those of robots.txt, which lets the next begin at opensAt.
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

// waitsForShared reports whether a reason is that something is busy that a host shares with others.
func waitsForShared(reason decorum.DecisionReason) bool {
	switch reason {
	case decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate, decorum.ReasonOtherProcesses:
		return true
	}
	return false
}

// suspendDuration is how long an origin is set aside for a reason of our own, until it
// is looked at again. That costs no request: the reason may be gone by then.
const suspendDuration = time.Minute

// maxWindowWait is for how long a host is left alone at a time that is outside
// its hours: they may be changed meanwhile, or the clocks.
const maxWindowWait = 10 * time.Minute

// reserve takes for a visit what limits leave it: its page of what the host may have at most, the
// permit, and its page of what the run may visit.
func (c *Crawler) reserve(ctx context.Context, lv *leasedVisit) (d decorum.Decision, err error) {
	if d = c.checkAndSpendHostBudget(lv.lease, lv.kind); d.Action != decorum.Proceed {
		return d, nil
	}
	if lv.permit, d, err = c.requestPermit(ctx, lv.lease, lv.clearance); err != nil || d.Action != decorum.Proceed {
		return d, err
	}
	return lv.countPage(), nil
}

// requestPermit asks for a permit: the host must be within its hours, and due, by the
// store's clock and by the limiter's, which knows of other crawls, and so must its
// address. Where the rest that the store knows of is shorter than the Crawl-delay
// that is known now (another crawl learnt it, a crash came between learning it and
// the ack, or it is for other hours), the host rests for that first. An error says that
// something could not be read.
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
	slots := min(max(l.HostState.Slots, 1), policy.Concurrency) // it may have been lowered since
	if delay > 0 || brake.Delay > 0 {
		slots = 1 // DELAY-12; what the store says may be of before it was learnt
	}
	lastWaiting, lastBraked := c.waitlist.originsAwaitingPermit.lastArrivalNumber(), c.waitlist.brakedOrigins.lastArrivalNumber()
	permit, d := c.Limiter.Reserve(now, origin.Host(),
		politeness.PermitRequest{NotBefore: l.HostState.Due, HostSlots: slots, Delay: max(policy.Delay, delay, brake.Delay)})
	if waitsForShared(d.Reason) && brake.Delay > 0 {
		d = brake.Decision(d.Until) // if it is lifted, it may be sooner
	}
	if d.Action == decorum.Proceed { // what waits for this permit to come back came after it was asked for
		c.waitlist.originsAwaitingPermit.removeUnlessNewer(l.URL.Origin(), lastWaiting)
		c.waitlist.brakedOrigins.removeUnlessNewer(l.URL.Origin(), lastBraked)
	}
	return permit, d, nil
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

// visitAbortReason returns why v was refused when it was about to connect, to Proceed if it was
// not refused: a limit is reached, a brake was set in the meantime, or this machine could
// not connect. The crawl has sent nothing, so the host need not rest.
func visitAbortReason(v *Visit, t Ticket, now time.Time) decorum.Decision {
	if v.Response != nil {
		return decorum.Decision{}
	}
	d, _ := decorum.DecisionOf(v.Err)
	// An ftp visit claims the address again for its second connection, when it has sent its commands.
	isFirstClaim := !t.data.serverAddrClaimed.Load() || !t.data.sendWasAllowed.Load()
	if waitsForShared(d.Reason) && isFirstClaim || d.Reason == decorum.ReasonBrake && !t.maybeSent() {
		return d
	}
	if isLocalFault(v) && !v.mayHaveArrived && !t.data.sendWasAllowed.Load() {
		return localFailureDecision(v.Err, now)
	}
	return decorum.Decision{}
}

// checkAndSpendHostBudget returns to Proceed if the budget of l's host permits the visit, and
// then counts the page in the host's entry; otherwise to Suspend. The budget limits
// first visits only: retries and revisits request pages that the host has
// already served.
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

// checkScopeAndGetClearance asks scope again, and the robots gate: for the URL, or for its
// robots.txt if that must come first, or for a redirect of somebody's robots.txt; and
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
	return c.prerequisites.tdmrepClearance(ctx, l, clearance)
}
