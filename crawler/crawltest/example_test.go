package crawltest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// The judge reports each rule that a crawler breaks: this one requests a page before robots.txt, then
// pages too soon after another, and a disallowed page.
func Example() {
	web := crawltest.New(crawltest.Site{
		Host: "bakery.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response:     crawltest.Text("User-agent: *\nDisallow: /recipes/\nCrawl-delay: 2\n"),
			CrawlDelay:   2 * time.Second,
			IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/recipes/") },
		}),
		Pages: map[string]crawltest.PageFunc{
			"/":              crawltest.StaticPage(crawltest.HTML(`<a href="/recipes/rye">Rye</a>`)),
			"/recipes/rye":   crawltest.StaticPage(crawltest.HTML("Flour, water, salt, time.")),
			"/recipes/wheat": crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/recipes/rye")),
		},
	})
	client := http.Client{Transport: web} // or web.Start, for a real socket
	for _, path := range []string{"/", "/robots.txt", "/recipes/rye"} {
		req, err := http.NewRequest(http.MethodGet, "http://bakery.example"+path, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("User-Agent", "hastybot/1.0 (+https://hastybot.example/)")
		res, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, res.Body) // the judge counts a robots.txt only if it was read to its end
		res.Body.Close()
	}
	for _, offence := range web.Judge(crawltest.JudgeOptions{}).Violations {
		fmt.Printf("%s: %s\n", offence.Exchange.URL, offence.Rule)
	}
	// Output:
	// http://bakery.example/: requested before robots.txt
	// http://bakery.example/recipes/rye: gap too short
	// http://bakery.example/recipes/rye: disallowed by robots.txt
}
