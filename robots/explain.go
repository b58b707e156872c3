package robots

import (
	"slices"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// An Explanation is a verdict with all that led to it.
type Explanation struct {
	Verdict
	// SHA256 is the hash of the file in hex. Rules do not know their file, so
	// it is empty unless Gate.Explain or the caller fills it in.
	SHA256                string       `json:"file_sha256,omitempty"`
	PathAndQuery          string       `json:"path"`                  // what rules are compared with: path and query
	GroupAgentLineNumbers []int        `json:"group_lines,omitempty"` // the user-agent lines of Group, counted from 1
	Matches               []RuleMatch  `json:"matches,omitempty"`     // the rule that decides, then those that lose, by rank
	Exempt                bool         `json:"exempt,omitempty"`      // /robots.txt, which no rule closes (FETCH-29)
	UsageSignals          UsageSignals `json:"signals,omitempty"`     // what the file asks of the use of the content
	PaceLines             []string     `json:"pace,omitempty"`        // "crawl-delay: 2.5", and what follows as Rules.RateAndVisitTimeLines
	IndexingVerdict       *Verdict     `json:"indexer,omitempty"`     // of the operator's main robot, if the verdict is DisallowedForMainRobot
}

// A RuleMatch is a rule that matches a path, and where.
type RuleMatch struct {
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
	e := Explanation{Verdict: r.Check(u), PathAndQuery: u.PathAndQuery(), GroupAgentLineNumbers: r.groupAgentLineNumbers, UsageSignals: r.UsageSignalsForURL(u), PaceLines: r.paceLines()}
	if e.DisallowedForMainRobot {
		e.IndexingVerdict = new(r.mainRobotRules.Check(u))
	}
	if e.Exempt = e.PathAndQuery == "/robots.txt"; e.Exempt || e.PathAndQuery == "" {
		return e
	}
	var matching []ruleWithPattern
	for i := range r.rules {
		for _, m := range r.patternsOfRule(&r.rules[i]) {
			if m.pattern.matches(e.PathAndQuery) {
				matching = append(matching, m)
			}
		}
	}
	slices.SortFunc(matching, func(a, b ruleWithPattern) int { return a.rule.compare(b.rule) })
	for _, m := range matching {
		e.Matches = append(e.Matches, m.explainMatch(e.PathAndQuery, matching[0].rule))
	}
	return e
}

// paceLines returns all lines that ask for a pace.
func (r *Rules) paceLines() []string {
	lines := r.RateAndVisitTimeLines()
	if delay, ok := r.CrawlDelay(); ok {
		line := crawlDelay.String() + ": " + strconv.FormatFloat(delay.Seconds(), 'f', -1, 64)
		lines = slices.Insert(lines, 0, line)
	}
	return lines
}

// A ruleWithPattern is a rule, and a pattern that it stands for.
type ruleWithPattern struct {
	*rule
	pattern pattern
}

// patternsOfRule returns what a rule means: in the GoogleOSS dialect some mean two
// things.
func (r *Rules) patternsOfRule(rl *rule) []ruleWithPattern {
	if !r.isGoogleOSS {
		return []ruleWithPattern{{rl, *rl.compilePattern()}}
	}
	p, dir := compileGoogleOSSRulePatterns(rl.path(), rl.allow)
	if dir == nil {
		return []ruleWithPattern{{rl, p}}
	}
	dirRule := *rl
	dirRule.length = dir.length
	return []ruleWithPattern{{rl, p}, {&dirRule, *dir}}
}

// explainMatch says where a rule that matches path does so, and how it fares
// against the winner.
func (r ruleWithPattern) explainMatch(path string, winner *rule) RuleMatch {
	m := RuleMatch{Rule: r.lineText, Line: r.line, RuleLength: r.length}
	m.Span, m.WildcardSpans = r.pattern.matchSpans(path)
	switch {
	case r.rule == winner:
	case r.length < winner.length:
		m.LosingReason = LostShorter
	case r.allow != winner.allow:
		m.LosingReason = LostTie
	default:
		m.LosingReason = LostRepeated
	}
	return m
}

// path returns the value of the rule.
func (r *rule) path() string {
	_, path, _ := strings.Cut(r.lineText, ": ")
	return path
}

// compilePattern returns the pattern of the rule, in all dialects but GoogleOSS.
func (r *rule) compilePattern() *pattern {
	p := compilePattern(r.path())
	return &p
}

// matchSpans returns what of path, which p matches, p takes, and what of it each
// wildcard before a literal stands for. It takes literals where match does.
func (p *pattern) matchSpans(path string) (whole PathSpan, wildcards []PathSpan) {
	at := p.head.matchedPrefixLen(path)
	for i := range p.tail {
		l, end := &p.tail[i], 0
		if p.anchored && i == len(p.tail)-1 {
			end = len(path)
		} else {
			end = at + l.indexEnd(path[at:])
		}
		start := at
		for l.matchedPrefixLen(path[start:end]) != end-start {
			start++
		}
		wildcards = append(wildcards, PathSpan{at, start})
		at = end
	}
	return PathSpan{0, at}, wildcards
}
