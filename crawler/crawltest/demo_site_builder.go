package crawltest

import (
	"html"
	"slices"
	"strings"
	"time"
)

// A demoSiteBuilder is a site of the demo web being built.
type demoSiteBuilder struct {
	Site
	name     string
	charset  string // of every page
	feedPath string // of the feed that every page announces; empty: none
}

// newDemoSiteBuilder returns a site with a robots.txt and no pages. It answers after 2 to 12 ms.
func newDemoSiteBuilder(host, name string, r RobotsSpec) *demoSiteBuilder {
	return &demoSiteBuilder{name: name, charset: "utf-8", Site: Site{
		Host: host, Robots: StaticRobots(r), Pages: map[string]PageFunc{},
		Latency: Latency{Base: 2 * time.Millisecond, Jitter: 10 * time.Millisecond, Seed: 1},
	}}
}

// allowAllRobots returns a robots.txt that allows everything.
func allowAllRobots() RobotsSpec { return RobotsSpec{Response: Text("User-agent: *\nDisallow:\n")} }

// addHTMLPage adds an HTML page at a path.
func (p *demoSiteBuilder) addHTMLPage(path, title string, parts ...string) {
	p.Pages[path] = StaticPage(HTML(p.renderHTML("", title, parts...)))
}

// addPage adds a page of any kind at a path.
func (p *demoSiteBuilder) addPage(path string, page PageFunc) { p.Pages[path] = page }

// addHomePage adds the home page, with links to three other sites of the demo web.
func (p *demoSiteBuilder) addHomePage(text string, parts ...string) {
	i := slices.Index(demoHosts[:], p.Host)
	var neighbours []string
	for _, step := range []int{1, 5, 8} {
		host := demoHosts[(i+step)%len(demoHosts)]
		neighbours = append(neighbours, linkHTML(homeURL(host), host))
	}
	p.addHTMLPage("/", p.name, paragraphHTML(text), strings.Join(parts, "\n"), "<h2>Next door</h2>",
		bulletListHTML(neighbours...))
}

// addInterlinkedPages adds a page for each item to a directory, and returns links to all of them.
// Each page links to the one before, the one after, and the directory. href returns the href of a
// page by its slug. Only the last page has lastLinks.
func (p *demoSiteBuilder) addInterlinkedPages(
	dir string, items []demoPageContent, href func(slug string) string, lastLinks ...string,
) []string {
	var links []string
	for i, it := range items {
		next := items[(i+1)%len(items)]
		before := items[(i+len(items)-1)%len(items)]
		neighbours := []string{
			linkHTML(href(before.slug), before.title), linkHTML(href(next.slug), next.title),
			linkHTML(href(""), "All of them"),
		}
		if i == len(items)-1 {
			neighbours = append(neighbours, lastLinks...)
		}
		p.addHTMLPage(dir+it.slug, it.title, paragraphHTML(it.text), bulletListHTML(neighbours...))
		links = append(links, linkHTML(href(it.slug), it.title))
	}
	return links
}

// hrefFuncForDir returns an href function for addInterlinkedPages that returns absolute paths.
func hrefFuncForDir(dir string) func(string) string {
	return func(slug string) string { return dir + slug }
}

// renderHTML returns the HTML of a page. head is added to its head element, parts to its body.
func (p *demoSiteBuilder) renderHTML(head, title string, parts ...string) string {
	if p.feedPath != "" {
		head += `<link rel="alternate" type="application/rss+xml" href="` + p.feedPath + `">`
	}
	return strings.Join(append([]string{
		"<!DOCTYPE html>",
		`<html lang="en">`,
		`<head><meta charset="` + p.charset + `">` + head + "<title>" + html.EscapeString(title) + " – " +
			html.EscapeString(p.name) + "</title></head>",
		"<body>",
		`<nav><a href="/">` + html.EscapeString(p.name) + "</a></nav>",
		"<main>",
		"<h1>" + html.EscapeString(title) + "</h1>",
	}, append(parts, "</main>", "</body>", "</html>", "")...), "\n")
}

func paragraphHTML(text string) string { return "<p>" + html.EscapeString(text) + "</p>" }

// feedXML returns an RSS feed of links.
func feedXML(links ...string) string {
	return `<rss version="2.0"><channel><item><link>` + strings.Join(links, "</link></item>\n<item><link>") +
		"</link></item></channel></rss>\n"
}

// linkHTML returns an <a> element with href first, then attributes.
func linkHTML(to, text string, attributes ...string) string {
	attributes = append([]string{`<a href="` + html.EscapeString(to) + `"`}, attributes...)
	return strings.Join(attributes, " ") + ">" + html.EscapeString(text) + "</a>"
}

func bulletListHTML(links ...string) string {
	return "<ul>\n<li>" + strings.Join(links, "</li>\n<li>") + "</li>\n</ul>"
}
