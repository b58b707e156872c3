package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/storage"
)

// Why URLs are parked.
const (
	parkedByRobots    = "robots"
	parkedByTDMRep    = "tdmrep"
	ParkedByScope     = "scope"
	parkedForNoReason = "nothing" // any more: the crawl will see when it goes on
)

// RefusalTally count URLs by why they are parked: an api.RefusalSummary without URLs and
// Example.
type RefusalTally map[api.RefusalSummary]*api.RefusalSummary

// maxRulesPerHost is how many rules of one host are told apart. It bounds what a file
// of a hundred thousand rules can make a report of.
const maxRulesPerHost = 1000

// AddURL counts a URL.
func (rs RefusalTally) AddURL(reason api.RefusalSummary, u decorum.URL) {
	if rs[reason] == nil && len(rs) >= maxRulesPerHost {
		reason.Rule, reason.RuleLine = "other rules", 0
	}
	if rs[reason] == nil {
		r := reason
		r.Example = u.String()
		rs[reason] = &r
	}
	rs[reason].URLCount++
}

// merge adds what is of another host.
func (rs RefusalTally) merge(more []api.RefusalSummary) {
	for _, r := range more {
		reason := r
		reason.URLCount, reason.Example = 0, ""
		if rs[reason] == nil {
			rs[reason] = &r
			continue
		}
		rs[reason].URLCount += r.URLCount
	}
}

// Sorted returns the refusals, first what keeps most URLs out.
func (rs RefusalTally) Sorted() []api.RefusalSummary {
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

// countParkedURLsByReason finds out for each parked URL of an origin what keeps it parked.
func (q *Inspector) countParkedURLsByReason(ctx context.Context, o decorum.Origin, h *HostReport) error {
	evaluate, err := crawler.NewVerdictFunc(ctx, q.Gate, q.FrontierStore, o)
	if err != nil {
		return err
	}
	if h.parkedURLTally == nil {
		h.parkedURLTally = RefusalTally{}
	}
	return q.FrontierStore.OriginURLsInState(ctx, o, storage.StateParked, func(e storage.Entry, _ time.Time) bool {
		u, reason := q.ParkedReason(e, evaluate)
		switch reason.RefusedBy {
		case ParkedByScope:
			h.OutOfScope++
		case parkedByRobots:
			h.BlockedByRobots++
		case parkedByTDMRep:
			h.BlockedByTDMRep++
		}
		h.parkedURLTally.AddURL(reason, u)
		return true
	})
}

// ParkedReason asks what the crawl asks before a visit to e, in its order: the
// scope, and then the rules, which are nil if they are not known.
func (q *Inspector) ParkedReason(e storage.Entry, evaluate func(decorum.URL) robots.Verdict) (decorum.URL, api.RefusalSummary) {
	if e.UseUncleanedURL {
		e.URL = e.UncleanedURL
	}
	if err := q.Scope().Check(e); err != nil {
		return e.URL, api.RefusalSummary{RefusedBy: ParkedByScope, Rule: engine.InnerErrorText(err)}
	}
	if evaluate == nil {
		return e.URL, api.RefusalSummary{RefusedBy: parkedForNoReason, Rule: "its robots.txt is not known"}
	}
	v := evaluate(e.URL)
	if v.Allowed {
		return e.URL, api.RefusalSummary{RefusedBy: parkedForNoReason, Rule: "allowed by now"}
	}
	if v.Group == string(aiuse.InTDMRep) {
		return e.URL, api.RefusalSummary{RefusedBy: parkedByTDMRep, RuleFileURL: aiuse.TDMRepURL(e.URL.Origin()).String(), Rule: plaintext.ReplaceControlChars(v.Rule), RuleLine: v.Line}
	}
	return e.URL, api.RefusalSummary{RefusedBy: parkedByRobots, RuleFileURL: e.URL.Origin().RobotsURL().String(), Rule: plaintext.ReplaceControlChars(v.Rule), RuleLine: v.Line}
}
