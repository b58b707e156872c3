package crawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawl"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
)

// libraryWeb is a site of two pages, and one that robots.txt disallows.
func libraryWeb() *crawltest.Web {
	page := func(body string) crawltest.PageFunc { return crawltest.StaticPage(crawltest.HTML(body)) }
	return crawltest.New(crawltest.Site{Host: "library.example", Pages: map[string]crawltest.PageFunc{
		"/":      page("<title>Library</title><a href=/hours>Hours</a><a href=/loans>Loans</a>"),
		"/hours": page("<title>Hours</title><a href=http://elsewhere.example/>elsewhere</a>"),
	}, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response:     crawltest.Text("User-agent: *\nDisallow: /loans\n"),
		IsDisallowed: func(p string) bool { return p == "/loans" }})})
}

// OnPage gets each page of the hosts of the seeds.
func ExampleRun() {
	// For the example; the default is the network, and a delay of seconds.
	policy, network := politeness.Policy{Delay: 10 * time.Millisecond}, httpfetch.Config{Transport: libraryWeb()}
	cfg := crawl.Config{Policy: policy, FetchConfig: network}

	cfg.Agent, cfg.Contact = "examplebot/1.0", "https://example.org/bot" // yours
	cfg.Seeds = []string{"http://library.example/"}
	cfg.OnPage = func(_ context.Context, v *crawler.Visit) error {
		fmt.Println(v.URL(), v.Title())
		return nil
	}
	if err := crawl.Run(context.Background(), cfg); err != nil {
		fmt.Println(err)
	}
	// Output:
	// http://library.example/ Library
	// http://library.example/hours Hours
}
