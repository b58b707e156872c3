package lint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

func TestDiff(t *testing.T) {
	const star = "User-agent: *\n"
	for _, test := range []struct {
		name, old, new string
		want           []string
	}{
		{"the same", star + "Disallow: /a\n", star + "Disallow: /a\n", nil},
		{"PREC-09/order, comments and spelling", star + "Disallow: /%61\nAllow: /b\nDisallow: /c*",
			"# new\nuser-agent:*\nallow:/b\ndisallow:/c\nDisallow: /a", nil},
		{"added and removed", star + "Disallow: /a\nDisallow: /b", star + "Disallow: /b\nAllow: /a",
			[]string{"* + allow: /a (3)", "* - disallow: /a (2)"}},
		{"an end is a change", star + "Disallow: /a", star + "Disallow: /a$",
			[]string{"* + disallow: /a$ (2)", "* - disallow: /a (2)"}},
		{"GRP-07/a group of its own", star + "Disallow: /a", star + "Disallow: /a\n\nUser-agent: Bot\nDisallow: /b",
			[]string{"bot + disallow: /b (5)", "bot - disallow: /a (2)"}},
		{"GRP-06/groups joined", "User-agent: bot\nDisallow: /a\nUser-agent: x\nUser-agent: bot\nDisallow: /b",
			"User-agent: bot\nDisallow: /b\nDisallow: /a\nUser-agent: x\nDisallow: /b", nil},
		{"delays", star + "Disallow: /a", star + "Disallow: /a\nCrawl-delay: 1.5", []string{"* none -> 1.5s"}},
		{"a delay of nothing is one", star + "Crawl-delay: 0\nDisallow: /a",
			star + "Disallow: /a", []string{"* 0s -> none"}},
		{"sitemaps", "Sitemap: https://h/a\nSitemap: https://h/b", "Sitemap: https://h:443/b\nSitemap: https://h/c",
			[]string{"+ https://h/c", "- https://h/a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Diff(robots.Parse([]byte(test.old), robots.Google), robots.Parse([]byte(test.new), robots.Google))
			if got := describeChanges(c); !slices.Equal(got, test.want) || c.IsEmpty() != (len(test.want) == 0) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func describeChanges(c FileChanges) []string {
	var all []string
	for _, a := range c.AgentChanges {
		for _, r := range a.AddedRules {
			all = append(all, fmt.Sprintf("%s + %s (%d)", a.Agent, r.Rule, r.Line))
		}
		for _, r := range a.RemovedRules {
			all = append(all, fmt.Sprintf("%s - %s (%d)", a.Agent, r.Rule, r.Line))
		}
		if a.OldDelay != a.NewDelay {
			all = append(all, fmt.Sprintf("%s %s -> %s", a.Agent, a.OldDelay, a.NewDelay))
		}
	}
	for _, s := range c.SitemapsAdded {
		all = append(all, "+ "+s)
	}
	for _, s := range c.SitemapsRemoved {
		all = append(all, "- "+s)
	}
	return all
}

func TestDiffAsJSON(t *testing.T) {
	c := Diff(robots.Parse([]byte("User-agent: *\nDisallow: /a\n"), robots.Google),
		robots.Parse([]byte("User-agent: *\nCrawl-delay: 2\n"), robots.Google))
	got, err := json.Marshal(c)
	if want := `{"agents":[{"agent":"*","removed":[{"rule":"disallow: /a","line":2}],"old_delay":"none","new_delay":"2s"}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestNoDiffNoChange proves that files without a difference give the same verdicts.
func TestNoDiffNoChange(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	same := 0
	for range 4000 {
		var files [2]*robots.File
		for i := range files {
			var b strings.Builder
			b.WriteString("User-agent: *\n")
			for range 1 + random.IntN(2) {
				b.WriteString([]string{"Allow: ", "Disallow: "}[random.IntN(2)] + []string{"/a", "/%61", "/a*", "/a$",
					"/", "/*a", "/**a"}[random.IntN(7)] + "\n")
			}
			files[i] = robots.Parse([]byte(b.String()), robots.Google)
		}
		if !Diff(files[0], files[1]).IsEmpty() {
			continue
		}
		same++
		for _, path := range []string{"/", "/a", "/ab", "/ba", "/b"} {
			u := robotstest.URL(t, "http://h"+path)
			if a, b := files[0].RulesFor(robots.Agent{}).Check(u), files[1].RulesFor(robots.Agent{}).Check(
				u); a.Allowed != b.Allowed {
				t.Fatalf("%s: %+v and %+v without a difference", path, a, b)
			}
		}
	}
	if same < 100 {
		t.Errorf("only %d pairs were the same", same)
	}
}

// TestDiffKnowsWhomADialectNames proves that Diff reports a change for an agent that only the dialect of
// the file finds in a user-agent line.
func TestDiffKnowsWhomADialectNames(t *testing.T) {
	for _, tt := range []struct {
		d        robots.Dialect
		old, new string
		agent    string
	}{
		{robots.GoogleOSS, "User-agent: bot2\nDisallow: /a\n", "User-agent: bot2\nDisallow: /b\n", "bot"},
		{robots.GoogleOSS, "User-agent: * x\nDisallow: /a\n", "User-agent: * x\nDisallow: /b\n", "*"},
		{robots.GoogleOSS, "User-agent: bot\nDisallow: /%41B\n", "User-agent: bot\nDisallow: /A%42\n", "bot"},
		{robots.Yandex, "User-agent: (compatible; SuperBot)\nDisallow: /a\n",
			"User-agent: (compatible; SuperBot)\nDisallow: /b\n", "superbot"},
	} {
		c := Diff(robots.Parse([]byte(tt.old), tt.d), robots.Parse([]byte(tt.new), tt.d))
		if !slices.ContainsFunc(c.AgentChanges, func(a AgentChange) bool { return a.Agent == tt.agent }) {
			t.Errorf("%v: %q to %q: %+v, want a change for %s", tt.d, tt.old, tt.new, c.AgentChanges, tt.agent)
		}
	}
}

// TestDiffIsBounded proves that Diff compares at most maxComparedAgents and counts the others.
func TestDiffIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "User-agent: a%s\nDisallow: /%d\n", strings.Repeat("b", i), i)
	}
	c := Diff(robots.Parse([]byte(b.String()), robots.Google), robots.Parse(nil, robots.Google))
	if len(c.AgentChanges) > maxComparedAgents || c.AgentsNotComparedCount != 201 {
		t.Errorf("%d agents compared, %d left out; want at most %d, and 201", len(c.AgentChanges),
			c.AgentsNotComparedCount, maxComparedAgents)
	}
}

func TestDiffOfPace(t *testing.T) {
	old := robots.Parse([]byte("user-agent: *\nrequest-rate: 1/5m 0800-1300\nvisit-time: 0600-08:45"), robots.Google)
	want := []string{"request-rate: 1/300s 0800-1300", "visit-time: 0600-0845"}
	c := Diff(old, robots.Parse(nil, robots.Google))
	if len(c.AgentChanges) != 1 || !slices.Equal(c.AgentChanges[0].OldRateAndVisitTimeLines, want) ||
		c.AgentChanges[0].NewRateAndVisitTimeLines != nil {
		t.Errorf("difference %+v", c)
	}
}
