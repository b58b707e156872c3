package collyfetch_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"
)

// TestCollyAsksForNoRobots: a collector that obeys robots.txt leaves that to the crawl (INT-10):
// robots.txt is requested once, and its rules and delay apply.
func TestCollyAsksForNoRobots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, c := smallWeb(), colly.NewCollector()
		c.IgnoreRobotsTxt = false
		crawl := wrapCollector(t, c, quietOptions(web))
		c.IgnoreRobotsTxt = false
		crawl.OnHTML("a[href]", func(e *colly.HTMLElement) { must(t, e.Request.Visit(e.Attr("href"))) })
		must(t, crawl.Visit("http://a.test/"))
		crawl.Wait()
		var requested []string
		for _, x := range web.Log() {
			requested = append(requested, strings.TrimPrefix(x.URL, "http://a.test"))
		}
		if want := []string{"/robots.txt", "/", "/church", "/mill"}; !slices.Equal(requested, want) {
			t.Errorf("requests %q, want %q", requested, want)
		}
		checkPolite(t, web)
	})
}
