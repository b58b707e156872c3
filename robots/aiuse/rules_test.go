package aiuse

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// compile returns the rules and the preferences of a file with the lines for "*".
func compile(lines string) (*robots.Rules, *Rules) {
	f := robots.Parse([]byte("User-agent: *\n"+lines), robots.Google)
	return f.RulesFor(robots.Agent{}), Compile(f, robots.Agent{})
}

// usageRulesOf returns the preferences of a file with the lines for "*".
func usageRulesOf(lines string) *Rules {
	_, usage := compile(lines)
	return usage
}

// TestCheckForIsBounded proves that a check does not get slower if a file repeats one path many times, in
// many spellings.
func TestCheckForIsBounded(t *testing.T) {
	u := robotstest.URL(t, "http://h/aaaaaaaaaaaaaaaa")
	for name, line := range map[string]func(i int) string{
		"one path": func(int) string { return "Content-Usage: /aaaaaaaaaaaaaaaa train-ai=y\n" },
		"many spellings": func(i int) string {
			return "Content-Usage: " + escapedSpelling("/aaaaaaaaaaaaaaaa", i) + " train-ai=y\n"
		},
		"both fields": func(i int) string { return signalFields[i%2] + ": train-ai=y\n" },
	} {
		cost := func(lines int) float64 {
			var text strings.Builder
			for i := range lines {
				text.WriteString(line(i))
			}
			rules, usage := compile(text.String())
			return testing.AllocsPerRun(10, func() { Check(rules, usage, u, []string{"ai-train"}) })
		}
		if few, many := cost(2), cost(5000); many > few {
			t.Errorf("%s: %v allocations for 5000 lines, and %v for 2", name, many, few)
		}
	}
}

// TestUsageAgainstReference compares compiled rules with a reference that reads one line after the other.
func TestUsageAgainstReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for range 3000 {
		var text strings.Builder
		for range random.IntN(12) {
			fmt.Fprintf(&text, "%s: %s %s=%s, %s=%s\n", pick("Content-Usage", "Content-Signal"),
				pick("", "/", "/a", "/%61", "/b", "/*", "/*a", "/a*", "/*b", "/a$", "/*/a",
					"/a*b", "/a**b", "/%2a", "*"),
				pick("a", "b", "c"), pick("y", "n", "x"), pick("a", "b"), pick("yes", "no"))
		}
		u := robotstest.URL(t, "http://h/"+pick("", "a", "b", "ab", "ba", "a/a", "*", "aab"))
		got, want := usageRulesOf(text.String()).SignalsForURL(u), refUsage(text.String(), u)
		slices.SortFunc(got, compareByField)
		if slices.SortFunc(want, compareByField); !slices.Equal(got, want) {
			t.Fatalf("%s\n%s: got %v, want %v", text.String(), u, got, want)
		}
	}
}

func compareByField(a, b Signal) int {
	return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Category, b.Category))
}

// refUsage returns the preferences for a URL. It reads all lines for each URL.
func refUsage(text string, u decorum.URL) (all Signals) {
	for _, f := range []string{"content-usage", "content-signal"} {
		longest, best := -1, map[string]Signal{}
		for n, l := range robots.Lines(text) {
			name, value, _ := strings.Cut(l, ": ")
			path, list, _ := strings.Cut(value, " ")
			if path == "" {
				path = "/"
			}
			r := robotstest.NewReferenceRule(true, path, n+1)
			if strings.ToLower(name) != f || !r.Matches(u.PathAndQuery()) || r.Length < longest {
				continue
			}
			if r.Length > longest {
				longest, best = r.Length, map[string]Signal{}
			}
			for category, p := range refPreferences(list) {
				old, named := best[category]
				if !named || old.Preference == Unset && p != Unset || old.Preference == Allowed && p == Disallowed {
					best[category] = Signal{Source: InRobots, Field: f, Category: category, Preference: p, Line: n + 1}
				}
			}
		}
		for _, s := range best {
			all = append(all, s)
		}
	}
	return all
}

// refPreferences parses a list without quotes.
func refPreferences(list string) map[string]Preference {
	said := map[string]Preference{}
	for pref := range strings.SplitSeq(list, ", ") {
		category, value, _ := strings.Cut(pref, "=")
		switch value {
		case "y", "yes":
			said[category] = Allowed
		case "n", "no":
			said[category] = Disallowed
		default:
			said[category] = Unset
		}
	}
	return said
}

// BenchmarkCheckForHostile checks a URL with files of the maximum size that consist of preferences about
// its use.
func BenchmarkCheckForHostile(b *testing.B) {
	many := make([]string, syntax.MaxCategories)
	for i := range many {
		many[i] = fmt.Sprintf("a%d=n", i)
	}
	for _, kind := range []struct {
		name string
		line func(i int) string
	}{
		{"one-path", func(int) string { return "Content-Usage: a=y\n" }},
		{"one-path-many-categories", func(int) string { return "Content-Usage: " + strings.Join(many, ",") + "\n" }},
		{"many-paths", func(i int) string { return fmt.Sprintf("Content-Usage: /%x a=y\n", i) }},
		{"many-spellings", func(i int) string {
			return "Content-Usage: " + escapedSpelling("/aaaaaaaaaaaaaaaa", i) + " a=y\n"
		}},
		{"many-wildcards", func(i int) string { return fmt.Sprintf("Content-Usage: /*%05x a=y\n", i) }},
		{"many-wildcards-that-match", func(i int) string { return "Content-Usage: " + wildcardPath(i) + " a=y\n" }},
		{"many-of-both", func(i int) string {
			return "Content-Usage: " + wildcardPath(i) + " " + strings.Join(many, ",") + "\n"
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			var text strings.Builder
			for i := 0; text.Len() < robots.MaxFileBytes-1000; i++ {
				text.WriteString(kind.line(i))
			}
			rules, usage := compile(text.String())
			u := robotstest.URL(b, "http://h/"+strings.Repeat("a", 200))
			b.ReportAllocs()
			for b.Loop() {
				Check(rules, usage, u, []string{"search"})
			}
		})
	}
}

// escapedSpelling escapes the letters of a path that correspond to the bits of i.
func escapedSpelling(path string, i int) string {
	var b strings.Builder
	for n, c := range []byte(path) {
		if c != '/' && i>>(n-1)&1 == 1 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// wildcardPath returns a path of fixed length with three wildcards, at different places for each i below
// 8000.
func wildcardPath(i int) string {
	x, y, z := i%20, i/20%20, i/400%20
	as := strings.Repeat("a", 60)
	return "/" + as[:x+1] + "*" + as[:y+1] + "*" + as[:z+1] + "*" + as[x+y+z:]
}
