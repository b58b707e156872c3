package robots

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// FuzzMatch compares verdicts with those of the reference. Each line of patterns is the path of a rule,
// which is an allow rule if it begins with "+".
func FuzzMatch(f *testing.F) {
	for _, seed := range []struct{ patterns, path string }{
		{"/fish\n/fish*.php\n+/fish/", "/fish/salmon.php?id=1"},
		{"/fish*\n+/fish", "/fish"},
		{"/*.php$\n+/*.php", "/a.php"},
		{"/a*$\n/a$\n+/a**b$", "/a/b"},
		{"/*a*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaa"},
		{"/file-%2A.html\n+/*%24", "/file-*.html$"},
		{"/*%2A2A", "/%2A%2A2A"},
		{"/a$b\n+/a%24$", "/a$bc%24"},
		{"/%7euser\n+/%7Eus*r", "/~user"},
		{"/caf\xe9\n/café", "/caf%E9"},
		{"/a%2\n/a%\n/100%/", "/a%2F"},
		{"*.gif$\n+*", "/x.gif"},
		{"/\n+/a\n/ab/\n+/ab/c\n/ab/d/e", "/ab/d/f"},
	} {
		f.Add(seed.patterns, seed.path)
	}
	f.Fuzz(func(t *testing.T, patterns, path string) {
		if len(patterns) > 1000 || len(path) > 300 {
			t.Skip("the reference is slow")
		}
		u, err := decorum.ParseURL("http://h/" + strings.TrimPrefix(path, "/"))
		if err != nil {
			t.Skip(err)
		}
		compareWithReference(t, strings.Split(patterns, "\n"), u)
	})
}

// TestMatchAgainstReference does the same with random patterns. Their alphabet is small, so that they
// match often, and there are more rules than a fuzzer generates.
func TestMatchAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(alphabet []string, n int) string {
		var b strings.Builder
		for range random.IntN(n) {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 2000 {
		patterns := make([]string, 1+random.IntN(40))
		for i := range patterns {
			patterns[i] = word([]string{"", "+"}, 3) + "/" +
				word([]string{"a", "b", "/", "a", "b", "*", "%2A", "%61", "$"}, 8)
		}
		compareWithReference(t, patterns,
			robotstest.URL(t, "http://h/"+word([]string{"a", "b", "/", "a", "*", "%2A", "$"}, 12)))
	}
}

// compareWithReference compares the verdicts of the package and the reference for one URL, with the
// patterns as rules.
func compareWithReference(t *testing.T, patterns []string, u decorum.URL) {
	t.Helper()
	file := "User-agent: *\n"
	var reference []robotstest.ReferenceRule
	for i, p := range patterns {
		path, allow := strings.CutPrefix(p, "+")
		if path == "" || path[0] != '/' && path[0] != '*' || strings.Trim(path, " \t") != path ||
			strings.ContainsAny(path, "\r#") {
			file += "# " + strings.ReplaceAll(p, "\r", "") + "\n"
			continue
		}
		file += map[bool]string{true: "Allow: ", false: "Disallow: "}[allow] + path + "\n"
		reference = append(reference, robotstest.NewReferenceRule(allow, path, i+2))
	}
	want := Verdict{Allowed: true, Group: "*"}
	if r := robotstest.DecidingRule(reference, u.PathAndQuery()); r != nil {
		field := map[bool]string{true: "allow: ", false: "disallow: "}[r.Allow]
		want = Verdict{Allowed: r.Allow, Rule: field + r.Path, Line: r.Line, Group: "*"}
	}
	if u.PathAndQuery() == "/robots.txt" {
		want = Verdict{Allowed: true, Group: "*"}
	}
	if got := Parse([]byte(file), Google).RulesFor(Agent{}).Check(u); got != want {
		t.Errorf("%s\n got %+v\nwant %+v\n%s", u, got, want, file)
	}
}
