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

// Values of api.RefusalSummary.RefusedBy: what keeps URLs parked.
const (
	parkedByRobots    = "robots"
	parkedByTDMRep    = "tdmrep"
	ParkedByScope     = "scope"
	parkedForNoReason = "nothing" // nothing now: the crawl checks such URLs again when it resumes
)

// A RefusalTally counts parked URLs by reason. The keys are summaries without URLCount and Example,
// the values the same summaries with them.
type RefusalTally map[api.RefusalSummary]*api.RefusalSummary

// maxRulesPerHost is how many rules of one host a RefusalTally counts separately. It limits the
// report on a robots.txt with a hundred thousand rules.
const maxRulesPerHost = 1000

// AddURL counts u under reason, or under "other rules" if the tally is full.
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

// merge adds the summaries of another host.
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

// Sorted returns the summaries, those with the most URLs first.
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

// countParkedURLsByReason adds the parked URLs of origin o to h, by the reason that keeps each
// parked.
func (q *Inspector) countParkedURLsByReason(ctx context.Context, o decorum.Origin, h *HostReport) error {
	if err := q.loadClosedPatterns(ctx); err != nil {
		return err
	}
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

// ParkedReason returns why e is parked, and the URL that the crawl would request. It checks what the
// crawl checks before a visit, in the same order: the scope, then evaluate, the rules of the origin,
// which is nil if the rules are unknown.
func (q *Inspector) ParkedReason(
	e storage.Entry, evaluate func(decorum.URL) robots.Verdict,
) (decorum.URL, api.RefusalSummary) {
	if e.UseUncleanedURL {
		e.URL = e.UncleanedURL
	}
	if err := q.checkScope(e); err != nil {
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
		return e.URL, api.RefusalSummary{RefusedBy: parkedByTDMRep,
			RuleFileURL: aiuse.TDMRepURL(e.URL.Origin()).String(),
			Rule:        plaintext.ReplaceControlChars(v.Rule), RuleLine: v.Line}
	}
	return e.URL, api.RefusalSummary{RefusedBy: parkedByRobots, RuleFileURL: e.URL.Origin().RobotsURL().String(),
		Rule: plaintext.ReplaceControlChars(v.Rule), RuleLine: v.Line}
}
