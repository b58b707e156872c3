package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// stateUnknown is the state of a URL that the crawl has not met.
const stateUnknown = "unknown"

// find looks for u in the frontier, and then for the forms that it had on the way
// to u: rules that came later may have made it u, or it was not found on https.
func (q *inquiry) find(ctx context.Context, u decorum.URL, e *explained) error {
	err := q.findAs(ctx, u, &e.found)
	for i := len(e.RewriteSteps) - 1; i >= 0 && err == nil && e.found.entry == nil && e.found.KnownAs == ""; i-- {
		var raw decorum.URL
		if raw, err = decorum.ParseURL(e.RewriteSteps[i].URL); err != nil || raw == u {
			continue
		}
		var s foundURL
		err = q.findAs(ctx, raw, &s)
		switch met := e.found.State != stateUnknown; {
		case err != nil || s.State == stateUnknown:
		case met && (s.entry == nil || !s.entry.Folded): // u was visited, or given up, itself
		case s.entry == nil: // u itself is still to be met
			e.found.KnownAs = raw.String()
		default:
			e.found, e.found.KnownAs = s, raw.String()
		}
	}
	return err
}

// findAs looks for a URL in the frontier.
func (q *inquiry) findAs(ctx context.Context, u decorum.URL, s *foundURL) error {
	s.State = stateUnknown
	known, err := q.store.Known(ctx, u)
	if err != nil || !known {
		return err
	}
	s.State = "done"
	for state, name := range stateNames {
		ahead := 0
		err := q.store.URLs(ctx, u.Origin(), storage.State(state), func(e storage.Entry, at time.Time) bool {
			if e.URL != u || !e.For.IsZero() {
				ahead++
				return true
			}
			s.State, s.URLsAhead, s.entry, s.at = name, ahead, &e, at
			s.Entry = newURLLine(&e, storage.State(state), at)
			return false
		})
		if err != nil || s.entry != nil {
			return err
		}
	}
	return nil
}

// visit says when the URL is visited, and why, and so what becomes of another form
// of it that is kept.
func (q *inquiry) visit(e *explained, target decorum.URL) api.ExplainedVisit {
	never := func(why string) api.ExplainedVisit { return api.ExplainedVisit{When: "never", Reason: why} }
	switch u, _ := decorum.ParseURL(e.URL); {
	case u == u.Origin().RobotsURL():
		return never("it is no page: it is asked for when a URL of its origin is to be judged")
	case !e.Scope.InScope:
		return never("it is out of scope: " + e.Scope.Detail)
	case q.refusedPort(target) != "":
		return never(q.refusedPort(target))
	case e.Robots.MayVisit != nil && !*e.Robots.MayVisit:
		return never("robots.txt closes it, by " + e.Robots.Reason + "; it is asked again when that changes")
	case e.FrontierState.State == "done":
		return never("it was visited, or given up, and pages are not visited again")
	case e.FrontierState.State == stateNames[storage.InParking]:
		return never("it is parked; a crawl that goes on will judge it again")
	case e.FrontierState.State == stateUnknown:
		return q.visitUnknown(e)
	}
	v := q.visitKnown(e)
	switch storedAs := e.FrontierState.KnownAs; {
	case storedAs == "":
	case storedAs == target.String():
		v.Reason += "; it is visited as " + storedAs
	default:
		v.Reason += "; then " + e.URL + " takes the place of " + storedAs
	}
	return v
}

// refusedPort says why visits must not connect to the port of a URL; "" if they may.
func (q *inquiry) refusedPort(u decorum.URL) string {
	var rules []collyfetch.ConnectTo
	for _, rule := range q.project.Fetch.ConnectTo {
		to, _ := collyfetch.ParseConnectTo(rule) // the rule was validated with the project
		rules = append(rules, to)
	}
	var refused *decorum.Error
	if errors.As(collyfetch.CheckPort(u.Origin(), rules), &refused) {
		return refused.Err.Error()
	}
	return ""
}

// visitUnknown is visit for a URL that the crawl has not met.
func (q *inquiry) visitUnknown(e *explained) api.ExplainedVisit {
	why := "the crawl does not know it: it is queued when a page, sitemap or redirect names it"
	if e.FrontierState.KnownAs != "" {
		why = "it was visited, or given up, as " + e.FrontierState.KnownAs + "; it is queued when a page, sitemap or redirect names it again"
	}
	if e.Robots.MayVisit == nil {
		why += "; robots.txt is fetched first"
	}
	return api.ExplainedVisit{When: "never", Reason: why}
}

// visitKnown is visit for one that waits.
func (q *inquiry) visitKnown(e *explained) api.ExplainedVisit {
	v := api.ExplainedVisit{When: "now", Reason: "its host is due"}
	if e.Robots.MayVisit == nil {
		v.Reason += ", and its robots.txt is fetched first"
	}
	later := func(at time.Time, why string) {
		if at.After(q.now) && at.After(v.NotBefore) {
			v = api.ExplainedVisit{When: "at", NotBefore: at.UTC(), Reason: why}
		}
	}
	if h := e.host; h != nil {
		later(h.due, fmt.Sprintf("its host rests for %v after its last visit", paceText(h.RequiredDelay)))
		later(h.HeldUntil, "its origin is held"+because(h.HoldReason))
	}
	later(e.Robots.OriginPostponedUntil, "its robots.txt is to be asked for again then: "+e.Robots.OriginPostponedReason)
	if policy := q.project.policy().For(hostOfURL(e.URL), q.now); !policy.Window.Open(q.now) {
		later(policy.Window.Opens(q.now), "the hours of visits begin then")
	}
	what := "it was put off after a failed visit"
	if e.FrontierState.State == stateNames[storage.InRest] {
		what = "it was visited, and its revisit is due then"
	}
	later(e.found.at, what)
	if e.FrontierState.URLsAhead > 0 && e.FrontierState.State == stateNames[storage.InQueue] {
		gap := time.Duration(0)
		if e.host != nil {
			gap = time.Duration(max(e.host.RequiredDelay, e.host.CrawlDelay, e.host.ConfiguredDelay))
		}
		first := q.now
		if !v.NotBefore.IsZero() {
			first = v.NotBefore
		}
		v = api.ExplainedVisit{When: "after", NotBefore: first.Add(time.Duration(e.FrontierState.URLsAhead) * gap).UTC(),
			Reason: fmt.Sprintf("%d URLs of its origin go before it, at a visit in %v or more; from %s on: %s",
				e.FrontierState.URLsAhead, paceText(api.Milliseconds(gap)), clock(first), v.Reason)}
	}
	return v
}

// hostOfURL returns the host of a URL in canonical form.
func hostOfURL(s string) string {
	u, _ := decorum.ParseURL(s)
	return u.Origin().Host()
}
