package robots

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name, rules, path string
		want              []MatchingRule
	}{
		{"DEF-07/nothing matches", "Disallow: /a", "/b", nil},
		{"PREC-01/shorter loses", "Disallow: /\nAllow: /a/b\nDisallow: /a", "/a/b/c", []MatchingRule{
			{"allow: /a/b", 3, 4, "", PathSpan{0, 4}, nil},
			{"disallow: /a", 4, 2, LostShorter, PathSpan{0, 2}, nil},
			{"disallow: /", 2, 1, LostShorter, PathSpan{0, 1}, nil}}},
		{"PREC-02/disallow loses a tie", "Disallow: /a\nAllow: /a", "/a", []MatchingRule{
			{"allow: /a", 3, 2, "", PathSpan{0, 2}, nil},
			{"disallow: /a", 2, 2, LostTie, PathSpan{0, 2}, nil}}},
		{"PREC-09/repeated", "Disallow: /a\nDisallow: /%61", "/a", []MatchingRule{
			{"disallow: /a", 2, 2, "", PathSpan{0, 2}, nil},
			{"disallow: /%61", 3, 2, LostRepeated, PathSpan{0, 2}, nil}}},
		{"MATCH-05/stars", "Disallow: /*b*d", "/aabccd/e", []MatchingRule{
			{"disallow: /*b*d", 2, 5, "", PathSpan{0, 7}, []PathSpan{{1, 3}, {4, 6}}}}},
		{"MATCH-05/an empty star", "Disallow: *.gif$", "/.gif", []MatchingRule{
			{"disallow: *.gif$", 2, 6, "", PathSpan{0, 5}, []PathSpan{{0, 1}}}}},
		{"MATCH-18/the end", "Disallow: /*b$", "/ab/ab", []MatchingRule{
			{"disallow: /*b$", 2, 4, "", PathSpan{0, 6}, []PathSpan{{1, 5}}}}},
		{"MATCH-25/an escaped star", "Disallow: /*%2A", "/a%2Ab", []MatchingRule{
			{"disallow: /*%2A", 2, 5, "", PathSpan{0, 5}, []PathSpan{{1, 2}}}}},
		{"FETCH-29/exempt", "Disallow: /", "/robots.txt", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rulesOf(test.rules).Explain(robotstest.URL(t, "http://h"+test.path))
			if !reflect.DeepEqual(got.Matches, test.want) {
				t.Errorf("%s\n got %+v\nwant %+v", test.path, got.Matches, test.want)
			}
			if got.Exempt != strings.HasPrefix(test.name, "FETCH-29") || got.PathAndQuery != test.path {
				t.Errorf("exempt %v, path %q", got.Exempt, got.PathAndQuery)
			}
		})
	}
}

// TestExplainTellsThePace proves that an explanation lists all lines about the agent's pace, the
// Crawl-delay first.
func TestExplainTellsThePace(t *testing.T) {
	for rules, want := range map[string][]string{
		"Disallow: /a":                      nil,
		"Disallow: /a\nCrawl-delay: 2.5":    {"crawl-delay: 2.5"},
		"Crawl-delay: 0":                    {"crawl-delay: 0"},
		"Crawl-delay: 1\nRequest-rate: 1/5": {"crawl-delay: 1", "request-rate: 1/5s"},
	} {
		if got := rulesOf(rules).Explain(robotstest.URL(t, "http://h/b")).PaceLines; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", rules, got, want)
		}
	}
}

func TestExplainNamesTheGroup(t *testing.T) {
	rules := Parse([]byte("User-agent: other\nUser-agent: Bot/1\nDisallow: /a\n\nUser-agent: *\nDisallow: "+
		"/\nUser-agent: bot\n"), Google).RulesFor(AgentFromName("bot"))
	got := rules.Explain(robotstest.URL(t, "http://h/b"))
	if got.Group != "Bot/1, bot" || !reflect.DeepEqual(got.GroupAgentLineNumbers, []int{2, 7}) || !got.Allowed {
		t.Errorf("got %+v", got)
	}
	text, err := json.Marshal(got)
	if want := `{"allowed":true,"group":"Bot/1, bot","path":"/b","group_lines":[2,7]}`; err != nil ||
		string(text) != want {
		t.Errorf("as JSON %s, %v, want %s", text, err, want)
	}
}

