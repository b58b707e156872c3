// Robotsimpact is a check for the owners of sites: it lists which of the given URLs a new
// robots.txt opens or closes to the given crawlers. It exits with code 3 if it closes a URL, so
// that a deployment can stop.
//
//	go run ./examples/robotsimpact old.txt new.txt urls.txt Googlebot Bingbot
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: robotsimpact OLD NEW URLS AGENT…")
		os.Exit(2)
	}
	var text [3]string
	for i, name := range os.Args[1:4] {
		b, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		text[i] = string(b)
	}
	closed, err := compareRobots(os.Stdout, text[0], text[1], strings.Fields(text[2]), os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if closed > 0 {
		os.Exit(3)
	}
}

// compareRobots writes the changes for each agent and URL, and returns how many it closes.
func compareRobots(w io.Writer, before, after string, urls, agents []string) (closed int, err error) {
	oldFile, newFile := robots.Parse([]byte(before), robots.Google), robots.Parse([]byte(after), robots.Google)
	for _, name := range agents {
		agent := robots.AgentFromName(name)
		oldRules, newRules := oldFile.RulesFor(agent), newFile.RulesFor(agent)
		for _, s := range urls {
			u, err := decorum.ParseURL(s)
			if err != nil {
				return closed, err
			}
			// Only a change of the verdict counts, not a change of the rule.
			a, b := oldRules.Check(u), newRules.Check(u)
			switch {
			case a.Allowed && !b.Allowed:
				closed++
				fmt.Fprintf(w, "closed to %s: %s, by line %d: %s\n", name, u, b.Line, b.Rule)
			case !a.Allowed && b.Allowed:
				fmt.Fprintf(w, "opened to %s: %s\n", name, u)
			}
		}
	}
	return closed, nil
}
