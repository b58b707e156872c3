package daemon

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// A refusal is why URLs are parked: a rule of a robots.txt, or the scope.
type refusal struct {
	URLs int `json:"urls"`
	reason
	Example string `json:"example"` // one of the URLs
}

type reason struct {
	Why  string `json:"why"`              // robots, scope or nothing
	File string `json:"robots,omitempty"` // the robots.txt
	Rule string `json:"rule,omitempty"`   // its rule, or what of the scope
	Line int    `json:"line,omitempty"`   // of the rule
}

// Why URLs are parked.
const (
	whyRobots  = "robots"
	whyScope   = "scope"
	whyNothing = "nothing" // any more: the crawl will see when it goes on
)

// refusals count URLs by why they are parked.
type refusals map[reason]*refusal

// maxRules is how many rules of one host are told apart. It bounds what a file
// of a hundred thousand rules can make a report of.
const maxRules = 1000

// note counts a URL.
func (rs refusals) note(r reason, u decorum.URL) {
	if rs[r] == nil && len(rs) >= maxRules {
		r.Rule, r.Line = "other rules", 0
	}
	if rs[r] == nil {
		rs[r] = &refusal{reason: r, Example: u.String()}
	}
	rs[r].URLs++
}

// merge adds what is of another host.
func (rs refusals) merge(more []refusal) {
	for _, r := range more {
		if rs[r.reason] == nil {
			rs[r.reason] = &refusal{reason: r.reason, Example: r.Example}
		}
		rs[r.reason].URLs += r.URLs
	}
}

// list returns the refusals, first what keeps most URLs out.
func (rs refusals) list() []refusal {
	list := make([]refusal, 0, len(rs))
	for _, r := range rs {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b refusal) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), strings.Compare(a.Rule, b.Rule))
	})
	return list
}

// judgeParked finds out for each parked URL of an origin what keeps it parked.
func (k *kept) judgeParked(ctx context.Context, o decorum.Origin, h *hostReport) error {
	judge, err := k.gate.Judge(ctx, o)
	if err != nil {
		return err
	}
	if h.refusals == nil {
		h.refusals = refusals{}
	}
	return k.store.URLs(ctx, o, storage.InParking, func(e storage.Entry, _ time.Time) bool {
		u, why := k.whyParked(e, judge)
		switch why.Why {
		case whyScope:
			h.OutOfScope++
		case whyRobots:
			h.Blocked++
		}
		h.refusals.note(why, u)
		return true
	})
}

// whyParked asks what the crawl asks before a visit to e, in its order: the
// scope, and then the rules, which are nil if they are not known.
func (k *kept) whyParked(e storage.Entry, judge func(decorum.URL) robots.Verdict) (decorum.URL, reason) {
	if e.AsFound {
		e.URL = e.Found
	}
	if k.scope != nil {
		if err := k.scope.Check(e); err != nil {
			return e.URL, reason{Why: whyScope, Rule: cause(err)}
		}
	}
	if judge == nil {
		return e.URL, reason{Why: whyNothing, Rule: "its robots.txt is not known"}
	}
	v := judge(e.URL)
	if v.Allowed {
		return e.URL, reason{Why: whyNothing, Rule: "allowed by now"}
	}
	return e.URL, reason{Why: whyRobots, File: e.URL.Origin().RobotsURL().String(), Rule: plain(v.Rule), Line: v.Line}
}

// cause returns why something was refused, without what and where.
func cause(err error) string {
	var e *decorum.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}
