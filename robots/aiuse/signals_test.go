package aiuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name, file, agent, path string
		want                    []string
	}{
		{"none", "User-agent: *\nDisallow: /", "bot", "/", nil},
		{"for the whole site", "User-agent: *\nContent-Usage: train-ai=n", "bot", "/x",
			[]string{"2 content-usage train-ai disallow"}},
		{"yes and no", "User-agent: *\nContent-Signal: search=yes, AI-train=No", "bot", "/x",
			[]string{"2 content-signal search allow", "2 content-signal ai-train disallow"}},
		{"neither", "User-agent: *\ncontent-usage: search, train-ai=maybe;p=1, =n,", "bot", "/x",
			[]string{"2 content-usage search unset", "2 content-usage train-ai unset"}},
		{"the last of a line", "User-agent: *\nContent-Usage: a=y, b=y, a=n;x", "bot", "/x",
			[]string{"2 content-usage b allow", "2 content-usage a disallow"}},
		{"the longest path", "User-agent: *\nContent-Usage: train-ai=n, search=y\nContent-Usage: /open/ train-ai=y",
			"bot", "/open/x",
			[]string{"3 content-usage train-ai allow"}},
		{"beside the longest path", "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open/ train-ai=y", "bot",
			"/x",
			[]string{"2 content-usage train-ai disallow"}},
		{"a pattern as path", "User-agent: *\nContent-Usage: /*.pdf$\ttrain-ai=n", "bot", "/a.pdf",
			[]string{"2 content-usage train-ai disallow"}},
		{"equal paths", "User-agent: *\nContent-Usage: a=n\nContent-Usage: / a=y, b=y", "bot", "/",
			[]string{"2 content-usage a disallow", "3 content-usage b allow"}},
		{"each field on its own", "User-agent: *\nContent-Usage: /x search=n\nContent-Signal: search=yes", "bot", "/x",
			[]string{"2 content-usage search disallow", "3 content-signal search allow"}},
		{"GRP-07/of the own group only", "User-agent: *\nContent-Usage: a=n\nUser-agent: bot\nContent-Usage: " +
			"b=n\nDisallow: /", "bot", "/",
			[]string{"4 content-usage b disallow"}},
		{"before any group", "Content-Usage: a=n\nUser-agent: *\nDisallow: /", "bot", "/", nil},
		{"a path alone", "User-agent: *\nContent-Usage: /a", "bot", "/a", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, s := range Compile(robots.Parse([]byte(test.file), robots.Google),
				robots.AgentFromName(test.agent)).SignalsForURL(robotstest.URL(t, "http://h"+test.path)) {
				got = append(got, fmt.Sprint(s.Line, " ", s.Field, " ", s.Category, " ", s.Preference))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestSignalsShapeNoGroup proves GRP-08: signal lines do not end a run of user-agent lines.
func TestSignalsShapeNoGroup(t *testing.T) {
	f := robots.Parse([]byte("User-agent: a\nContent-Usage: train-ai=n\nUser-agent: b\nDisallow: /x\n"), robots.Google)
	u := robotstest.URL(t, "http://h/x")
	if f.RulesFor(robots.AgentFromName("a")).Check(u).Allowed {
		t.Error("GRP-08: the signal line has split the group")
	}
	if n := len(Compile(f, robots.AgentFromName("b")).SignalsForURL(u)); n != 0 {
		t.Errorf("b has %d signals of a's record", n)
	}
	if o := (robots.ParseOptions{NoExtensions: true}); Compile(o.Parse([]byte("User-agent: *\nContent-Usage: a=n")),
		robots.Agent{}) != nil {
		t.Error("signals are read though extensions are off")
	}
}

func TestUsageIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("User-agent: *\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "Content-Usage: a%d=n, b%d=y\n", i, i)
	}
	if n := len(usageRulesOf(b.String()).SignalsForURL(robotstest.URL(t, "http://h/"))); n != syntax.MaxCategories {
		t.Errorf("%d categories, want %d", n, syntax.MaxCategories)
	}
}
