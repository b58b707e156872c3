package gate

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// An Explanation is a verdict with everything in a robots.txt that led to it. It has the fields of
// robots.Explanation and two more: SHA256 and UsageSignals.
type Explanation struct {
	robots.Verdict
	SHA256       string `json:"file_sha256,omitempty"` // the hash of the file, in hex; empty without a file
	PathAndQuery string `json:"path"`                  // path and query, which the rules are compared with
	// GroupAgentLineNumbers are the lines of the user-agent values in Group, from 1.
	GroupAgentLineNumbers []int `json:"group_lines,omitempty"`
	// Matches are the rule that decides, then those that lose, by rank.
	Matches []robots.MatchingRule `json:"matches,omitempty"`
	// Exempt: the URL is /robots.txt, which no rule can disallow (FETCH-29).
	Exempt       bool          `json:"exempt,omitempty"`
	UsageSignals aiuse.Signals `json:"signals,omitempty"` // the file's preferences about the use of the content
	// PaceLines are the lines that ask for a pace: "crawl-delay: 2.5", then those of
	// Rules.RateAndVisitTimeLines.
	PaceLines []string `json:"pace,omitempty"`
	// IndexingVerdict is the verdict for the operator's main robot, if Verdict has
	// DisallowedForMainRobot.
	IndexingVerdict *robots.Verdict `json:"indexer,omitempty"`
}

// NewExplanation returns e with the hash of its file and the file's preferences about the use of the
// content.
func NewExplanation(e robots.Explanation, sha256 string, signals aiuse.Signals) Explanation {
	return Explanation{
		Verdict: e.Verdict, SHA256: sha256, PathAndQuery: e.PathAndQuery,
		GroupAgentLineNumbers: e.GroupAgentLineNumbers, Matches: e.Matches,
		Exempt: e.Exempt, UsageSignals: signals, PaceLines: e.PaceLines, IndexingVerdict: e.IndexingVerdict,
	}
}

// Explain returns the explanation of u by the last known rules of o, which need not be the origin of
// u. While no rules are known, nothing is allowed. Explain does not report an outage that postpones
// the origin; Check does.
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

// ExplainURLCleaning returns u as CleanURL does when the rules of its origin are cached, and which
// line removes which parameter. It reads the stored file.
func (g *Gate) ExplainURLCleaning(ctx context.Context,
	u decorum.URL) (clean decorum.URL, removed []robots.RemovedParam, err error) {
	file, err := g.currentFile(ctx, u.Origin())
	clean, removed = file.ExplainURLCleaning(u)
	return clean, removed, err
}
