package robots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// FuzzMatch compares verdicts with those of the reference. Each line of
// patterns is the path of a rule, allow if it begins with "+".
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

// TestMatchAgainstReference does the same on random patterns over so small an
// alphabet that they match often, and on more rules than a fuzzer comes up with.
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
			patterns[i] = word([]string{"", "+"}, 3) + "/" + word([]string{"a", "b", "/", "a", "b", "*", "%2A", "%61", "$"}, 8)
		}
		compareWithReference(t, patterns, mustURL(t, "http://h/"+word([]string{"a", "b", "/", "a", "*", "%2A", "$"}, 12)))
	}
}

// compareWithReference checks one URL with the patterns as rules, and with the reference.
func compareWithReference(t *testing.T, patterns []string, u decorum.URL) {
	t.Helper()
	file := "User-agent: *\n"
	var reference []refRule
	for i, p := range patterns {
		path, allow := strings.CutPrefix(p, "+")
		if path == "" || path[0] != '/' && path[0] != '*' || strings.Trim(path, " \t") != path || strings.ContainsAny(path, "\r#") {
			file += "# " + strings.ReplaceAll(p, "\r", "") + "\n"
			continue
		}
		file += map[bool]string{true: "Allow: ", false: "Disallow: "}[allow] + path + "\n"
		reference = append(reference, newRefRule(allow, path, i+2))
	}
	want := Verdict{Allowed: true, Group: "*"}
	if r := refCheck(reference, u.PathAndQuery()); r != nil {
		field := map[bool]string{true: "allow: ", false: "disallow: "}[r.allow]
		want = Verdict{Allowed: r.allow, Rule: field + r.path, Line: r.line, Group: "*"}
	}
	if u.PathAndQuery() == "/robots.txt" {
		want = Verdict{Allowed: true, Group: "*"}
	}
	if got := Parse([]byte(file), Google).RulesFor(Agent{}).Check(u); got != want {
		t.Errorf("%s\n got %+v\nwant %+v\n%s", u, got, want, file)
	}
}

// TestMatchTime pins MATCH-26: if a star could be tried in more than one place
// this test would not end.
func TestMatchTime(t *testing.T) {
	path := strings.Repeat("a", 10_000)
	for _, pattern := range []string{
		"/*a*a*a*a*a*a*b",
		"/" + strings.Repeat("*a", 5_000) + "b",
		"/" + strings.Repeat("*", 10_000) + "b",
		"/" + strings.Repeat("*aa%2A", 1_000) + "$",
		"/*" + strings.Repeat("a", 5_000) + "%2A",
	} {
		t.Run(fmt.Sprintf("MATCH-26/%.12s", pattern), func(t *testing.T) {
			p := compilePattern(pattern)
			if p.matches("/" + path) {
				t.Errorf("matches %d times a", len(path))
			}
		})
	}
}

func TestNewLiteral(t *testing.T) {
	for _, test := range []struct {
		req, part, want string
		octets          int
	}{
		{"MATCH-22", "/foo/bar/%62%61%7A", "/foo/bar/baz", 12},
		{"MATCH-22", "/%7euser%2D%5F", "/~user-_", 8},
		{"MATCH-22", "/caf%c3%a9", "/caf%C3%A9", 10},
		{"MATCH-22", "/a%2fb%3f%23", "/a%2Fb%3F%23", 12},
		{"MATCH-22", "/a?b=c&d=%20", "/a?b=c&d=%20", 12},
		{"MATCH-22", "/a b", "/a%20b", 6},
		{"MATCH-22", "/%2541", "/%2541", 6},
		{"MATCH-22", "/%%341", "/%%341", 6},
		{"MATCH-22", "/100%", "/100%", 5},
		{"MATCH-04", "/Овощи", "/%D0%9E%D0%B2%D0%BE%D1%89%D0%B8", 31},
		{"FMT-14", "/caf\xe9/", "/caf%E9/", 8},
		{"MATCH-25", "/%2a%24$", "/*$$", 8},
		{"MATCH-25", "/{%7b", "/{{", 5},
	} {
		t.Run(test.req+test.part, func(t *testing.T) {
			if got, octets := newLiteral(test.part); got.text != test.want || octets != test.octets {
				t.Errorf("newLiteral(%q) = %q, %d octets, want %q, %d", test.part, got.text, octets, test.want, test.octets)
			}
		})
	}
}

// FuzzLiteralMeetsURL pins that patterns and URLs meet: a rule matches a link
// that is written in the same way.
func FuzzLiteralMeetsURL(f *testing.F) {
	for c := range 256 {
		s := string([]byte{byte(c)})
		f.Add("a" + s + "b")
		f.Add("?a" + s + "b")
		f.Add(fmt.Sprintf("a%%%02xb?%%%02X", c, c))
	}
	f.Add("100%/%4/%%341/%%3%34")
	f.Fuzz(func(t *testing.T, path string) {
		path = "/" + path
		if strings.ContainsAny(path, "\t\n\r#\\") || path[len(path)-1] <= ' ' {
			t.Skip("not part of the path, or read as a slash")
		}
		if strings.Contains(path, "/.") || strings.Contains(strings.ToLower(path), "/%2e") {
			t.Skip("dot segments are resolved in links only")
		}
		u, err := decorum.ParseURL("http://h" + path)
		if err != nil {
			t.Skip(err)
		}
		if l, _ := newLiteral(path); l.matchedPrefixLen(u.PathAndQuery()) != len(u.PathAndQuery()) {
			t.Errorf("%q becomes %q in a rule and %q in a link", path, l.text, u.PathAndQuery())
		}
	})
}

// TestLength pins what PREC-16 counts.
func TestLength(t *testing.T) {
	for _, test := range []struct {
		pattern string
		want    int
	}{
		{"/", 1}, {"/fish", 5}, {"/fish*", 5}, {"/fish***", 5}, {"/fish*$", 5}, {"/fish$", 6},
		{"/fi*h", 5}, {"/fi**h", 6}, {"*", 0}, {"*$", 0}, {"*.gif$", 6}, {"/a$*", 3}, {"/a$b", 4},
		{"/%62%61%7A", 4}, {"/%2A", 4}, {"/é", 7}, {"/a b", 6},
	} {
		if p := compilePattern(test.pattern); p.length != test.want {
			t.Errorf("length of %q = %d, want %d", test.pattern, p.length, test.want)
		}
	}
}
