package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// HostUnknown is the state of a URL that the crawl has not met.
const HostUnknown = "unknown"

// findURLOrEarlierForm looks for u in the frontier, and then for the forms that it had on the way
// to u: rules that came later may have made it u, or it was not found on https.
func (q *Inspector) findURLOrEarlierForm(ctx context.Context, u decorum.URL, e *explainedURL) error {
	err := q.findExactURL(ctx, u, &e.urlFrontierState)
	for i := len(e.RewriteSteps) - 1; i >= 0 && err == nil && e.urlFrontierState.storedEntry == nil && e.urlFrontierState.KnownAs == ""; i-- {
		var earlierURL decorum.URL
		if earlierURL, err = decorum.ParseURL(e.RewriteSteps[i].URL); err != nil || earlierURL == u {
			continue
		}
		var s urlFrontierState
		err = q.findExactURL(ctx, earlierURL, &s)
		switch isKnown := e.urlFrontierState.State != HostUnknown; {
		case err != nil || s.State == HostUnknown:
		case isKnown && (s.storedEntry == nil || !s.storedEntry.HTTPSUpgradeTried): // u was visited, or given up, itself
		case s.storedEntry == nil: // u itself is still to be met
			e.urlFrontierState.KnownAs = earlierURL.String()
		default:
			e.urlFrontierState, e.urlFrontierState.KnownAs = s, earlierURL.String()
		}
	}
	return err
}

// findExactURL looks for a URL in the frontier.
func (q *Inspector) findExactURL(ctx context.Context, u decorum.URL, s *urlFrontierState) error {
	s.State = HostUnknown
	known, err := q.FrontierStore.HasSeen(ctx, u)
	if err != nil || !known {
		return err
	}
	s.State = "done"
	for state, name := range StateNames {
		urlsAhead := 0
		err := q.FrontierStore.OriginURLsInState(ctx, u.Origin(), storage.EntryState(state), func(e storage.Entry, at time.Time) bool {
			if e.URL != u || !e.RobotsFor.IsZero() {
				urlsAhead++
				return true
			}
			s.State, s.URLsAhead, s.storedEntry, s.dueAt = name, urlsAhead, &e, at
			s.Entry = ToAPIFrontierURL(&e, storage.EntryState(state), at)
			return false
		})
		if err != nil || s.storedEntry != nil {
			return err
		}
	}
	return nil
}

// explainVisit says when the URL is visited, and why, and so what becomes of another form
// of it that is kept.
func (q *Inspector) explainVisit(e *explainedURL, target decorum.URL) api.ExplainedNextVisit {
	never := func(why string) api.ExplainedNextVisit { return api.ExplainedNextVisit{When: "never", Reason: why} }
	switch u, _ := decorum.ParseURL(e.URL); {
	case u == u.Origin().RobotsURL():
		return never("it is no page: it is asked for when a URL of its origin is to be judged")
	case !e.Scope.InScope:
		return never("it is out of scope: " + e.Scope.Detail)
	case q.portRefusal(target) != "":
		return never(q.portRefusal(target))
	case e.Robots.MayVisit != nil && !*e.Robots.MayVisit:
		return never("robots.txt closes it, by " + e.Robots.Reason + "; it is asked again when that changes")
	case e.FrontierState.State == "done":
		return never("it was visited, or given up, and pages are not visited again")
	case e.FrontierState.State == StateNames[storage.StateParked]:
		return never("it is parked; a crawl that goes on will judge it again")
	case e.FrontierState.State == HostUnknown:
		return q.explainVisitOfUnknownURL(e)
	}
	v := q.explainPendingVisit(e, target.Origin().Host())
	switch storedAs := e.FrontierState.KnownAs; {
	case storedAs == "":
	case storedAs == target.String():
		v.Reason += "; it is visited as " + storedAs
	default:
		v.Reason += "; then " + e.URL + " takes the place of " + storedAs
	}
	return v
}

// portRefusal says why visits must not connect to the port of a URL; "" if they may.
func (q *Inspector) portRefusal(u decorum.URL) string {
	rules, _ := dialrules.ParseConnectToRules(q.Project.Fetch.ConnectToRules) // they were validated with the project
	var refused *decorum.Error
	if errors.As(dialrules.CheckPort(u.Origin(), rules), &refused) {
		return refused.Err.Error()
	}
	return ""
}

// explainVisitOfUnknownURL is visit for a URL that the crawl has not met.
func (q *Inspector) explainVisitOfUnknownURL(e *explainedURL) api.ExplainedNextVisit {
	why := "the crawl does not know it: it is queued when a page, sitemap or redirect names it"
	if e.FrontierState.KnownAs != "" {
		why = "it was visited, or given up, as " + e.FrontierState.KnownAs + "; it is queued when a page, sitemap or redirect names it again"
	}
	if e.Robots.MayVisit == nil {
		why += "; robots.txt is fetched first"
	}
	return api.ExplainedNextVisit{When: "never", Reason: why}
}

// explainPendingVisit is explainVisit for one on host that waits.
func (q *Inspector) explainPendingVisit(e *explainedURL, host string) api.ExplainedNextVisit {
	v := api.ExplainedNextVisit{When: "now", Reason: "its host is due"}
	if e.Robots.MayVisit == nil {
		v.Reason += ", and its robots.txt is fetched first"
	}
	postpone := func(at time.Time, why string) {
		if at.After(q.Time) && at.After(v.NotBefore) {
			v = api.ExplainedNextVisit{When: "at", NotBefore: at.UTC(), Reason: why}
		}
	}
	if h := e.hostReport; h != nil {
		postpone(h.hostDueAt, fmt.Sprintf("its host rests for %v after its last visit", DelayText(h.RequiredDelay)))
		postpone(h.HeldUntil, "its origin is held"+PrefixIfSet(": ", h.HoldReason))
	}
	postpone(e.Robots.OriginPostponedUntil, "its robots.txt is to be asked for again then: "+e.Robots.OriginPostponedReason)
	if policy := q.Project.PolitenessPolicy().ForHost(host, q.Time); !policy.VisitWindow.IsOpen(q.Time) {
		postpone(policy.VisitWindow.NextOpen(q.Time), "the hours of visits begin then")
	}
	delayReason := "it was put off after a failed visit"
	if e.FrontierState.State == StateNames[storage.StateAwaitingRevisit] {
		delayReason = "it was visited, and its revisit is due then"
	}
	postpone(e.urlFrontierState.dueAt, delayReason)
	if e.FrontierState.URLsAhead > 0 && e.FrontierState.State == StateNames[storage.StateQueued] {
		delay := time.Duration(0)
		if e.hostReport != nil {
			delay = time.Duration(max(e.hostReport.RequiredDelay, e.hostReport.CrawlDelay, e.hostReport.ConfiguredDelay))
		}
		firstVisit := timecmp.Later(q.Time, v.NotBefore)
		v = api.ExplainedNextVisit{When: "after", NotBefore: firstVisit.Add(time.Duration(e.FrontierState.URLsAhead) * delay).UTC(),
			Reason: fmt.Sprintf("%d URLs of its origin go before it, at a visit in %v or more; from %s on: %s",
				e.FrontierState.URLsAhead, DelayText(api.Milliseconds(delay)), FormatTime(firstVisit), v.Reason)}
	}
	return v
}
