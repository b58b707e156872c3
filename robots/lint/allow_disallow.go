package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Limits on how many rules are compared with each other.
const (
	maxComparedAgents = 100  // agents that a file names; in Diff, that two files name
	maxComparedRules  = 5000 // rules of all these agents together
)

// lintRules compiles the file as crawlers do, for each agent that it names. It reports rules that can
// never win, and rules that a robot of the 1994 standard reads differently.
func (l *linter) lintRules(body []byte) {
	file := l.opts.Parse(body)
	r := ruleLinter{parsed1994File: parseOriginal1994(l.text), lines: l.lines, neverWinsFindings: make(map[int]Finding),
		winningLines: make(map[int]bool)}
	// Check the rules of each agent, but those that several agents share only once.
	linted := make(map[string]bool) // by lineNumbers
	remaining := maxComparedRules
	tokens := file.AgentTokens()
	for _, token := range tokens[:min(len(tokens), maxComparedAgents)] {
		lines := file.RulesFor(robots.AgentFromName(token)).Lines()
		key := lineNumbers(lines)
		if linted[key] {
			continue
		}
		linted[key] = true
		set := compileRules(lines, file.Dialect())
		rules := set.Rules()
		count := min(len(rules), remaining)
		remaining -= count
		for i := range rules[:count] {
			r.lintRule(token, &set, &rules[i])
		}
	}
	// Report a rule that never wins for any of its agents.
	for line, f := range r.neverWinsFindings {
		if !r.winningLines[line] {
			l.findings = append(l.findings, f)
		}
	}
	for i, reason := range original1994Reasons {
		r.original1994Findings[i].addFindingIfAny(l, Hint, reason.requirement, reason.message,
			"a robot of the 1994 standard reads it differently", reason.advice)
	}
}

// A ruleLinter collects what lintRules learns about the rules of all agents.
type ruleLinter struct {
	parsed1994File       original1994File
	lines                []lintLine
	neverWinsFindings    map[int]Finding                           // by line: rules that never win for some agent
	winningLines         map[int]bool                              // the lines of rules that can win for some agent
	original1994Findings [len(original1994Reasons)]repeatedFinding // in the order of original1994Reasons
}

// lintRule checks the rule rl, which is in set, for the agent with the token.
func (l *ruleLinter) lintRule(token string, set *match.RuleSet, rl *match.Rule) {
	pattern := match.CompilePattern(rl.Path())
	if f, ok := neverWinsFinding(set, rl, pattern.Skeleton()); ok {
		l.neverWinsFindings[rl.Line] = f
		return
	}
	// Compare the verdicts for a path that the rule matches.
	l.winningLines[rl.Line] = true
	path := pattern.SamplePath("x")
	best := set.DecidingRule(path)
	if allowed := best == nil || best.Allow; allowed == l.parsed1994File.allows(token, path) {
		return
	}
	// Other findings report a plain rule that is in no group of the 1994 standard (LINT-02), in a
	// repeated one (GRP-06), or in the same group, where another rule makes the difference.
	reason := original1994ReasonIndex(rl)
	if reason != lastOriginal1994Reason || l.parsed1994File.isInAnotherRecord(rl.Line, token) {
		l.original1994Findings[reason].addOccurrence(&l.lines[rl.Line-1])
	}
}

// compileRules compiles the rules of an agent in the dialect d.
func compileRules(lines []robots.Line, d robots.Dialect) match.RuleSet {
	rules := make([]match.Rule, len(lines))
	for i, l := range lines {
		rules[i] = match.Rule{Text: l.Field + ": " + l.Value, Line: l.Number, Allow: l.Field == syntax.Allow.String()}
	}
	return match.NewRuleSet(rules, d == robots.GoogleOSS)
}

// lineNumbers returns the numbers of lines as a key for maps.
func lineNumbers(lines []robots.Line) string {
	numbers := make([]int, len(lines))
	for i, l := range lines {
		numbers[i] = l.Number
	}
	return fmt.Sprint(numbers)
}

// neverWinsFinding returns a finding if one other rule of set beats rl on every URL. Such a rule also
// matches skeleton, the skeleton of rl's pattern, so checking that path is enough.
func neverWinsFinding(set *match.RuleSet, rl *match.Rule, skeleton string) (Finding, bool) {
	best := set.DecidingRule(skeleton)
	if best == nil || best == rl {
		return Finding{}, false
	}
	isPlainer := isReadByMoreCrawlers(rl.Path(), best.Path())
	f := Finding{rl.Line, Warning, "PREC-01", fmt.Sprintf("%q can never win", truncateForMessage(rl.Text)),
		fmt.Sprintf("wherever it matches, %q on line %d matches too and wins",
			truncateForMessage(best.Text), best.Line),
		"remove it"}
	switch {
	case best.Allow != rl.Allow:
		f.Severity, f.Code, f.Advice = Error, "PREC-02", "make it longer than the other rule, or remove one of them"
	case best.Length == rl.Length:
		f.Severity, f.Code, f.Message = Hint, "PREC-09", fmt.Sprintf("%q is there already", truncateForMessage(rl.Text))
		if isPlainer {
			f.Advice = fmt.Sprintf("remove line %d: more crawlers can read this one", best.Line)
		}
	case isPlainer:
		return Finding{}, false // it is for the crawlers that cannot read the other rule
	}
	return f, true
}

// isReadByMoreCrawlers reports whether some crawlers can read path and not other: those that know no
// wildcards, or no path that begins with "*" (SYN-11).
func isReadByMoreCrawlers(path, other string) bool {
	hasWildcard := func(p string) bool { return strings.Contains(p, "*") || strings.HasSuffix(p, "$") }
	return !hasWildcard(path) && hasWildcard(other) || path[0] == '/' && other[0] == '*'
}

// original1994Reasons are the reasons why a robot of the 1994 standard reads a rule differently. The
// first that applies counts: see original1994ReasonIndex.
var original1994Reasons = [...]struct{ requirement, message, advice string }{
	{"COMPAT-01", "an allow rule opens what another rule closes", "such robots do not know allow: list what is closed"},
	{"COMPAT-02", "* in a path is a wildcard", "such robots read it as a character: list directories as well"},
	{"COMPAT-03", "$ at the end of a path marks its end", "such robots read it as a character"},
	{"COMPAT-04", "the rule is read in another group", "put blank lines between groups and nowhere else"},
}

// lastOriginal1994Reason is the index of the reason for a rule that has none of the others.
const lastOriginal1994Reason = len(original1994Reasons) - 1

// original1994ReasonIndex returns the index of the first reason that applies to the rule.
func original1994ReasonIndex(r *match.Rule) int {
	path := r.Path()
	return slices.Index([]bool{r.Allow, strings.Contains(path, "*"), strings.HasSuffix(path, "$"), true}, true)
}
