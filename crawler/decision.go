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

// KnownRulesDecision returns how a visit to u is decided by what is known of the robots.txt and
// the tdmrep.json of its origin, while these hold: what is not known lets it proceed. It asks
// for no file.
func KnownRulesDecision(ctx context.Context, robotsGate *gate.Gate, notes storage.Notes,
	u decorum.URL) (decorum.Decision, error) {
	err := robotsGate.CheckKnownRules(ctx, u)
	if err == nil && aiuse.PurposesIncludeTDM(robotsGate.Purposes()) && u != u.Origin().RobotsURL() {
		file, fileErr := robotsGate.LastFetchSummary(ctx, u.Origin())
		r, noteErr := ReadCachedTDMRep(ctx, notes, u.Origin())
		if err = errors.Join(fileErr, noteErr); err == nil {
			err = r.check(u, robotsGate.Purposes(), file)
		}
	}
	return RefusalDecision(err)
}

// VisitHoursDecision returns whether a visit may begin at now by the hours of a policy, and by
// those of robots.txt, which lets the next begin at opensAt.
func VisitHoursDecision(policy politeness.Policy, opensAt, now time.Time) decorum.Decision {
	opensAt = timecmp.Later(opensAt, policy.VisitWindow.NextOpen(now))
	if !opensAt.After(now) {
		return decorum.Decision{}
	}
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonVisitHours,
		Until: timecmp.Earlier(opensAt, now.Add(maxWindowWait))}
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
