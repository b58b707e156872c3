package robots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func rulesOf(patterns string) *Rules {
	return Parse([]byte("User-agent: *\n"+patterns), Google).RulesFor(Agent{})
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name, rules, path string
		want              string // Verdict.Rule
		line              int
	}{
		{"PREC-01/longest", "Disallow: /a\nAllow: /a/b\nDisallow: /a/b/c", "/a/b/x", "allow: /a/b", 3},
		{"PREC-02/tie", "Disallow: /a\nAllow: /a", "/a", "allow: /a", 3},
		{"PREC-02/tie with a wildcard", "Disallow: /*b\nAllow: /ab", "/ab", "allow: /ab", 3},
		{"PREC-02/tie with a wildcard that allows", "Disallow: /ab\nAllow: /*b", "/ab", "allow: /*b", 3},
		{"PREC-09/first of equals", "Disallow: /a\nDisallow: /%61", "/a", "disallow: /a", 2},
		{"PREC-16/trailing star", "Disallow: /fish*\nAllow: /fish", "/fish", "allow: /fish", 3},
		{"PREC-16/dollar counts", "Allow: /a$\nDisallow: /a", "/a", "allow: /a$", 2},
		{"PREC-16/escapes count as what they are", "Disallow: /%61%62\nAllow: /abc", "/abc", "allow: /abc", 3},
		{"PREC-16/star alone is shortest", "Disallow: *\nAllow: /", "/a", "allow: /", 3},
		{"PREC-17/as written", "dIsAllow : /%61*b  # why\n", "/a/b", "disallow: /%61*b", 2},
		{"SYN-10/void", "Disallow: a\nDisallow: $\nDisallow: http://h/a", "/a", "", 0},
		{"FETCH-29", "Disallow: /\nDisallow: /robots.txt$", "/robots.txt", "", 0},
		{"FETCH-29/with a query", "Disallow: /", "/robots.txt?x", "disallow: /", 2},
		{"MATCH-25/mark in the query", "Disallow: /*?x=%7Bid%7D", "/a?x={id}", "disallow: /*?x=%7Bid%7D", 2},
		{"MATCH-25/mark in the path", "Disallow: /{id}/", "/%7Bid%7D/", "disallow: /{id}/", 2},
		{"MATCH-25/quote in the query", "Disallow: /*'", "/?q='", "disallow: /*'", 2},
		{"MATCH-25/end", "Disallow: /*%24$", "/a%24b$", "disallow: /*%24$", 2},
		{"MATCH-25/not the end", "Disallow: /*%24$", "/a%24b", "", 0},
		{"MATCH-24/literal after all", "Disallow: /a$*$", "/a$b", "disallow: /a$*$", 2},
		{"MATCH-22/stray percent sign", "Disallow: /100%", "/100%25", "disallow: /100%", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rulesOf(test.rules).Check(robotstest.URL(t, "http://h"+test.path))
			want := Verdict{Allowed: !strings.HasPrefix(test.want, "disallow"), Rule: test.want,
				Line: test.line, Group: "*"}
			if got != want {
				t.Errorf("%s: got %+v, want %+v\n%s", test.path, got, want, test.rules)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		name         string
		rules        *Rules
		page, robots bool
	}{
		{"allow all", AllowAll(), true, true},
		{"disallow all", DisallowAll(), false, true},
		{"empty file", rulesOf(""), true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.rules.Check(robotstest.URL(t, "http://h/x")).Allowed; got != test.page {
				t.Errorf("/x allowed = %v", got)
			}
			if got := test.rules.Check(robotstest.URL(t, "http://h/robots.txt")).Allowed; got != test.robots {
				t.Errorf("FETCH-29: /robots.txt allowed = %v", got)
			}
			if test.rules.Check(decorum.URL{}).Allowed {
				t.Error("the zero URL is allowed")
			}
			if d, ok := test.rules.CrawlDelay(); ok {
				t.Errorf("Crawl-delay = %v, want none", d)
			}
		})
	}
}

// TestNestedPrefixes compares the search among many nested prefixes with a linear search.
func TestNestedPrefixes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 15 {
		var file strings.Builder
		var reference []robotstest.ReferenceRule
		for i := range 1 + random.IntN(300) {
			path := "/" + strings.Repeat("a", random.IntN(8)) + strings.Repeat("b",
				random.IntN(3)) + strings.Repeat("a", random.IntN(4))
			allow := random.IntN(2) == 0
			fmt.Fprintf(&file, "%s: %s\n", map[bool]string{true: "Allow", false: "Disallow"}[allow], path)
			reference = append(reference, robotstest.NewReferenceRule(allow, path, i+2))
		}
		rules := rulesOf(file.String())
		for range 50 {
			u := robotstest.URL(t, "http://h/"+strings.Repeat("a", random.IntN(10))+strings.Repeat("b",
				random.IntN(4))+strings.Repeat("a", random.IntN(6)))
			want := 0
			if r := robotstest.DecidingRule(reference, u.PathAndQuery()); r != nil {
				want = r.Line
			}
			if got := rules.Check(u); got.Line != want {
				t.Fatalf("%s: %+v, want line %d\n%s", u, got, want, file.String())
			}
		}
	}
}

// TestRulesCheckAllocatesNothing proves it for every way in which a rule can match.
func TestRulesCheckAllocatesNothing(t *testing.T) {
	rules := rulesOf("Disallow: /a\nAllow: /a/b\nDisallow: /*.php$\nDisallow: /file-%2A*x\nDisallow: /*%24$\n")
	var us []decorum.URL
	for _, path := range []string{"/", "/a/b/c", "/x.php", "/file-*.x", "/file-%2A.x", "/x%24",
		"/caf%C3%A9", "/robots.txt"} {
		us = append(us, robotstest.URL(t, "http://h"+path))
	}
	allocs := testing.AllocsPerRun(100, func() {
		for _, u := range us {
			rules.Check(u)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestRulesKeepNoFile proves that rules do not keep the text of the file in memory.
func TestRulesKeepNoFile(t *testing.T) {
	file := Parse([]byte("User-agent: bot\nDisallow: /a\n"+strings.Repeat("# much else\n", 1000)), Google)
	rules := file.RulesFor(AgentFromName("bot"))
	if text := file.lines[0].Value; sharesMemory(rules.groupAgents, text) {
		t.Error("the group is part of the file's text")
	}
	if v := rules.Check(robotstest.URL(t, "http://h/a")); !strings.HasSuffix(v.Rule, file.lines[1].Value) ||
		sharesMemory(v.Rule[len("disallow: "):], file.lines[1].Value) {
		t.Errorf("the rule %q is part of the file's text", v.Rule)
	}
}

// sharesMemory reports whether a and b begin at the same byte in memory.
func sharesMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
