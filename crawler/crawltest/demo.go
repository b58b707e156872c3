package crawltest

import (
	"embed"
	"net/url"
	"strings"
	"time"
)

// Demo returns a web of small sites, in one quiet town, with most of what
// makes crawling hard: rules with wildcards, a Crawl-delay, Clean-param noise,
// sitemaps and a feed, redirects that loop or lead where they should not, a calendar
// without end, robots.txt files that fail, move or never come, servers that
// are slow, overloaded or broken. Its Plan says where to begin and which limits
// make the crawl end; Reachable says what it should find. No host has more than
// 60 pages, and the ones with faults have few.
func Demo() *Web {
	w := New(
		library(), garden(), timetable(), almanac(), museum(), market(),
		post(), annex(), weather(), lighthouse(), archive(),
		meadow(), workshop(), cafe(), river(), radio(), harbour(),
	)
	w.Plan = Plan{MaxDepth: 24, Attempts: 3, Timeout: 3 * time.Second}
	for _, host := range demoHosts {
		w.Plan.Seeds = append(w.Plan.Seeds, home(host))
	}
	return w
}

// demoHosts are the hosts of the demo web, as its town lists them.
var demoHosts = [...]string{
	"library.example", "garden.example", "timetable.example", "almanac.example", "museum.example", "market.example",
	"post.example", "annex.example", "weather.example", "lighthouse.example", "archive.example",
	"meadow.example", "workshop.example", "cafe.example", "river.example", "radio.example", "harbour.example",
}

func home(host string) string { return "http://" + host + "/" }

//go:embed demo/*.txt
var demoTexts embed.FS

// An item is what one page of the demo web is about.
type item struct{ title, text, slug string }

// items reads a list of the demo web's texts: a line is title|text.
func items(name string) []item {
	data, err := demoTexts.ReadFile("demo/" + name + ".txt")
	if err != nil {
		return nil // not one of ours; a test sees that pages are missing
	}
	var list []item
	for line := range strings.Lines(string(data)) {
		title, text, _ := strings.Cut(strings.TrimSpace(line), "|")
		list = append(list, item{title, text, slug(title)})
	}
	return list
}

// slug returns a title as a path segment.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(c rune) bool { return c == ' ' || c == '\'' || c == ',' })
	return url.PathEscape(strings.Join(words, "-"))
}
