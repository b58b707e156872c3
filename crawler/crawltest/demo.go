package crawltest

import (
	"embed"
	"net/url"
	"strings"
	"time"
)

// DemoWeb returns a web of the small sites of a town, with most of what makes crawling hard: rules
// with wildcards, a Crawl-delay, Clean-param noise, sitemaps and a feed, redirects that loop or lead
// to closed pages, an endless calendar, robots.txt files that fail, move or never come, and servers
// that are slow, overloaded or broken. Its CrawlSettings holds the seeds and the limits by which a
// crawl ends; FindReachableURLs returns what the crawl should find. A host has at most 60 pages, and
// a host with faults has few.
func DemoWeb() *Web {
	w := New(
		wildcardRulesSite(), relativeLinksSite(), crawlDelaySite(), endlessCalendarSite(),
		sitemapIndexSite(), cleanParamSite(),
		redirectsSite(), redirectedRobotsSite(), unavailableRobotsSite(), hangingRobotsSite(), nonHTMLAndNofollowSite(),
		missingRobotsSite(), serverErrorSite(), retryAfterSite(), slowPageSite(),
		gzipAndFeedSite(), connectionResetSite(),
	)
	w.CrawlSettings = CrawlSettings{MaxDepth: 24, MaxAttempts: 3, RequestTimeout: 3 * time.Second}
	for _, host := range demoHosts {
		w.CrawlSettings.Seeds = append(w.CrawlSettings.Seeds, homeURL(host))
	}
	return w
}

// demoHosts holds the hosts of the demo web. Each home page links to others of them by their distance
// in this list.
var demoHosts = [...]string{
	"library.example", "garden.example", "timetable.example", "almanac.example", "museum.example", "market.example",
	"post.example", "annex.example", "weather.example", "lighthouse.example", "archive.example",
	"meadow.example", "workshop.example", "cafe.example", "river.example", "radio.example", "harbour.example",
}

func homeURL(host string) string { return "http://" + host + "/" }

//go:embed demo/*.txt
var demoTexts embed.FS

// A demoPageContent is the content of a page of the demo web. slug is its path segment.
type demoPageContent struct{ title, text, slug string }

// readDemoPageContents reads the file demo/NAME.txt, in which each line is title|text.
func readDemoPageContents(name string) []demoPageContent {
	data, err := demoTexts.ReadFile("demo/" + name + ".txt")
	if err != nil {
		return nil // the file is embedded; if name is wrong, a test misses its pages
	}
	var list []demoPageContent
	for line := range strings.Lines(string(data)) {
		title, text, _ := strings.Cut(strings.TrimSpace(line), "|")
		list = append(list, demoPageContent{title, text, slugFromTitle(title)})
	}
	return list
}

// slugFromTitle returns a title as a path segment.
func slugFromTitle(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(c rune) bool { return c == ' ' || c == '\'' || c == ',' })
	return url.PathEscape(strings.Join(words, "-"))
}
