package robots_test

import (
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// TestLines proves that Lines numbers lines as verdicts do, whatever the line ends are.
func TestLines(t *testing.T) {
	text := "# a\r\rUser-agent: *\n\r\nDisallow: /x\r\nDisallow: /y"
	u, err := decorum.ParseURL("https://a.example/y")
	if err != nil {
		t.Fatal(err)
	}
	v := robots.Parse([]byte(text), robots.Google).RulesFor(robots.AgentFromName("bot")).Check(u)
	got := ""
	for n, line := range robots.Lines(text) {
		got += fmt.Sprintf("%d %q ", n, line)
		if n == v.Line && line != "Disallow: /y" {
			t.Errorf("the verdict is of line %d, which is %q", n, line)
		}
	}
	if want := `1 "# a" 2 "" 3 "User-agent: *" 4 "" 5 "Disallow: /x" 6 "Disallow: /y" `; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
