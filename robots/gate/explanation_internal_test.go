package gate

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// TestExplanationKeys proves the order of the keys of an explanation in JSON, which scripts may compare
// as text.
func TestExplanationKeys(t *testing.T) {
	u, err := decorum.ParseURL("http://a.example/x")
	if err != nil {
		t.Fatal(err)
	}
	rules := robots.Parse([]byte("User-agent: *\nDisallow: /x\nCrawl-delay: 2\n"),
		robots.Google).RulesFor(robots.Agent{})
	text, err := json.Marshal(NewExplanation(rules.Explain(u), "abc", aiuse.Signals{{Field: "content-usage"}}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"file_sha256", "path", "group_lines", "matches", "signals", "pace"}
	var got []string
	for _, m := range regexp.MustCompile(`"([a-z_0-9]+)":`).FindAllStringSubmatch(string(text), -1) {
		if slices.Contains(want, m[1]) {
			got = append(got, m[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q, in %s", got, want, text)
	}
}
