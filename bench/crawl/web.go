package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// A webSize is hosts with so many pages each. Every page can be reached from the
// first of the first host.
type webSize struct{ Hosts, Pages int }

const (
	pageBytes     = 20_480
	linksPerPage  = 50 // links of a page
	externalLinks = 10 // of them lead to other hosts, if there are any
)

func (w webSize) numPages() int { return w.Hosts * w.Pages }

func hostName(host int) string { return "site-" + strconv.Itoa(host) + ".example" }

// seedURL is the first page of the first host.
func seedURL() string { return "http://" + hostName(0) + web.PagePath(0) }

// pageNumber returns the number of the page of a path, and false if there is none.
func (w webSize) pageNumber(p string) (int, bool) {
	page, ok := web.PageNumber(p)
	return page, ok && page < w.Pages
}

// linksOf are those of a page. Its own host's fan out as a tree does, so that a
// crawl is soon in its breadth and most links of a page are known already.
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

// pageHTML is a page: about 370 elements, and exactly pageBytes long.
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
