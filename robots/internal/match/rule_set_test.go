package match_test

import (
	"math/rand/v2"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestRuleSetAgainstReference compares the rule that decides with that of the reference, and with the
// first of MatchingRules.
func TestRuleSetAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	word := func(from []string, n int) (s string) {
		for range random.IntN(n) {
			s += from[random.IntN(len(from))]
		}
		return s
	}
	decided := 0
	for range 2000 {
		rules := make([]match.Rule, random.IntN(20))
		reference := make([]robotstest.ReferenceRule, len(rules))
		for i := range rules {
			path, allow, text := "/"+word([]string{"a", "b", "/", "*", "$", "%61"}, 6),
				random.IntN(2) == 0, "disallow: "
			if allow {
				text = "allow: "
			}
			rules[i] = match.Rule{Text: text + path, Line: i + 1, Allow: allow}
			reference[i] = robotstest.NewReferenceRule(allow, path, i+1)
		}
		set := match.NewRuleSet(rules, false)
		path := "/" + word([]string{"a", "b", "/"}, 6)
		got, want, all := set.DecidingRule(path), robotstest.DecidingRule(reference, path), set.MatchingRules(path)
		if (got == nil) != (want == nil) || (got == nil) != (len(all) == 0) {
			t.Fatalf("%s: rule %v, want %v, of %v", path, got, want, rules)
		}
		if got == nil {
			continue
		}
		decided++
		if got.Line != want.Line || got.Length != want.Length || all[0].Line != want.Line {
			t.Fatalf("%s: rule %+v, want %+v, first of %+v", path, got, want, all)
		}
	}
	if decided < 1000 {
		t.Errorf("a rule decided %d times, want 1000 or more", decided)
	}
}

// TestRuleSetOfGoogleOSS proves that an allow line for an index page also allows its directory.
func TestRuleSetOfGoogleOSS(t *testing.T) {
	set := match.NewRuleSet([]match.Rule{{Text: "disallow: /", Line: 1},
		{Text: "allow: /a/index.html", Line: 2, Allow: true}}, true)
	for path, want := range map[string]int{"/a/index.html": 2, "/a/": 2, "/a/b": 1} {
		if got := set.DecidingRule(path); got == nil || got.Line != want {
			t.Errorf("%s: rule %+v, want that of line %d", path, got, want)
		}
	}
}
