package robots

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage/memory"
)

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name, rules, path string
		want              []RuleMatch
	}{
		{"DEF-07/nothing matches", "Disallow: /a", "/b", nil},
		{"PREC-01/shorter loses", "Disallow: /\nAllow: /a/b\nDisallow: /a", "/a/b/c", []RuleMatch{
			{"allow: /a/b", 3, 4, "", PathSpan{0, 4}, nil},
			{"disallow: /a", 4, 2, LostShorter, PathSpan{0, 2}, nil},
			{"disallow: /", 2, 1, LostShorter, PathSpan{0, 1}, nil}}},
		{"PREC-02/disallow loses a tie", "Disallow: /a\nAllow: /a", "/a", []RuleMatch{
			{"allow: /a", 3, 2, "", PathSpan{0, 2}, nil},
			{"disallow: /a", 2, 2, LostTie, PathSpan{0, 2}, nil}}},
		{"PREC-09/repeated", "Disallow: /a\nDisallow: /%61", "/a", []RuleMatch{
			{"disallow: /a", 2, 2, "", PathSpan{0, 2}, nil},
			{"disallow: /%61", 3, 2, LostRepeated, PathSpan{0, 2}, nil}}},
		{"MATCH-05/stars", "Disallow: /*b*d", "/aabccd/e", []RuleMatch{
			{"disallow: /*b*d", 2, 5, "", PathSpan{0, 7}, []PathSpan{{1, 3}, {4, 6}}}}},
		{"MATCH-05/an empty star", "Disallow: *.gif$", "/.gif", []RuleMatch{
			{"disallow: *.gif$", 2, 6, "", PathSpan{0, 5}, []PathSpan{{0, 1}}}}},
		{"MATCH-18/the end", "Disallow: /*b$", "/ab/ab", []RuleMatch{
			{"disallow: /*b$", 2, 4, "", PathSpan{0, 6}, []PathSpan{{1, 5}}}}},
		{"MATCH-25/an escaped star", "Disallow: /*%2A", "/a%2Ab", []RuleMatch{
			{"disallow: /*%2A", 2, 5, "", PathSpan{0, 5}, []PathSpan{{1, 2}}}}},
		{"FETCH-29/exempt", "Disallow: /", "/robots.txt", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rulesOf(test.rules).Explain(mustURL(t, "http://h"+test.path))
			if !reflect.DeepEqual(got.Matches, test.want) {
				t.Errorf("%s\n got %+v\nwant %+v", test.path, got.Matches, test.want)
			}
			if got.Exempt != strings.HasPrefix(test.name, "FETCH-29") || got.PathAndQuery != test.path {
				t.Errorf("exempt %v, path %q", got.Exempt, got.PathAndQuery)
			}
		})
	}
}

// Everything that the file asks of the agent's pace is told, Crawl-delay first.
func TestExplainTellsThePace(t *testing.T) {
	for rules, want := range map[string][]string{
		"Disallow: /a":                      nil,
		"Disallow: /a\nCrawl-delay: 2.5":    {"crawl-delay: 2.5"},
		"Crawl-delay: 0":                    {"crawl-delay: 0"},
		"Crawl-delay: 1\nRequest-rate: 1/5": {"crawl-delay: 1", "request-rate: 1/5s"},
	} {
		if got := rulesOf(rules).Explain(mustURL(t, "http://h/b")).PaceLines; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", rules, got, want)
		}
	}
}

func TestExplainNamesTheGroup(t *testing.T) {
	rules := Parse([]byte("User-agent: other\nUser-agent: Bot/1\nDisallow: /a\n\nUser-agent: *\nDisallow: /\nUser-agent: bot\n"), Google).RulesFor(AgentFromName("bot"))
	got := rules.Explain(mustURL(t, "http://h/b"))
	if got.Group != "Bot/1, bot" || !reflect.DeepEqual(got.GroupAgentLineNumbers, []int{2, 7}) || !got.Allowed {
		t.Errorf("got %+v", got)
	}
	text, err := json.Marshal(got)
	if want := `{"allowed":true,"group":"Bot/1, bot","path":"/b","group_lines":[2,7]}`; err != nil || string(text) != want {
		t.Errorf("as JSON %s, %v, want %s", text, err, want)
	}
}

