package lint_test

import (
	"fmt"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/lint"
)

const file = `User-agent: *
Disallow: /cart
Allow: /cart/help
Crawl-delay: 2

Sitemap: https://shop.example/sitemap.xml
`

// The author of a file checks it.
func ExampleCheck() {
	for _, f := range lint.Check([]byte("User-agent: *\nDisalow: /cart\n"), robots.ParseOptions{}) {
		fmt.Printf("line %d, %s: %s; %s\n", f.Line, f.Severity, f.Message, f.Advice)
	}
	// Output:
	// line 1, hint: the last group, of "*", has no rules; "Allow: /" says so explicitly
	// line 2, error: unknown field "disalow"; probably "disallow"
}

// The owner of a site compares a new version of the file with the old one.
func ExampleDiff() {
	before := robots.Parse([]byte(file), robots.Google)
	after := robots.Parse([]byte("User-agent: *\nDisallow: /c\nAllow: /cart/help\nCrawl-delay: 10\n"), robots.Google)
	changes := lint.Diff(before, after)
	for _, a := range changes.AgentChanges {
		fmt.Printf("%s: %v added, %v removed, delay %v, before %v\n", a.Agent, a.AddedRules,
			a.RemovedRules, a.NewDelay, a.OldDelay)
	}
	fmt.Println("sitemaps removed:", changes.SitemapsRemoved)
	// Output:
	// *: [{disallow: /c 2}] added, [{disallow: /cart 2}] removed, delay 10s, before 2s
	// sitemaps removed: [https://shop.example/sitemap.xml]
}
