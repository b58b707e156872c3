// Package web makes up the web that the programs visit or discover: hosts and pages by their
// numbers, the order in which links lead from one to another, and the text around them.
package web

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// LinksPerPage is how many links a page has that is discovered by Entry.
const LinksPerPage = 50

// Host returns the name of a host.
func Host(host int) string { return fmt.Sprintf("www.site-%d.example", host) }

// PagePath returns the path of a page. It has a section and a slug, as the paths of articles have.
func PagePath(page int) string { return pagePath("section", page) }

func pagePath(section string, page int) string {
	return fmt.Sprintf("/%s-%d/article-%d.html", section, page%17, page)
}

// PageNumber returns the number of the page at a path, and false if the path has no number.
func PageNumber(path string) (int, bool) {
	_, slug, _ := strings.Cut(path, "/article-")
	page, err := strconv.Atoi(strings.TrimSuffix(slug, ".html"))
	return page, err == nil && page >= 0 && path == PagePath(page)
}

// Child returns the number of the i-th of the pages that only this page links to, where each links to
// that many. The web is then a tree without end, whose root is page 0.
func Child(page, i, links int) int { return links*page + 1 + i }

// Scatter puts consecutive numbers far from each other, each once if below the number of hosts, which
// the prime does not divide.
func Scatter(n, hosts int) int { return n * 7_368_787 % hosts }

// Entry returns the link to a page of a host as a crawl adds it. Pages of different sections are
// different.
func Entry(host int, section string, page int) storage.Entry {
	u, err := decorum.ParseURL("https://" + Host(host) + pagePath(section, page))
	if err != nil {
		panic(err) // cannot be
	}
	return storage.Entry{
		URL: u, Source: storage.SourceLink, PriorityClass: storage.ClassNormal, Depth: 3,
		Referrer: fmt.Sprintf("https://%s/%s-%d/index.html", Host(host), section, page%17),
	}
}

// LinkParagraphs returns a paragraph of HTML for each link, with a text of so many repeated sentences
// before it.
func LinkParagraphs(sentence string, repeat int, links ...string) string {
	var b strings.Builder
	for _, link := range links {
		fmt.Fprintf(&b, "<p>%s<a href=%q>go on</a></p>\n", strings.Repeat(sentence, repeat), link)
	}
	return b.String()
}
