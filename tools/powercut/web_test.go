package powercut

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// The size of the web. A crawl of it takes some seconds.
const (
	hostDelay    = 100 * time.Millisecond
	numHosts     = 16
	pagesPerHost = 12
)

func hostName(i int) string { return fmt.Sprintf("h%d.example", i%numHosts) }

// pagePath returns the path of a page. A path with another letter has no page.
func pagePath(p int) string { return fmt.Sprintf("/%c%02d", 'b'+p, p) }

// newWeb returns a web in which each page links to the next two, so that a lost URL often loses all
// later pages. It has a Crawl-delay, a robots.txt behind a redirect, disallowed pages, redirects
// and sitemaps.
func newWeb() *crawltest.Web {
	var sites []crawltest.Site
	var seeds []string
	for i := range numHosts {
		sites = append(sites, newSite(i))
		seeds = append(seeds, "http://"+hostName(i)+"/")
	}
	web := crawltest.New(sites...)
	web.CrawlSettings = crawltest.CrawlSettings{Seeds: seeds, MaxDepth: 100}
	return web
}

// newSite returns the i-th host of the web.
func newSite(i int) crawltest.Site {
	host, sitePages := hostName(i), map[string]crawltest.PageFunc{}
	text, crawlDelay := "User-agent: *\nDisallow: /closed\n", time.Duration(0)
	if i == 0 {
		text, crawlDelay = fmt.Sprintf("%sCrawl-delay: %v\n", text, 3*hostDelay.Seconds()), 3*hostDelay
	}
	robots := crawltest.Text(text + "Sitemap: http://" + host + "/sitemap.xml\n")
	if i == 1 {
		sitePages["/rules.txt"] = crawltest.StaticPage(crawltest.Text(text))
		robots = crawltest.Redirect(http.StatusFound, "/rules.txt")
	}
	for p := range pagesPerHost {
		sitePages[pagePath(p)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(
			`<title>Page %d of %s</title><a href="%s">next</a><a href="%s">after</a>`+
				`<a href="/closed/%d">closed</a><a href="http://%s%s">there</a>`,
			p, host, pagePath(p+1), pagePath(p+2), p, hostName(i+1), pagePath(p))))
	}
	moved := "http://" + hostName(i+3) + "/moved"
	sitePages[pagePath(pagesPerHost)] = crawltest.StaticPage(crawltest.Redirect(http.StatusMovedPermanently, moved))
	sitePages["/moved"] = crawltest.StaticPage(crawltest.HTML("moved"))
	sitePages["/"] = crawltest.StaticPage(crawltest.Redirect(http.StatusFound, pagePath(0)))
	sitePages["/sitemap.xml"] = crawltest.StaticPage(crawltest.ResponseOfType("application/xml",
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://`+host+
			`/listed</loc></url></urlset>`))
	sitePages["/listed"] = crawltest.StaticPage(crawltest.HTML("listed"))
	return crawltest.Site{Host: host, Pages: sitePages, Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response: robots, CrawlDelay: crawlDelay, IsDisallowed: func(p string) bool {
			return strings.HasPrefix(p, "/closed")
		}})}
}
