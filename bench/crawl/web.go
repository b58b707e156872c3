package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// A webSize is the number of hosts of a web and the number of pages of each. Links lead from the
// first page of the first host to every other page.
type webSize struct{ Hosts, Pages int }

const (
	pageBytes     = 20_480
	linksPerPage  = 50 // links of a page
	externalLinks = 10 // links of a page to other hosts, if the web has several
)

// numPages returns the number of pages of the web.
func (w webSize) numPages() int { return w.Hosts * w.Pages }

// hostName returns the name of a host by its number.
func hostName(host int) string { return "site-" + strconv.Itoa(host) + ".example" }

// seedURL returns the URL of the first page of the first host.
func seedURL() string { return "http://" + hostName(0) + web.PagePath(0) }

// pageNumber returns the number of the page at a path, and whether the page exists.
func (w webSize) pageNumber(p string) (int, bool) {
	page, ok := web.PageNumber(p)
	return page, ok && page < w.Pages
}

// linksOf returns the links of a page. The links within a host form a tree, so that a crawl soon
// has many pages in its queue, and knows most links of a page.
func (w webSize) linksOf(host, page int) []string {
	links := make([]string, 0, linksPerPage)
	if w.Hosts > 1 {
		for i := range externalLinks {
			links = append(links, "http://"+hostName((host*externalLinks+i+1)%w.Hosts)+web.PagePath(page))
		}
	}
	own := linksPerPage - len(links)
	for i := range own {
		links = append(links, web.PagePath((page*own+i+1)%w.Pages))
	}
	return links
}

// The parts of the HTML of a page.
const (
	pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Article %d of %s</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><header><h1>Article %[1]d</h1></header><main>
`
	pageSection = `<section><h2>Part %d</h2><p>Of <em>many</em> things <strong>one</strong> leads to <span class="more">` +
		`<a class="entry" href="%s">another</a></span>`
	fillerText = "so that whoever reads it may go on reading, "
	pageTail   = "</main></body></html>\n"
)

// pageHTML returns the HTML of a page: about 370 elements in exactly pageBytes bytes.
func (w webSize) pageHTML(host, page int) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, page, hostName(host))
	begin, available := b.Len(), pageBytes-len(pageTail)-b.Len()
	for i, link := range w.linksOf(host, page) {
		fmt.Fprintf(&b, pageSection, i, link)
		text := begin + available*(i+1)/linksPerPage - b.Len() - len("</p></section>\n")
		b.WriteString(strings.Repeat(fillerText, text/len(fillerText)+1)[:text])
		b.WriteString("</p></section>\n")
	}
	b.WriteString(pageTail)
	return b.String()
}
