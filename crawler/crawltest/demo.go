package crawltest

import (
	"embed"
	"net/url"
	"strings"
	"time"
)

// DemoWeb returns a web of small sites, in one quiet town, with most of what
// makes crawling hard: rules with wildcards, a Crawl-delay, Clean-param noise,
// sitemaps and a feed, redirects that loop or lead where they should not, a calendar
// without end, robots.txt files that fail, move or never come, servers that
// are slow, overloaded or broken. Its CrawlSettings says where to begin and which limits
// make the crawl end; Reachable says what it should find. No host has more than
// 60 pages, and the ones with faults have few.
func DemoWeb() *Web {
	w := New(
		wildcardRulesSite(), relativeLinksSite(), crawlDelaySite(), endlessCalendarSite(), sitemapIndexSite(), cleanParamSite(),
		redirectsSite(), redirectedRobotsSite(), unavailableRobotsSite(), hangingRobotsSite(), nonHTMLAndNofollowSite(),
		missingRobotsSite(), serverErrorSite(), retryAfterSite(), slowPageSite(), gzipAndFeedSite(), connectionResetSite(),
	)
	w.CrawlSettings = CrawlSettings{MaxDepth: 24, MaxAttempts: 3, RequestTimeout: 3 * time.Second}
	for _, host := range demoHosts {
		w.CrawlSettings.Seeds = append(w.CrawlSettings.Seeds, homeURL(host))
	}
	return w
}

// demoHosts are the hosts of the demo web, as its town lists them.
var demoHosts = [...]string{
	"library.example", "garden.example", "timetable.example", "almanac.example", "museum.example", "market.example",
	"post.example", "annex.example", "weather.example", "lighthouse.example", "archive.example",
	"meadow.example", "workshop.example", "cafe.example", "river.example", "radio.example", "harbour.example",
}

func homeURL(host string) string { return "http://" + host + "/" }

//go:embed demo/*.txt
var demoTexts embed.FS

// A demoPageContent is what one page of the demo web is about.
type demoPageContent struct{ title, text, slug string }

// readDemoPageContents reads a list of the demo web's texts: a line is title|text.
func readDemoPageContents(name string) []demoPageContent {
	data, err := demoTexts.ReadFile("demo/" + name + ".txt")
	if err != nil {
		return nil // not one of ours; a test sees that pages are missing
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
