package main

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// An endlessWeb has hosts with endless pages. Each page links to linksPerPage new ones, so that
// after a few minutes all queues are longer than the part of them in memory. Some hosts, and some
// pages of each, have the faults of the real web: errors, redirects, delays, and broken
// connections.
type endlessWeb struct {
	Hosts        int
	CrawlerDelay time.Duration // politeness.delay of the crawler
	RobotsMaxAge time.Duration // max-age of robots.txt files
}

// newTestWeb returns the web as a crawltest.Web whose log has space for the given number of
// requests.
func (w endlessWeb) newTestWeb(requests int) *crawltest.Web {
	sites := make([]crawltest.Site, w.Hosts)
	for h := range sites {
		sites[h] = crawltest.Site{
			Host: web.Host(h), Robots: crawltest.StaticRobots(w.robotsOf(h)),
			Fallback: func(r crawltest.PageRequest) crawltest.Response { return w.respond(h, r) },
			Latency:  crawltest.Latency{Base: 2 * time.Millisecond, Jitter: 30 * time.Millisecond},
		}
	}
	served := crawltest.New(sites...)
	served.MaxLogEntries = requests
	return served
}

// robotsOf returns the robots.txt of a host. Of every twenty hosts one returns 404, one 503, and
// one has a Crawl-delay longer than the crawler's own delay.
func (w endlessWeb) robotsOf(host int) crawltest.RobotsSpec {
	file := fmt.Sprintf("User-agent: *\nDisallow: /private/\nSitemap: http://%s%s\n", web.Host(host), sitemapPath)
	r := crawltest.RobotsSpec{IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/private/") }}
	switch host % 20 {
	case 3:
		return crawltest.RobotsSpec{Response: crawltest.Status(http.StatusNotFound)}
	case 5:
		return crawltest.RobotsSpec{Response: crawltest.Status(http.StatusServiceUnavailable)}
	case 7:
		r.CrawlDelay = w.CrawlerDelay * 3 / 2
		file += fmt.Sprintf("Crawl-delay: %g\n", r.CrawlDelay.Seconds())
	}
	r.Response = crawltest.Text(file)
	r.Response.Header.Set("Cache-Control", fmt.Sprintf("max-age=%.0f", math.Ceil(w.RobotsMaxAge.Seconds())))
	return r
}

const (
	sitemapPath      = "/sitemap.xml"
	sitemapPages     = 10      // pages in a sitemap
	firstSitemapPage = 1 << 20 // number of the first page in a sitemap
)

// respond returns the response of a host to a request for a page or its sitemap.
func (w endlessWeb) respond(host int, r crawltest.PageRequest) crawltest.Response {
	if r.Path == sitemapPath {
		return crawltest.ResponseOfType("application/xml", sitemapXML(host))
	}
	page, ok := pageNumber(r.Path)
	if !ok {
		return crawltest.Status(http.StatusNotFound)
	}
	// Kinds 1 to 7 are the special ones.
	a := crawltest.HTML(pageHTML(host, page))
	switch pageResponseKind(host, page) {
	case 1:
		return crawltest.Status(http.StatusNotFound)
	case 2:
		return crawltest.Status(http.StatusInternalServerError)
	case 3:
		return crawltest.Redirect(http.StatusMovedPermanently, web.PagePath(web.Child(page, 0, linksPerPage)))
	case 4:
		if r.NthForURL == 1 {
			a = crawltest.Status(http.StatusTooManyRequests)
			a.Header.Set("Retry-After", fmt.Sprintf("%.0f", math.Ceil((2*w.CrawlerDelay).Seconds())))
		}
	case 5:
		a.HeaderDelay = w.CrawlerDelay / 5
	case 6:
		a.Fault = crawltest.Reset
	case 7:
		a.Fault = crawltest.ShortBody
	default:
		a.GzipIfAccepted = page%2 == 0
	}
	return a
}

// pageResponseKind returns the kind of a page: 1 to 7 for one in ten or fewer, which are special
// (see respond), and another number for ordinary pages.
func pageResponseKind(host, page int) int {
	if page == 0 {
		return 0
	}
	return int(uint32(host*31+page) * 2_654_435_769 >> 16 % 77)
}

// linksPerPage is how many pages a page links to that no other page links to.
const linksPerPage = 8

// pageNumber returns the number of the page at a path, and whether the page exists.
func pageNumber(p string) (int, bool) {
	if p == "/" {
		return 0, true
	}
	return web.PageNumber(p)
}

// sitemapXML returns the sitemap of a host.
func sitemapXML(host int) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for i := range sitemapPages {
		fmt.Fprintf(&b, "<url><loc>http://%s%s</loc></url>", web.Host(host), web.PagePath(firstSitemapPage+i))
	}
	return b.String() + "</urlset>"
}

// pageHTML returns a page. It links to pages of the same host, to one that robots.txt disallows,
// and to one of the next host.
func pageHTML(host, page int) string {
	head := fmt.Sprintf("<!doctype html>\n<html lang=en><head><title>Article %d</title></head><body>\n", page)
	links := []string{web.PagePath(page / 2), "/", fmt.Sprintf("/private/draft-%d.html", page/4),
		"http://" + web.Host(host+1) + web.PagePath(page)}
	for i := range linksPerPage {
		links = append(links, web.PagePath(web.Child(page, i, linksPerPage)))
	}
	return head + web.LinkParagraphs("Of many things one leads to another. ", 10, links...) + "</body></html>\n"
}
