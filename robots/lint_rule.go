package robots

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of how many rules are compared with each other.
const (
	maxComparedAgents = 100
	maxComparedRules  = 5000
)

// lintRules compiles the file as crawlers do, for each agent that it names, and
// looks for rules that can never win and for what a robot of the 1994 standard
// makes of the others.
func (l *linter) lintRules(body []byte) {
	file := l.o.Parse(body)
	r := ruleLint{old: parseClassic(l.text), lines: l.lines, dead: make(map[int]Finding), alive: make(map[int]bool)}
	judged := make(map[string]bool) // sets of rules
	rest := maxComparedRules
	tokens := file.Agents()
	for _, token := range tokens[:min(len(tokens), maxComparedAgents)] {
		rules := file.For(Named(token))
		key := fmt.Sprint(ruleLineNumbers(rules.all))
		if judged[key] {
			continue
		}
		judged[key] = true
		count := min(len(rules.all), rest)
		rest -= count
		for i := range rules.all[:count] {
			r.lintRule(token, rules, &rules.all[i])
		}
	}
	for line, f := range r.dead {
		if !r.alive[line] {
			l.found = append(l.found, f)
		}
	}
	for i, why := range classicReasons {
		r.other[i].say(l, LintHint, why.requirement, why.message, "a robot of the 1994 standard reads it otherwise", why.advice)
	}
}

// A ruleLint is what is known of rules, by their lines.
type ruleLint struct {
	old   classic
	lines []source
	dead  map[int]Finding // never win for some agent
	alive map[int]bool    // win for some agent
	other [len(classicReasons)]tally
}

// lintRule looks at one rule of an agent.
func (l *ruleLint) lintRule(token string, rules *Rules, made *rule) {
	if f, ok := rules.neverWins(made); ok {
		l.dead[made.line] = f
		return
	}
	l.alive[made.line] = true
	path := made.sample()
	best := rules.find(path)
	if allowed := best == nil || best.allow; allowed != l.old.allows(token, path) {
		l.other[made.classicReason()].add(&l.lines[made.line-1])
	}
}

func ruleLineNumbers(rules []rule) []int {
	numbers := make([]int, len(rules))
	for i := range rules {
		numbers[i] = rules[i].line
	}
	return numbers
}

// neverWins reports a rule that loses to the same rule on every URL. Such a
// rule matches also the skeleton of the pattern, so that is what is judged.
func (r *Rules) neverWins(made *rule) (Finding, bool) {
	best := r.find(made.skeleton())
	if best == nil || best == made {
		return Finding{}, false
	}
	f := Finding{Line: made.line, Severity: LintWarning, Requirement: "PREC-01"}
	effect := fmt.Sprintf("wherever it matches, %q on line %d does too, and wins", clip(best.text), best.line)
	switch {
	case best.allow != made.allow:
		f.Severity, f.Requirement = LintError, "PREC-02"
		f.Message, f.Advice = fmt.Sprintf("%q can never win", clip(made.text)), "make it longer than the other, or take one of them out"
	case best.length == made.length:
		f.Severity, f.Requirement = LintHint, "PREC-09"
		f.Message, f.Advice = fmt.Sprintf("%q is there already", clip(made.text)), "take it out"
	default:
		f.Message, f.Advice = fmt.Sprintf("%q can never win", clip(made.text)), "take it out"
	}
	f.Effect = effect
	return f, true
}

// gap stands in a skeleton for what a wildcard matches. No literal has it, so
// only wildcards match it.
const gap = "\x00"

// skeleton returns a path that matches only patterns which match whatever the
// rule does.
func (r *rule) skeleton() string {
	p := r.compiled()
	if p.anchored {
		return p.fill(gap)
	}
	return p.fill(gap) + gap
}

// sample returns a path that the rule matches.
func (r *rule) sample() string { return r.compiled().fill("x") }

// fill returns the pattern's literals with gap for each wildcard but the one
// that is implied at its end.
func (p *pattern) fill(gap string) string {
	var b strings.Builder
	b.WriteString(p.head.text)
	if p.head.text == "" && (len(p.tail) == 0 || p.tail[0].text[0] != '/') {
		b.WriteByte('/') // every path begins with it
	}
	for i := range p.tail {
		b.WriteString(gap)
		b.WriteString(p.tail[i].text)
	}
	return b.String()
}

// classicReasons are why a robot of the 1994 standard reads a rule otherwise.
var classicReasons = [...]struct{ requirement, message, advice string }{
	{"COMPAT-01", "an allow rule opens what another closes", "such robots know no allow: list what is closed"},
	{"COMPAT-02", "* in a path is a wildcard", "such robots take it for a character: list directories as well"},
	{"COMPAT-03", "$ at the end of a path ends it", "such robots take it for a character"},
	{"COMPAT-04", "the rule is read in another group", "blank lines between groups and nowhere else"},
}

// classicReason returns the index of the reason that fits the rule.
func (r *rule) classicReason() int {
	path := r.path()
	return slices.Index([]bool{r.allow, strings.Contains(path, "*"), strings.HasSuffix(path, "$"), true}, true)
}
