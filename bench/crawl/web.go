package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A web is hosts with so many pages each. Every page can be reached from the
// first of the first host.
type web struct{ Hosts, Pages int }

const (
	pageBytes = 20_480
	linked    = 50 // links of a page
	abroad    = 10 // of them lead to other hosts, if there are any
)

func (w web) size() int { return w.Hosts * w.Pages }

func hostName(host int) string { return "site-" + strconv.Itoa(host) + ".example" }

// path has a section and a slug, as the paths of articles have.
func path(page int) string {
	return fmt.Sprintf("/section-%d/article-%d.html", page%17, page)
}

// seed is the first page of the first host.
func seed() string { return "http://" + hostName(0) + path(0) }

// find returns the number of the page of a path, and false if there is none.
func (w web) find(p string) (int, bool) {
	_, slug, _ := strings.Cut(p, "/article-")
	page, err := strconv.Atoi(strings.TrimSuffix(slug, ".html"))
	return page, err == nil && page >= 0 && page < w.Pages && path(page) == p
}

// links are those of a page. Its own host's fan out as a tree does, so that a
// crawl is soon in its breadth and most links of a page are known already.
func (w web) links(host, page int) []string {
	links := make([]string, 0, linked)
	if w.Hosts > 1 {
		for i := range abroad {
			links = append(links, "http://"+hostName((host*abroad+i+1)%w.Hosts)+path(page))
		}
	}
	own := linked - len(links)
	for i := range own {
		links = append(links, path((page*own+i+1)%w.Pages))
	}
	return links
}

const (
	head = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Article %d of %s</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><header><h1>Article %[1]d</h1></header><main>
`
	item = `<section><h2>Part %d</h2><p>Of <em>many</em> things <strong>one</strong> leads to <span class="more">` +
		`<a class="entry" href="%s">another</a></span>`
	filler = "so that whoever reads it may go on reading, "
	tail   = "</main></body></html>\n"
)

// body is a page: about 370 elements, and exactly pageBytes long.
func (w web) body(host, page int) string {
	var b strings.Builder
	fmt.Fprintf(&b, head, page, hostName(host))
	begin, available := b.Len(), pageBytes-len(tail)-b.Len()
	for i, link := range w.links(host, page) {
		fmt.Fprintf(&b, item, i, link)
		text := begin + available*(i+1)/linked - b.Len() - len("</p></section>\n")
		b.WriteString(strings.Repeat(filler, text/len(filler)+1)[:text])
		b.WriteString("</p></section>\n")
	}
	b.WriteString(tail)
	return b.String()
}
