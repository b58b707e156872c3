package aiuse_test

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// A file permits a visit to a page and forbids its use for the training of models.
func ExampleCheck() {
	file := robots.Parse([]byte("User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"), robots.Google)
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		fmt.Println(err)
		return
	}
	u, err := decorum.ParseURL("https://example.com/article")
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, usage := file.RulesFor(agent), aiuse.Compile(file, agent)
	for _, purpose := range []string{"search", "ai-train"} {
		verdict := aiuse.Check(rules, usage, u, []string{purpose})
		fmt.Printf("%s: %v by line %d %q\n", purpose, verdict.Allowed, verdict.Line, verdict.Rule)
	}
	// Output:
	// search: true by line 3 "allow: /"
	// ai-train: false by line 2 "content-signal: ai-train=n"
}
