package robots

import (
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Rules are what one file says to one agent. They are immutable and safe for
// concurrent use.
type Rules struct {
	ruleSet               match.RuleSet
	groupAgents           string
	groupAgentLineNumbers []int // the lines of the user-agent values in group
	delay                 time.Duration
	hasDelay              bool // a delay is given
	rateAndVisitTimes     rateAndVisitTimes
	indexingRobotRules    *Rules // of the robot without which nothing is indexed; nil: the agent itself
	disallowByDefault     bool   // what no rule decides is disallowed
	isGoogleOSS           bool   // CheckRawURL compares URLs as they stand
}

// A Verdict says whether a URL may be visited, and why.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"` // the rule that decided, as in "disallow: /x"; empty if none did
	Line    int    `json:"line,omitempty"` // its line in the file, counted from 1; 0 if none did
	Group   string `json:"group"`          // the user-agent values of its group, with commas; empty: no group
	// DisallowedForMainRobot marks what the agent may fetch and the main robot of its
	// operator may not: it is never to be indexed (EXC-06). Only agents that are
	// IgnoresStarRules have another main robot.
	DisallowedForMainRobot bool `json:"not_for_indexing,omitempty"`
}

// AllowAll returns rules that allow everything.
func AllowAll() *Rules { return &Rules{} }

// DisallowAll returns rules that allow nothing but /robots.txt.
func DisallowAll() *Rules { return &Rules{disallowByDefault: true} }

// Check judges u: the longest rule that matches wins, allow wins a tie
// (PREC-01, PREC-02), and without one u is allowed. /robots.txt is never
// disallowed, whatever the dialect (FETCH-29), the zero URL always. Check allocates
// nothing. Its time grows with the logarithm of the number of rules without
// wildcards, and at worst with the length of each other rule times the length
// of u.
func (r *Rules) Check(u decorum.URL) Verdict {
	path := u.PathAndQuery()
	if path == "" || path == "/robots.txt" {
		return Verdict{Allowed: path != "", Group: r.groupAgents}
	}
	v := r.verdictOfRule(r.ruleSet.DecidingRule(path))
	v.DisallowedForMainRobot = v.Allowed && r.indexingRobotRules != nil && !r.indexingRobotRules.Check(u).Allowed
	return v
}

// CheckRawURL judges a URL as it is written. In the GoogleOSS dialect the string
// is compared as it stands, whatever it is: the verdict is that of Google's
// parser, which makes no exception for /robots.txt either. In others the URL
// is brought into canonical form and checked as by Check; what is no URL is
// disallowed.
func (r *Rules) CheckRawURL(url string) Verdict {
	if r.isGoogleOSS {
		return r.verdictOfRule(r.ruleSet.DecidingRule(googleOSSPath(url)))
	}
	u, err := decorum.ParseURL(url)
	if err != nil {
		u = decorum.URL{}
	}
	return r.Check(u)
}

// verdictOfRule returns the verdict of the rule that wins, nil if none matches.
func (r *Rules) verdictOfRule(best *match.Rule) Verdict {
	if best == nil {
		return Verdict{Allowed: !r.disallowByDefault, Group: r.groupAgents}
	}
	return Verdict{Allowed: best.Allow, Rule: best.Text, Line: best.Line, Group: r.groupAgents}
}

// CrawlDelay returns the pause that the file asks the agent to make, and false
// if it asks for none. It is never negative and at most a year.
func (r *Rules) CrawlDelay() (time.Duration, bool) { return r.delay, r.hasDelay }

// Lines returns the allow and disallow lines that bind the agent, in the order of the
// file. In the Yandex dialect an empty line is there as what it means.
func (r *Rules) Lines() []Line {
	rules := r.ruleSet.Rules()
	lines := make([]Line, len(rules))
	for i, r := range rules {
		field, value, _ := strings.Cut(r.Text, ": ")
		lines[i] = Line{Field: field, Value: value, Number: r.Line}
	}
	return lines
}

// newRuleList makes a rule of each line, without the length that its pattern
// tells. Their texts are cut from one string.
func newRuleList(lines []syntax.Line) []match.Rule {
	size := 0
	for _, l := range lines {
		size += len(l.Field.String()) + len(": ") + len(l.Value)
	}
	var b strings.Builder
	b.Grow(size) // so that what has been written stays where it is
	rules := make([]match.Rule, len(lines))
	for i, l := range lines {
		start := b.Len()
		b.WriteString(l.Field.String())
		b.WriteString(": ")
		b.WriteString(l.Value)
		rules[i] = match.Rule{Text: b.String()[start:], Line: int(l.Number), Allow: l.Field == syntax.Allow}
	}
	return rules
}
