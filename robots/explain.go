package robots

import (
	"slices"
	"strconv"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An Explanation is a verdict with all of the rules that led to it.
type Explanation struct {
	Verdict
	PathAndQuery          string         `json:"path"`                  // what rules are compared with: path and query
	GroupAgentLineNumbers []int          `json:"group_lines,omitempty"` // the user-agent lines of Group, counted from 1
	Matches               []MatchingRule `json:"matches,omitempty"`     // the rule that decides, then those that lose, by rank
	Exempt                bool           `json:"exempt,omitempty"`      // /robots.txt, which no rule closes (FETCH-29)
	PaceLines             []string       `json:"pace,omitempty"`        // "crawl-delay: 2.5", and what follows as Rules.RateAndVisitTimeLines
	IndexingVerdict       *Verdict       `json:"indexer,omitempty"`     // of the operator's main robot, if the verdict is DisallowedForMainRobot
}

// A MatchingRule is a rule that matches a path, and where.
type MatchingRule struct {
	Rule          string       `json:"rule"`                // as Verdict.Rule
	Line          int          `json:"line"`                // in the file, counted from 1
	RuleLength    int          `json:"octets"`              // the length that ranks it (PREC-16)
	LosingReason  LosingReason `json:"lost,omitempty"`      // why it does not decide; empty if it does
	Span          PathSpan     `json:"span"`                // what of the path it matches, without the "*" implied at its end
	WildcardSpans []PathSpan   `json:"wildcards,omitempty"` // what each of the rule's wildcards matches, in order
}

// A PathSpan is a part of a path, as offsets in bytes: Start is in it, End is not.
type PathSpan struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// A LosingReason is why a rule that matches does not decide.
type LosingReason string

// The losses.
const (
	LostShorter  LosingReason = "shorter"  // a longer rule matches (PREC-01)
	LostTie      LosingReason = "tie"      // an allow rule of the same length matches (PREC-02)
	LostRepeated LosingReason = "repeated" // a rule of the same kind and length stands before it
)

// Explain judges u as Check does, and says why. It is for people: it is much
// slower than Check, linear in the number of rules.
func (r *Rules) Explain(u decorum.URL) Explanation {
	e := Explanation{Verdict: r.Check(u), PathAndQuery: u.PathAndQuery(), GroupAgentLineNumbers: r.groupAgentLineNumbers, PaceLines: r.paceLines()}
	if e.DisallowedForMainRobot {
		e.IndexingVerdict = new(r.indexingRobotRules.Check(u))
	}
	if e.Exempt = e.PathAndQuery == "/robots.txt"; e.Exempt || e.PathAndQuery == "" {
		return e
	}
	matches := r.ruleSet.MatchingRules(e.PathAndQuery)
	for i, m := range matches {
		match := MatchingRule{Rule: m.Text, Line: m.Line, RuleLength: m.Length, Span: PathSpan{m.Span.Start, m.Span.End}}
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

// losingReason says why m does not decide, but winner does.
func losingReason(m, winner *match.RuleMatch) LosingReason {
	switch {
	case m.Length < winner.Length:
		return LostShorter
	case m.Allow != winner.Allow:
		return LostTie
	}
	return LostRepeated
}

// paceLines returns all lines that ask for a pace.
func (r *Rules) paceLines() []string {
	lines := r.RateAndVisitTimeLines()
	if delay, ok := r.CrawlDelay(); ok {
		line := syntax.CrawlDelay.String() + ": " + strconv.FormatFloat(delay.Seconds(), 'f', -1, 64)
		lines = slices.Insert(lines, 0, line)
	}
	return lines
}
