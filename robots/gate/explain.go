package gate

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

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
