package robots

import (
	"slices"
	"strconv"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An Explanation is a verdict with all the rules that match.
type Explanation struct {
	Verdict
	PathAndQuery string `json:"path"` // path and query, which the rules are compared with
	// GroupAgentLineNumbers are the lines of the user-agent values in Group, from 1.
	GroupAgentLineNumbers []int `json:"group_lines,omitempty"`
	// Matches are the rule that decides, then those that lose, by rank.
	Matches []MatchingRule `json:"matches,omitempty"`
	// Exempt: the URL is /robots.txt, which no rule can disallow (FETCH-29).
	Exempt bool `json:"exempt,omitempty"`
	// PaceLines are the lines that ask for a pace: "crawl-delay: 2.5", then those of
	// Rules.RateAndVisitTimeLines.
	PaceLines []string `json:"pace,omitempty"`
	// IndexingVerdict is the verdict for the operator's main robot, if Verdict has
	// DisallowedForMainRobot.
	IndexingVerdict *Verdict `json:"indexer,omitempty"`
}

// A MatchingRule is a rule that matches a path, and the parts of the path that it matches.
type MatchingRule struct {
	Rule         string       `json:"rule"`           // as in Verdict.Rule
	Line         int          `json:"line"`           // its line number in the file, from 1
	RuleLength   int          `json:"octets"`         // the length that ranks it (PREC-16)
	LosingReason LosingReason `json:"lost,omitempty"` // why it does not decide; empty if it decides
	// Span is the part of the path that the rule matches, without the "*" implied at its end.
	Span          PathSpan   `json:"span"`
	WildcardSpans []PathSpan `json:"wildcards,omitempty"` // the part that each wildcard of the rule matches, in order
}

// A PathSpan is the part path[Start:End] of a path, as offsets in bytes.
type PathSpan struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// A LosingReason says why a matching rule does not decide.
type LosingReason string

// The losing reasons.
const (
	LostShorter  LosingReason = "shorter"  // a longer rule matches (PREC-01)
	LostTie      LosingReason = "tie"      // an allow rule of the same length matches (PREC-02)
	LostRepeated LosingReason = "repeated" // a rule of the same kind and length precedes it
)

// Explain returns the verdict of Check for u and the rules that lead to it. It takes time linear in
// the number of rules and is much slower than Check: it is meant for people, not for a crawl.
func (r *Rules) Explain(u decorum.URL) Explanation {
	e := Explanation{Verdict: r.Check(u), PathAndQuery: u.PathAndQuery(),
		GroupAgentLineNumbers: r.groupAgentLineNumbers, PaceLines: r.paceLines()}
	if e.DisallowedForMainRobot {
		e.IndexingVerdict = new(r.indexingRobotRules.Check(u))
	}
	if e.Exempt = e.PathAndQuery == "/robots.txt"; e.Exempt || e.PathAndQuery == "" {
		return e
	}
	// The first match is the rule that decides; the others lose to it.
	matches := r.ruleSet.MatchingRules(e.PathAndQuery)
	for i, m := range matches {
		match := MatchingRule{Rule: m.Text, Line: m.Line, RuleLength: m.Length,
			Span: PathSpan{m.Span.Start, m.Span.End}}
		for _, w := range m.WildcardSpans {
			match.WildcardSpans = append(match.WildcardSpans, PathSpan{w.Start, w.End})
		}
		if i > 0 {
			match.LosingReason = losingReason(&m, &matches[0])
		}
		e.Matches = append(e.Matches, match)
	}
	return e
}

// losingReason returns why winner decides and m does not.
func losingReason(m, winner *match.RuleMatch) LosingReason {
	switch {
	case m.Length < winner.Length:
		return LostShorter
	case m.Allow != winner.Allow:
		return LostTie
	}
	return LostRepeated
}

// paceLines returns the Crawl-delay in effect as a line, then the lines of RateAndVisitTimeLines.
func (r *Rules) paceLines() []string {
	lines := r.RateAndVisitTimeLines()
	if delay, ok := r.CrawlDelay(); ok {
		line := syntax.CrawlDelay.String() + ": " + strconv.FormatFloat(delay.Seconds(), 'f', -1, 64)
		lines = slices.Insert(lines, 0, line)
	}
	return lines
}