// TestExplainIsCheck proves that an explanation has the verdict of Check, that its first match decides,
// and that the spans of each match fit its rule.
func TestExplainIsCheck(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	word := func(alphabet string, n int) string {
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteByte(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	matches := 0
	for range 3000 {
		var file strings.Builder
		for range 1 + random.IntN(20) {
			file.WriteString([]string{"Allow: ", "Disallow: "}[random.IntN(2)] + "/" + word("aab/*$*", 7) + "\n")
		}
		rules := rulesOf(file.String())
		u := robotstest.URL(t, "http://h/"+word("aab/*$", 12))
		e := rules.Explain(u)
		if e.Verdict != rules.Check(u) {
			t.Fatalf("%s: the explanation has %+v, Check returns %+v\n%s", u, e.Verdict, rules.Check(u), file.String())
		}
		for i, m := range e.Matches {
			matches++
			if first := m.Rule == e.Rule && m.Line == e.Line && m.LosingReason == ""; first != (i == 0) {
				t.Fatalf("%s: match %d is %+v of %+v\n%s", u, i, m, e.Verdict, file.String())
			}
			if again := patternFromSpans(m, e.PathAndQuery); !hasSameSpans(again, m, u) {
				t.Fatalf("%s: the spans of %+v are those of %q", u, m, again)
			}
		}
		if len(e.Matches) == 0 && e.Rule != "" {
			t.Fatalf("%s: %+v without a match\n%s", u, e.Verdict, file.String())
		}
	}
	if matches < 3000 {
		t.Errorf("only %d matches were tried", matches)
	}
}

// patternFromSpans returns the part of path that m matches, with a star in place of each wildcard.
func patternFromSpans(m MatchingRule, path string) string {
	var b strings.Builder
	at := 0
	escape := strings.NewReplacer("*", "%2A", "$", "%24")
	for _, w := range m.WildcardSpans {
		b.WriteString(escape.Replace(path[at:w.Start]) + "*")
		at = w.End
	}
	return b.String() + escape.Replace(path[at:m.Span.End])
}

// hasSameSpans reports whether a pattern matches path with the spans of m.
func hasSameSpans(pattern string, m MatchingRule, u decorum.URL) bool {
	again := rulesOf("Disallow: " + pattern).Explain(u).Matches
	// Spans do not show a final "$", with which a literal may match at a later place.
	return len(again) == 1 && (strings.HasSuffix(m.Rule, "$") || again[0].Span == m.Span &&
		reflect.DeepEqual(again[0].WildcardSpans, m.WildcardSpans))
}

// TestExplainGoogleOSS proves that an explanation contains both patterns of a rule that has two in the
// google-oss dialect.
func TestExplainGoogleOSS(t *testing.T) {
	rules := Parse([]byte("User-agent: *\nDisallow: /a\nAllow: /a/index.html\nDisallow: /b*\n"),
		GoogleOSS).RulesFor(AgentFromName("anybot"))
	for path, want := range map[string]string{"/a/": "allow: /a/index.html", "/a/x": "disallow: /a",
		"/b": "disallow: /b*", "/": ""} {
		u, err := decorum.ParseURL("https://example.com" + path)
		if err != nil {
			t.Fatal(err)
		}
		e := rules.Explain(u)
		if e.Rule != want || (len(e.Matches) > 0) != (want != "") || want != "" && e.Matches[0].Rule != want {
			t.Errorf("%s: %+v, want the rule %q first", path, e, want)
		}
	}
}
