package crawltest

import (
	"html"
	"slices"
	"strings"
	"time"
)

// A place is a site of the demo web being built.
type place struct {
	Site
	name    string
	charset string
	feed    string // that every page announces
}

// newPlace returns a site with robots.txt and no pages yet. It takes a moment
// to answer, as sites do.
func newPlace(host, name string, r Robots) *place {
	return &place{name: name, charset: "utf-8", Site: Site{
		Host: host, Robots: Lasting(r), Pages: map[string]Page{},
		Latency: Latency{Base: 2 * time.Millisecond, Jitter: 10 * time.Millisecond, Seed: 1},
	}}
}

// allowAll is the robots.txt of those who mind nothing.
func allowAll() Robots { return Robots{Answer: Text("User-agent: *\nDisallow:\n")} }

// page puts an HTML page at a path.
func (p *place) page(path, title string, parts ...string) {
	p.Pages[path] = Always(HTML(p.html("", title, parts...)))
}

// at puts anything else at a path.
func (p *place) at(path string, page Page) { p.Pages[path] = page }

// front puts the home page there, with links to the neighbours in town.
func (p *place) front(text string, parts ...string) {
	i := slices.Index(demoHosts[:], p.Host)
	var neighbours []string
	for _, step := range []int{1, 5, 8} {
		host := demoHosts[(i+step)%len(demoHosts)]
		neighbours = append(neighbours, link(home(host), host))
	}
	p.page("/", p.name, para(text), strings.Join(parts, "\n"), "<h2>Next door</h2>", list(neighbours...))
}

// series puts a page for each item into a directory, each linked to the one
// before, the one after and the directory, and returns links to all of them.
// href says how a page of the directory is linked to. Only the last page has
// the links in last.
func (p *place) series(dir string, items []item, href func(slug string) string, last ...string) []string {
	var links []string
	for i, it := range items {
		next := items[(i+1)%len(items)]
		before := items[(i+len(items)-1)%len(items)]
		around := []string{link(href(before.slug), before.title), link(href(next.slug), next.title), link(href(""), "All of them")}
		if i == len(items)-1 {
			around = append(around, last...)
		}
		p.page(dir+it.slug, it.title, para(it.text), list(around...))
		links = append(links, link(href(it.slug), it.title))
	}
	return links
}

// under returns the href of pages by their path on the site.
func under(dir string) func(string) string {
	return func(slug string) string { return dir + slug }
}

// html returns a page. head goes into its head.
func (p *place) html(head, title string, parts ...string) string {
	if p.feed != "" {
		head += `<link rel="alternate" type="application/rss+xml" href="` + p.feed + `">`
	}
	return strings.Join(append([]string{
		"<!DOCTYPE html>",
		`<html lang="en">`,
		`<head><meta charset="` + p.charset + `">` + head + "<title>" + html.EscapeString(title) + " – " + html.EscapeString(p.name) + "</title></head>",
		"<body>",
		`<nav><a href="/">` + html.EscapeString(p.name) + "</a></nav>",
		"<main>",
		"<h1>" + html.EscapeString(title) + "</h1>",
	}, append(parts, "</main>", "</body>", "</html>", "")...), "\n")
}

func para(text string) string { return "<p>" + html.EscapeString(text) + "</p>" }

// feed returns an RSS feed of links.
func feed(links ...string) string {
	return `<rss version="2.0"><channel><item><link>` + strings.Join(links, "</link></item>\n<item><link>") + "</link></item></channel></rss>\n"
}

// link returns a link, with further attributes if there are any.
func link(to, text string, attributes ...string) string {
	attributes = append([]string{`<a href="` + html.EscapeString(to) + `"`}, attributes...)
	return strings.Join(attributes, " ") + ">" + html.EscapeString(text) + "</a>"
}

func list(links ...string) string {
	return "<ul>\n<li>" + strings.Join(links, "</li>\n<li>") + "</li>\n</ul>"
}