// TestExplainIsCheck pins that the explanation is the verdict, that the first
// match is what decides, and that spans hold what their rules say.
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
		u := mustURL(t, "http://h/"+word("aab/*$", 12))
		e := rules.Explain(u)
		if e.Verdict != rules.Check(u) {
			t.Fatalf("%s: explained as %+v, judged as %+v\n%s", u, e.Verdict, rules.Check(u), file.String())
		}
		for i, m := range e.Matches {
			matches++
			if first := m.Rule == e.Rule && m.Line == e.Line && m.LosingReason == ""; first != (i == 0) {
				t.Fatalf("%s: match %d is %+v of %+v\n%s", u, i, m, e.Verdict, file.String())
			}
			if again := patternFromSpans(m, e.PathAndQuery); !Parse([]byte("User-agent: *\nDisallow: "+again), Google).RulesFor(Agent{}).hasSameSpans(m, e.PathAndQuery) {
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

// patternFromSpans writes the pattern that spans show: what is matched, with a star for
// each wildcard.
func patternFromSpans(m RuleMatch, path string) string {
	var b strings.Builder
	at := 0
	escape := strings.NewReplacer("*", "%2A", "$", "%24")
	for _, w := range m.WildcardSpans {
		b.WriteString(escape.Replace(path[at:w.Start]) + "*")
		at = w.End
	}
	return b.String() + escape.Replace(path[at:m.Span.End])
}

// hasSameSpans reports whether the only rule of r matches path where m does.
func (r *Rules) hasSameSpans(m RuleMatch, path string) bool {
	p := r.rules[0].compilePattern()
	if !p.matches(path) {
		return false
	}
	whole, wildcards := p.matchSpans(path)
	// A final "$" is not seen in spans: its literal may be found later.
	return strings.HasSuffix(m.Rule, "$") || whole == m.Span && reflect.DeepEqual(wildcards, m.WildcardSpans)
}

func TestGateExplain(t *testing.T) {
	ctx := context.Background()
	g := NewGate(GateConfig{}, memory.New(memory.Config{}))
	page := mustURL(t, "https://example.com/a")
	if e, err := g.Explain(ctx, page); err != nil || e.Allowed || e.SHA256 != "" {
		t.Errorf("while nothing is known: %+v, %v", e, err)
	}
	now := time.Now()
	c, err := g.Check(ctx, now, page)
	if err != nil || !c.IsForRobots() {
		t.Fatalf("clearance %+v, %v", c, err)
	}
	res := &decorum.Response{URL: c.URL(), Status: 200, Body: []byte("User-agent: *\nDisallow: /a\n")}
	if _, err := g.RecordFetch(ctx, now, c, res, nil); err != nil {
		t.Fatal(err)
	}
	e, err := g.Explain(ctx, page)
	if err != nil || e.Allowed || e.Rule != "disallow: /a" || len(e.SHA256) != 64 {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestExplainGoogleOSS: in that dialect a rule may mean two things, and the
// explanation knows both.
func TestExplainGoogleOSS(t *testing.T) {
	rules := Parse([]byte("User-agent: *\nDisallow: /a\nAllow: /a/index.html\nDisallow: /b*\n"), GoogleOSS).RulesFor(AgentFromName("anybot"))
	for path, want := range map[string]string{"/a/": "allow: /a/index.html", "/a/x": "disallow: /a", "/b": "disallow: /b*", "/": ""} {
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

// TestLintKnowsWhatIsRead: lint finds fault with a Host or Clean-param value if
// and only if the parser ignores it.
func TestLintKnowsWhatIsRead(t *testing.T) {
	for _, v := range []string{"myhost.ru", "https://myhost.ru", "http://myhost.ru", "myhost.ru:8080", "myhost.ru:100000", "my_host.ru",
		".my.ru", "my.ru.", "my..ru", "my.ru/", "213.180.194.129", "a.ru,b.ru", "a.ru b.ru", "-a.ru", "a-.ru", "1host.ru", "a.ru:", "a.ru:0", "пример.рф", "xn--e1afmkfd.xn--p1ai", "localhost"} {
		_, ok := Parse([]byte("Host: "+v+"\n"), Yandex).MainMirror()
		if problem := hostDirectiveProblem(v); ok != (problem == "") {
			t.Errorf("Host: %s is read: %v; lint says %q", v, ok, problem)
		}
	}
	page, err := decorum.ParseURL("https://example.com/f/x?s=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"s", "s /", "s /f", "s /f*", "s&t /f", "s *", "s /a?b", "s f", "s /f x", "&s /", "s& /", "s /f$", "s /f" + strings.Repeat("*", 495), "s /f" + strings.Repeat("*", 496)} {
		read := Parse([]byte("Clean-param: "+v+"\n"), Yandex).URLCleaner().CleanURL(page) != page
		if problem := cleanParamProblem(v); read != (problem == "") && !strings.HasPrefix(v, "s /a") {
			t.Errorf("Clean-param: %.40s is read: %v; lint says %q", v, read, problem)
		}
	}
}
