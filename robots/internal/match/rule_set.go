package match

import (
	"cmp"
	"slices"
)

// A Rule is an allow or disallow line.
type Rule struct {
	Text   string // the field in lower case and the path, as in "disallow: /x"
	Line   int    // its line number in the file, from 1
	Length int    // the length of the pattern, in octets (PREC-16); NewRuleSet sets it
	Allow  bool   // it is an allow line
}

// Path returns the value of the line: the part of Text after the field.
func (r *Rule) Path() string {
	if r.Allow {
		return r.Text[len("allow: "):]
	}
	return r.Text[len("disallow: "):]
}

// compare orders rules by precedence, the highest first: by length, then allow before disallow, then
// by line.
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

// A RuleSet contains the rules of an agent and finds the rule that decides about a path. It is
// immutable and safe for concurrent use. The zero RuleSet has no rules.
type RuleSet struct {
	rules         []Rule // in the order of the file, including rules that never decide
	prefixRules   prefixIndex
	wildcardRules wildcardRules
	isGoogleOSS   bool // patterns are compiled as in Google's published parser
}

// NewRuleSet compiles rules, sets the Length of each, and keeps the slice. googleOSS says that the
// patterns have the meaning of Google's published parser.
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

// compileRule calls add with the pattern of r and r. If r has a second pattern in Google's parser (see
// compileGoogleOSSRulePatterns), it calls add again with that pattern and a copy of r.
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

// DecidingRule returns the rule that decides about path, nil if no rule matches. It does not allocate.
func (s *RuleSet) DecidingRule(path string) *Rule {
	return s.wildcardRules.bestMatch(path, s.prefixRules.longestMatch(path))
}

// A RuleMatch is a rule that matches a path, and the parts of the path that it matches.
type RuleMatch struct {
	Rule
	Span          Span   // the part that the rule matches, without the "*" implied at its end
	WildcardSpans []Span // the part that each of its wildcards matches, in order
}

// MatchingRules returns all rules that match path, in order of precedence, so that the first one
// decides. A rule with two patterns appears once for each pattern that matches. The time is linear in
// the number of rules.
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

// wildcardRules are the rules that are not plain prefixes, in the order of Rule.compare.
type wildcardRules []wildcardRule

// A wildcardRule is a rule that is not a plain prefix, with its pattern.
type wildcardRule struct {
	requiredBigrams BigramSet // the pairs of bytes that occur in every path it matches
	rule            *Rule
	pattern         Pattern
}

// bestMatch returns the first rule that matches path and takes precedence over best, otherwise best,
// which may be nil.
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
