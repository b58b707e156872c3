// Package web generates the web that the benchmark programs visit or discover. It decides the names
// of hosts and pages, which have numbers, and the links between pages. Begin reading at PagePath
// and Child.
package web

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// LinksPerPage is how many links a page has in the programs that discover URLs with Entry.
const LinksPerPage = 50

// Host returns the name of a host by its number.
func Host(host int) string { return fmt.Sprintf("www.site-%d.example", host) }

// PagePath returns the path of a page by its number: a section and a slug, like the paths of
// articles.
func PagePath(page int) string { return pagePath("section", page) }

// pagePath returns the path of a page in one of 17 sections, whose names begin with section.
func pagePath(section string, page int) string {
	return fmt.Sprintf("/%s-%d/article-%d.html", section, page%17, page)
}

// PageNumber returns the number of the page at a path, and whether path is a result of PagePath.
func PageNumber(path string) (int, bool) {
	_, slug, _ := strings.Cut(path, "/article-")
	page, err := strconv.Atoi(strings.TrimSuffix(slug, ".html"))
	return page, err == nil && page >= 0 && path == PagePath(page)
}

// Child returns the number of the i-th child of a page in an endless tree in which each page has
// links children. The root is page 0.
func Child(page, i, links int) int { return links*page + 1 + i }

// Scatter maps consecutive numbers to hosts far from each other. The numbers below hosts map to
// each host once, unless hosts is a multiple of the prime 7,368,787.
func Scatter(n, hosts int) int { return n * 7_368_787 % hosts }

// Entry returns the entry that a crawl adds for a link to a page of a host. The same number stands
// for different pages in different sections.
func Entry(host int, section string, page int) storage.Entry {
	u, err := decorum.ParseURL("https://" + Host(host) + pagePath(section, page))
	if err != nil {
		panic(err) // impossible: the URL is valid
	}
	return storage.Entry{
		URL: u, Source: storage.SourceLink, PriorityClass: storage.ClassNormal, Depth: 3,
		Referrer: fmt.Sprintf("https://%s/%s-%d/index.html", Host(host), section, page%17),
	}
}

// LinkParagraphs returns a paragraph of HTML for each link, with the sentence before it, repeated
// repeat times.
func LinkParagraphs(sentence string, repeat int, links ...string) string {
	var b strings.Builder
	for _, link := range links {
		fmt.Fprintf(&b, "<p>%s<a href=%q>go on</a></p>\n", strings.Repeat(sentence, repeat), link)
	}
	return b.String()
}
