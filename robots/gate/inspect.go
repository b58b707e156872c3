package gate

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// VerdictFunc returns how the origin's URLs are judged by the rules that Rules
// returns: as Check judges them while these hold, purposes included. It is nil
// if no rules are known.
func (g *Gate) VerdictFunc(ctx context.Context, o decorum.Origin) (func(decorum.URL) robots.Verdict, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil || s.rules == nil {
		return nil, err
	}
	return func(u decorum.URL) robots.Verdict { return g.verdict(s, u) }, nil
}

// verdict is the one place in which a URL is judged.
func (g *Gate) verdict(s *originState, u decorum.URL) robots.Verdict {
	return aiuse.Check(s.rules, s.usageRules, u, g.cfg.Purposes)
}

// Purposes returns what the crawl is for.
func (g *Gate) Purposes() []string { return g.cfg.Purposes }

// CachedUsageSignals returns what the origin's robots.txt asks of the use of u, as far as the
// file is in mind: it does no I/O. After Check has judged a URL, it is.
func (g *Gate) CachedUsageSignals(u decorum.URL) aiuse.Signals {
	if s := g.cache.stateIfCached(u.Origin()); s != nil {
		return s.usageRules.SignalsForURL(u)
	}
	return nil
}

// PostponedReason says why the origin's pages cannot be visited now; nil if they can,
// or if it is time to ask for its robots.txt. Unlike Check it claims nothing.
func (g *Gate) PostponedReason(ctx context.Context, now time.Time, o decorum.Origin) (*OriginPostponedError, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil || !s.arePagesPostponed || !now.Before(s.expiresAt) {
		return nil, err
	}
	return g.postponedError(s, s.expiresAt, s.postponedReason), nil
}

// CheckPostponed returns the error of Check for a page that waits for the robots.txt of its
// origin; nil if it does not wait, or if it is time to ask for the file. Unlike Check it claims
// nothing, and knows nothing of lookups that are under way.
func (g *Gate) CheckPostponed(ctx context.Context, now time.Time, u decorum.URL) error {
	s, err := g.lastKnownState(ctx, u.Origin())
	if err != nil || !s.arePagesPostponed || !now.Before(s.expiresAt) {
		return err
	}
	return g.checkPostponed(now, u, s)
}

// CheckKnownRules returns the error of Check for a URL that the rules which Rules returns
// disallow; nil if they allow it, or if none are known.
func (g *Gate) CheckKnownRules(ctx context.Context, u decorum.URL) error {
	s, err := g.lastKnownState(ctx, u.Origin())
	if err != nil || s.rules == nil {
		return err
	}
	if v := g.verdict(s, u); !v.Allowed {
		return disallowedError(u, v, s)
	}
	return nil
}

// LastFetchSummary returns what the Gate last learnt of an origin's robots.txt, however
// long ago. Its Outcome is OutcomeUnknown if that is nothing.
func (g *Gate) LastFetchSummary(ctx context.Context, o decorum.Origin) (FetchSummary, error) {
	if s := g.cache.stateIfCached(o); s != nil {
		return s.fetchSummary, nil
	}
	r, err := g.records.loadRecord(ctx, o)
	return g.compileState(&r, new(robots.File)).fetchSummary, err // what stands in the file makes no difference
}

// ExpiresAt returns until when what the Gate knows of an origin's robots.txt holds:
// after it, the next who wants to visit the origin makes it ask again. The time
// is zero if nothing was ever known.
func (g *Gate) ExpiresAt(ctx context.Context, o decorum.Origin) (time.Time, error) {
	s, err := g.lastKnownState(ctx, o)
	return s.expiresAt, err
}

// An Explanation is a verdict with all of a robots.txt that led to it. Its fields are those of
// robots.Explanation, and two that only the file and its rules of use know.
type Explanation struct {
	robots.Verdict
	SHA256                string                `json:"file_sha256,omitempty"` // the hash of the file in hex; empty if there is none
	PathAndQuery          string                `json:"path"`                  // what rules are compared with: path and query
	GroupAgentLineNumbers []int                 `json:"group_lines,omitempty"` // the user-agent lines of Group, counted from 1
	Matches               []robots.MatchingRule `json:"matches,omitempty"`     // the rule that decides, then those that lose, by rank
	Exempt                bool                  `json:"exempt,omitempty"`      // /robots.txt, which no rule closes (FETCH-29)
	UsageSignals          aiuse.Signals         `json:"signals,omitempty"`     // what the file asks of the use of the content
	PaceLines             []string              `json:"pace,omitempty"`        // "crawl-delay: 2.5", and what follows as Rules.RateAndVisitTimeLines
	IndexingVerdict       *robots.Verdict       `json:"indexer,omitempty"`     // of the operator's main robot, if the verdict is DisallowedForMainRobot
}

// NewExplanation returns what rules say of a URL, with the hash of their file and what the file
// asks of the use of the content.
func NewExplanation(e robots.Explanation, sha256 string, signals aiuse.Signals) Explanation {
	return Explanation{
		Verdict: e.Verdict, SHA256: sha256, PathAndQuery: e.PathAndQuery, GroupAgentLineNumbers: e.GroupAgentLineNumbers, Matches: e.Matches,
		Exempt: e.Exempt, UsageSignals: signals, PaceLines: e.PaceLines, IndexingVerdict: e.IndexingVerdict,
	}
}

// Explain says how the rules that Rules returns for o judge u, which need not be of that
// origin. Nothing is allowed while none are known. Whether an outage closes the origin is
// for Check to say.
func (g *Gate) Explain(ctx context.Context, o decorum.Origin, u decorum.URL) (Explanation, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil {
		return Explanation{}, err
	}
	if s.rules == nil {
		return NewExplanation(robots.DisallowAll().Explain(u), "", nil), nil
	}
	return NewExplanation(s.rules.Explain(u), s.fetchSummary.SHA256, s.usageRules.SignalsForURL(u)), nil
}

// ExplainURLCleaning returns u as CleanURL does when the origin's file is in mind, and
// which line took what off.
func (g *Gate) ExplainURLCleaning(ctx context.Context, u decorum.URL) (clean decorum.URL, removed []robots.RemovedParam, err error) {
	file, err := g.currentFile(ctx, u.Origin())
	clean, removed = file.ExplainURLCleaning(u)
	return clean, removed, err
}
