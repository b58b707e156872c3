package match

import (
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestMatchTime proves MATCH-26: if matching backtracked over the stars, this test would not end.
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
			p := CompilePattern(pattern)
			if p.Matches("/" + path) {
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
				t.Errorf("newLiteral(%q) = %q, %d octets, want %q, %d", test.part, got.text,
					octets, test.want, test.octets)
			}
		})
	}
}

// FuzzLiteralMeetsURL proves that a rule matches a link with the same spelling.
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

// TestLength lists the lengths of patterns as PREC-16 counts them.
func TestLength(t *testing.T) {
	for _, test := range []struct {
		pattern string
		want    int
	}{
		{"/", 1}, {"/fish", 5}, {"/fish*", 5}, {"/fish***", 5}, {"/fish*$", 5}, {"/fish$", 6},
		{"/fi*h", 5}, {"/fi**h", 6}, {"*", 0}, {"*$", 0}, {"*.gif$", 6}, {"/a$*", 3}, {"/a$b", 4},
		{"/%62%61%7A", 4}, {"/%2A", 4}, {"/é", 7}, {"/a b", 6},
	} {
		if p := CompilePattern(test.pattern); p.Length != test.want {
			t.Errorf("length of %q = %d, want %d", test.pattern, p.Length, test.want)
		}
	}
}
