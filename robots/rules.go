package robots

import (
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Rules are the rules of one file for one agent. They are immutable and safe for concurrent use. The
// zero Rules allow every URL.
type Rules struct {
	ruleSet               match.RuleSet
	groupAgents           string // see Verdict.Group
	groupAgentLineNumbers []int  // the lines of the user-agent values in groupAgents
	delay                 time.Duration
	hasDelay              bool // a Crawl-delay line, perhaps of 0, binds the agent
	rateAndVisitTimes     rateAndVisitTimes
	indexingRobotRules    *Rules // of the robot whose rules decide about indexing; nil: these rules decide
	disallowByDefault     bool   // URLs that no rule matches are disallowed
	isGoogleOSS           bool   // CheckRawURL compares URLs without normalizing them
}

// A Verdict says whether a URL may be visited, and why.
type Verdict struct {
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule,omitempty"` // the rule that decided, as in "disallow: /x"; empty if none did
	Line    int    `json:"line,omitempty"` // the line number of Rule in the file, from 1; 0 if no rule decided
	Group   string `json:"group"`          // the user-agent values of the agent's group, with commas; empty: no group
	// DisallowedForMainRobot marks a URL that the agent may fetch and its operator's main robot may
	// not: the page must never be indexed (EXC-06). Only agents that IgnoresStarRules reports have
	// another main robot.
	DisallowedForMainRobot bool `json:"not_for_indexing,omitempty"`
}

// AllowAll returns rules that allow every URL.
func AllowAll() *Rules { return &Rules{} }

// DisallowAll returns rules that allow only /robots.txt.
func DisallowAll() *Rules { return &Rules{disallowByDefault: true} }

// Check returns the verdict for u. The longest matching rule decides, and allow wins a tie (PREC-01,
// PREC-02). If no rule matches, u is allowed, except by DisallowAll. In every dialect /robots.txt is
// allowed (FETCH-29) and the zero URL is disallowed.
//
// Check does not allocate. Its time is logarithmic in the number of rules without wildcards; for
// each other rule it adds at worst the length of the rule times the length of u.
func (r *Rules) Check(u decorum.URL) Verdict {
	path := u.PathAndQuery()
	if path == "" || path == "/robots.txt" {
		return Verdict{Allowed: path != "", Group: r.groupAgents}
	}
	v := r.verdictOfRule(r.ruleSet.DecidingRule(path))
	v.DisallowedForMainRobot = v.Allowed && r.indexingRobotRules != nil && !r.indexingRobotRules.Check(u).Allowed
	return v
}

// CheckRawURL returns the verdict for a URL in any spelling. The GoogleOSS dialect compares the
// string without normalizing or validating it, and does not exempt /robots.txt, so that the verdict
// equals that of Google's parser. The other dialects parse the URL and call Check; an invalid URL is
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

// verdictOfRule returns the verdict if the rule best decides; a nil best means that no rule matches.
func (r *Rules) verdictOfRule(best *match.Rule) Verdict {
	if best == nil {
		return Verdict{Allowed: !r.disallowByDefault, Group: r.groupAgents}
	}
	return Verdict{Allowed: best.Allow, Rule: best.Text, Line: best.Line, Group: r.groupAgents}
}

// CrawlDelay returns the Crawl-delay that binds the agent, the longest of several, and reports whether
// the file sets one. It is never negative and at most a year.
func (r *Rules) CrawlDelay() (time.Duration, bool) { return r.delay, r.hasDelay }

// Lines returns the allow and disallow lines that bind the agent, in the order of the file. In the
// Yandex dialect a line without a path appears as the line that it stands for.
func (r *Rules) Lines() []Line {
	rules := r.ruleSet.Rules()
	lines := make([]Line, len(rules))
	for i, r := range rules {
		field, value, _ := strings.Cut(r.Text, ": ")
		lines[i] = Line{Field: field, Value: value, Number: r.Line}
	}
	return lines
}

// newRuleList returns a rule for each line, without Rule.Length, which match.NewRuleSet sets. The
// texts of the rules share one allocation.
func newRuleList(lines []syntax.Line) []match.Rule {
	size := 0
	for _, l := range lines {
		size += len(l.Field.String()) + len(": ") + len(l.Value)
	}
	var b strings.Builder
	b.Grow(size) // the texts below refer to the buffer, which must not move
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
