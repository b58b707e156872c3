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

// refusals count URLs by why they are parked: an api.Refusal without URLs and
// Example.
type refusals map[api.Refusal]*api.Refusal

// maxRules is how many rules of one host are told apart. It bounds what a file
// of a hundred thousand rules can make a report of.
const maxRules = 1000

// note counts a URL.
func (rs refusals) note(why api.Refusal, u decorum.URL) {
	if rs[why] == nil && len(rs) >= maxRules {
		why.Rule, why.Line = "other rules", 0
	}
	if rs[why] == nil {
		r := why
		r.Example = u.String()
		rs[why] = &r
	}
	rs[why].URLs++
}

// merge adds what is of another host.
func (rs refusals) merge(more []api.Refusal) {
	for _, r := range more {
		why := r
		why.URLs, why.Example = 0, ""
		if rs[why] == nil {
			rs[why] = &r
			continue
		}
		rs[why].URLs += r.URLs
	}
}

// list returns the refusals, first what keeps most URLs out.
func (rs refusals) list() []api.Refusal {
	list := make([]api.Refusal, 0, len(rs))
	for _, r := range rs {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b api.Refusal) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), strings.Compare(a.Rule, b.Rule))
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
		switch why.Why {
		case whyScope:
			h.OutOfScope++
		case whyRobots:
			h.Blocked++
		case whyTDMRep:
			h.Reserved++
		}
		h.refusals.note(why, u)
		return true
	})
}

// whyParked asks what the crawl asks before a visit to e, in its order: the
// scope, and then the rules, which are nil if they are not known.
func (q *inquiry) whyParked(e storage.Entry, evaluate func(decorum.URL) robots.Verdict) (decorum.URL, api.Refusal) {
	if e.AsFound {
		e.URL = e.Found
	}
	if q.scope != nil {
		if err := q.scope.Check(e); err != nil {
			return e.URL, api.Refusal{Why: whyScope, Rule: cause(err)}
		}
	}
	if evaluate == nil {
		return e.URL, api.Refusal{Why: whyNothing, Rule: "its robots.txt is not known"}
	}
	v := evaluate(e.URL)
	if v.Allowed {
		return e.URL, api.Refusal{Why: whyNothing, Rule: "allowed by now"}
	}
	if v.Group == string(robots.InTDMRep) {
		return e.URL, api.Refusal{Why: whyTDMRep, File: robots.TDMRepURL(e.URL.Origin()).String(), Rule: plain(v.Rule), Line: v.Line}
	}
	return e.URL, api.Refusal{Why: whyRobots, File: e.URL.Origin().RobotsURL().String(), Rule: plain(v.Rule), Line: v.Line}
}

// cause returns why something was refused, without what and where.
func cause(err error) string {
	var e *decorum.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
