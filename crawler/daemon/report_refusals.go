package daemon

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// Why URLs are parked.
const (
	whyRobots  = "robots"
	whyTDMRep  = "tdmrep"
	whyScope   = "scope"
	whyNothing = "nothing" // any more: the crawl will see when it goes on
)

// refusals count URLs by why they are parked: an api.RefusalSummary without URLs and
// Example.
type refusals map[api.RefusalSummary]*api.RefusalSummary

// maxRules is how many rules of one host are told apart. It bounds what a file
// of a hundred thousand rules can make a report of.
const maxRules = 1000

// note counts a URL.
func (rs refusals) note(why api.RefusalSummary, u decorum.URL) {
	if rs[why] == nil && len(rs) >= maxRules {
		why.Rule, why.RuleLine = "other rules", 0
	}
	if rs[why] == nil {
		r := why
		r.Example = u.String()
		rs[why] = &r
	}
	rs[why].URLCount++
}

// merge adds what is of another host.
func (rs refusals) merge(more []api.RefusalSummary) {
	for _, r := range more {
		why := r
		why.URLCount, why.Example = 0, ""
		if rs[why] == nil {
			rs[why] = &r
			continue
		}
		rs[why].URLCount += r.URLCount
	}
}

// list returns the refusals, first what keeps most URLs out.
func (rs refusals) list() []api.RefusalSummary {
	list := make([]api.RefusalSummary, 0, len(rs))
	for _, r := range rs {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b api.RefusalSummary) int {
		return cmp.Or(cmp.Compare(b.URLCount, a.URLCount), strings.Compare(a.RuleFileURL, b.RuleFileURL),
			cmp.Compare(a.RuleLine, b.RuleLine), strings.Compare(a.Rule, b.Rule))
	})
	return list
}

// classifyParked finds out for each parked URL of an origin what keeps it parked.
func (q *inquiry) classifyParked(ctx context.Context, o decorum.Origin, h *surveyed) error {
	evaluate, err := crawler.NewVerdictFunc(ctx, q.gate, q.store, o)
	if err != nil {
		return err
	}
	if h.refusals == nil {
		h.refusals = refusals{}
	}
	return q.store.URLs(ctx, o, storage.InParking, func(e storage.Entry, _ time.Time) bool {
		u, why := q.whyParked(e, evaluate)
		switch why.RefusedBy {
		case whyScope:
			h.OutOfScope++
		case whyRobots:
			h.BlockedByRobots++
		case whyTDMRep:
			h.BlockedByTDMRep++
		}
		h.refusals.note(why, u)
		return true
	})
}

// whyParked asks what the crawl asks before a visit to e, in its order: the
// scope, and then the rules, which are nil if they are not known.
func (q *inquiry) whyParked(e storage.Entry, evaluate func(decorum.URL) robots.Verdict) (decorum.URL, api.RefusalSummary) {
	if e.AsFound {
		e.URL = e.Found
	}
	if q.scope != nil {
		if err := q.scope.Check(e); err != nil {
			return e.URL, api.RefusalSummary{RefusedBy: whyScope, Rule: cause(err)}
		}
	}
	if evaluate == nil {
		return e.URL, api.RefusalSummary{RefusedBy: whyNothing, Rule: "its robots.txt is not known"}
	}
	v := evaluate(e.URL)
	if v.Allowed {
		return e.URL, api.RefusalSummary{RefusedBy: whyNothing, Rule: "allowed by now"}
	}
	if v.Group == string(robots.InTDMRep) {
		return e.URL, api.RefusalSummary{RefusedBy: whyTDMRep, RuleFileURL: robots.TDMRepURL(e.URL.Origin()).String(), Rule: plain(v.Rule), RuleLine: v.Line}
	}
	return e.URL, api.RefusalSummary{RefusedBy: whyRobots, RuleFileURL: e.URL.Origin().RobotsURL().String(), Rule: plain(v.Rule), RuleLine: v.Line}
}

// cause returns why something was refused, without what and where.
func cause(err error) string {
	var e *decorum.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
