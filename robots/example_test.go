package robots_test

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

const file = `User-agent: *
Disallow: /cart
Allow: /cart/help
Crawl-delay: 2

Sitemap: https://shop.example/sitemap.xml
`

// A crawl parses a file once, compiles its rules once for its agent, and checks every URL.
func Example() {
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		fmt.Println(err)
		return
	}
	f := robots.Parse([]byte(file), robots.Google)
	rules := f.RulesFor(agent)
	for _, s := range []string{"https://shop.example/", "https://shop.example/cart/7",
		"https://shop.example/cart/help"} {
		u, err := decorum.ParseURL(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		v := rules.Check(u)
		fmt.Printf("%s %v by line %d %q\n", u.PathAndQuery(), v.Allowed, v.Line, v.Rule)
	}
	delay, _ := rules.CrawlDelay()
	fmt.Println(delay, f.Sitemaps())
	// Output:
	// / true by line 0 ""
	// /cart/7 false by line 2 "disallow: /cart"
	// /cart/help true by line 3 "allow: /cart/help"
	// 2s [https://shop.example/sitemap.xml]
}
