package match

import (
	"cmp"
	"slices"
)

// A Rule is an allow or disallow line.
type Rule struct {
	Text   string // the field in lower case and the path, as in "disallow: /x"
	Line   int    // in the file, counted from 1
	Length int    // of the pattern, as PREC-16 counts; NewRuleSet sets it
	Allow  bool
}

// Path returns the value of the line, which stands after its field in Text.
func (r *Rule) Path() string {
	if r.Allow {
		return r.Text[len("allow: "):]
	}
	return r.Text[len("disallow: "):]
}

// compare orders rules so that the one that wins comes first. Of equals the
// first of the file stands for all.
func (r *Rule) compare(o *Rule) int {
	if c := cmp.Compare(o.Length, r.Length); c != 0 {
		return c
	}
	if r.Allow != o.Allow {
		if r.Allow {
			return -1
		}
		return 1
	}
	return cmp.Compare(r.Line, o.Line)
}

// A RuleSet finds which of an agent's rules decides on a path. It is immutable and
// safe for concurrent use. The zero RuleSet has no rules.
type RuleSet struct {
	rules         []Rule // in the order of the file, those that lose to an equal too
	prefixRules   prefixIndex
	wildcardRules wildcardRules
	isGoogleOSS   bool // patterns are compiled as Google's parser does
}

// NewRuleSet compiles rules, which it keeps and whose Length it sets. googleOSS says that
// patterns mean what Google's published parser makes of them.
func NewRuleSet(rules []Rule, googleOSS bool) RuleSet {
	s := RuleSet{rules: rules, isGoogleOSS: googleOSS}
	keys := make([]prefixRule, 0, len(rules))
	add := func(p Pattern, r *Rule) {
		r.Length = p.Length
		if p.isPrefix() {
			keys = append(keys, prefixRule{p.head.text, r})
		} else {
			s.wildcardRules = append(s.wildcardRules, wildcardRule{p.Bigrams(), r, p})
		}
	}
	for i := range rules {
		compileRule(&rules[i], googleOSS, add)
	}
	s.prefixRules = newPrefixIndex(keys)
	slices.SortFunc(s.wildcardRules, func(a, b wildcardRule) int { return a.rule.compare(b.rule) })
	return s
}

// Rules returns the rules in the order of the file. The caller must not change them.
func (s *RuleSet) Rules() []Rule { return s.rules }

// compileRule calls add with r and its pattern, and with a copy of r for a second pattern
// that some rules of Google's parser stand for.
func compileRule(r *Rule, googleOSS bool, add func(Pattern, *Rule)) {
	if !googleOSS {
		add(CompilePattern(r.Path()), r)
		return
	}
	p, dir := compileGoogleOSSRulePatterns(r.Path(), r.Allow)
	add(p, r)
	if dir != nil {
		dirRule := *r
		add(*dir, &dirRule)
	}
}

// DecidingRule returns the rule that decides on a path, nil if none matches. It
// allocates nothing.
func (s *RuleSet) DecidingRule(path string) *Rule {
	return s.wildcardRules.bestMatch(path, s.prefixRules.longestMatch(path))
}

// A RuleMatch is a rule that matches a path, and where.
type RuleMatch struct {
	Rule
	Span          Span   // what of the path it matches, without the "*" implied at its end
	WildcardSpans []Span // what each of its wildcards matches, in order
}

// MatchingRules returns all rules that match path, the one that decides first. Its
// time is linear in the number of rules. A rule that stands for two patterns is there
// for each that matches.
func (s *RuleSet) MatchingRules(path string) []RuleMatch {
	var found []RuleMatch
	add := func(p Pattern, r *Rule) {
		if p.Matches(path) {
			m := RuleMatch{Rule: *r}
			m.Length = p.Length
			m.Span, m.WildcardSpans = p.matchSpans(path)
			found = append(found, m)
		}
	}
	for i := range s.rules {
		compileRule(&s.rules[i], s.isGoogleOSS, add)
	}
	slices.SortFunc(found, func(a, b RuleMatch) int { return a.compare(&b.Rule) })
	return found
}

// wildcardRules are rules that are more than a prefix, in the order of
// Rule.compare.
type wildcardRules []wildcardRule

type wildcardRule struct {
	requiredBigrams BigramSet // of the pattern's literals
	rule            *Rule
	pattern         Pattern
}

// bestMatch returns the first rule that matches path and beats best, and best if
// there is none.
func (ws wildcardRules) bestMatch(path string, best *Rule) *Rule {
	if len(ws) == 0 {
		return best
	}
	pathBigrams := BigramsOf(path)
	for i := range ws {
		w := &ws[i]
		if best != nil && best.compare(w.rule) < 0 {
			return best
		}
		if w.requiredBigrams&^pathBigrams == 0 && w.pattern.Matches(path) {
			return w.rule
		}
	}
	return best
}
