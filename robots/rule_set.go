package robots

import (
	"cmp"
	"slices"
	"strings"
)

// A rule is an allow or disallow line.
type rule struct {
	lineText string // the field in lower case and the path, as in "disallow: /x"
	line     int    // in the file, counted from 1
	length   int    // of the pattern, as PREC-16 counts; newRuleSet fills it in
	allow    bool
}

// path returns the value of the line.
func (r *rule) path() string {
	_, path, _ := strings.Cut(r.lineText, ": ")
	return path
}

// compare orders rules so that the one that wins comes first. Of equals the
// first of the file stands for all.
func (r *rule) compare(o *rule) int {
	if c := cmp.Compare(o.length, r.length); c != 0 {
		return c
	}
	if r.allow != o.allow {
		if r.allow {
			return -1
		}
		return 1
	}
	return cmp.Compare(r.line, o.line)
}

// A ruleSet finds which of an agent's rules decides on a path. It is immutable and
// safe for concurrent use. The zero ruleSet has no rules.
type ruleSet struct {
	rules         []rule // in the order of the file, those that lose to an equal too
	prefixRules   prefixIndex
	wildcardRules wildcardRules
	isGoogleOSS   bool // patterns are compiled as Google's parser does
}

// newRuleSet compiles rules and keeps them. googleOSS says that patterns mean what
// Google's published parser makes of them.
func newRuleSet(rules []rule, googleOSS bool) ruleSet {
	s := ruleSet{rules: rules, isGoogleOSS: googleOSS}
	keys := make([]prefixRule, 0, len(rules))
	add := func(p pattern, r *rule) {
		r.length = p.length
		if p.isPrefix() {
			keys = append(keys, prefixRule{p.head.text, r})
		} else {
			s.wildcardRules = append(s.wildcardRules, wildcardRule{p.bigrams(), r, p})
		}
	}
	for i := range rules {
		r := &rules[i]
		p, dir := s.compileRule(r)
		add(p, r)
		if dir != nil {
			dirRule := *r
			add(*dir, &dirRule)
		}
	}
	s.prefixRules = newPrefixIndex(keys)
	slices.SortFunc(s.wildcardRules, func(a, b wildcardRule) int { return a.rule.compare(b.rule) })
	return s
}

// compileRule returns the pattern of a rule, and a second one that some rules of
// Google's parser stand for, else nil.
func (s *ruleSet) compileRule(r *rule) (p pattern, dir *pattern) {
	if s.isGoogleOSS {
		return compileGoogleOSSRulePatterns(r.path(), r.allow)
	}
	return compilePattern(r.path()), nil
}

// decidingRule returns the rule that decides on a path, nil if none matches. It
// allocates nothing.
func (s *ruleSet) decidingRule(path string) *rule {
	return s.wildcardRules.bestMatch(path, s.prefixRules.longestMatch(path))
}

// A ruleMatch is a rule that matches a path, and where.
type ruleMatch struct {
	rule
	span          span   // what of the path it matches, without the "*" implied at its end
	wildcardSpans []span // what each of its wildcards matches, in order
}

// matchingRules returns all rules that match path, the one that decides first. Its
// time is linear in the number of rules. A rule that stands for two patterns is there
// for each that matches.
func (s *ruleSet) matchingRules(path string) []ruleMatch {
	var found []ruleMatch
	add := func(r rule, p *pattern) {
		if p.matches(path) {
			r.length = p.length
			m := ruleMatch{rule: r}
			m.span, m.wildcardSpans = p.matchSpans(path)
			found = append(found, m)
		}
	}
	for _, r := range s.rules {
		p, dir := s.compileRule(&r)
		add(r, &p)
		if dir != nil {
			add(r, dir)
		}
	}
	slices.SortFunc(found, func(a, b ruleMatch) int { return a.compare(&b.rule) })
	return found
}
