package powercut

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// What the web is like: it takes some seconds to crawl.
const (
	delay = 100 * time.Millisecond // the rest of a host
	hosts = 16
	pages = 12 // of a host
)

func hostName(i int) string { return fmt.Sprintf("h%d.example", i%hosts) }

// pagePath returns the path of a page. A path with another letter is not in the web.
func pagePath(p int) string { return fmt.Sprintf("/%c%02d", 'b'+p, p) }

// newWeb returns a web in which each page leads to the next ones, so that a URL that is
// lost loses the rest: with a Crawl-delay, a robots.txt behind a redirect, closed pages,
// redirects and sitemaps.
func newWeb() *crawltest.Web {
	var sites []crawltest.Site
	var seeds []string
	for i := range hosts {
		sites = append(sites, newSite(i))
		seeds = append(seeds, "http://"+hostName(i)+"/")
	}
	web := crawltest.New(sites...)
	web.CrawlPlan = crawltest.CrawlPlan{Seeds: seeds, MaxDepth: 100}
	return web
}

func newSite(i int) crawltest.Site {
	host, site := hostName(i), map[string]crawltest.PageFunc{}
	text, rest := "User-agent: *\nDisallow: /closed\n", time.Duration(0)
	if i == 0 {
		text, rest = fmt.Sprintf("%sCrawl-delay: %v\n", text, 3*delay.Seconds()), 3*delay
	}
	robots := crawltest.Text(text + "Sitemap: http://" + host + "/sitemap.xml\n")
	if i == 1 {
		site["/rules.txt"] = crawltest.StaticPage(crawltest.Text(text))
		robots = crawltest.Redirect(http.StatusFound, "/rules.txt")
	}
	for p := range pages {
		site[pagePath(p)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(
			`<title>Page %d of %s</title><a href="%s">next</a><a href="%s">after</a>`+
				`<a href="/closed/%d">closed</a><a href="http://%s%s">there</a>`,
			p, host, pagePath(p+1), pagePath(p+2), p, hostName(i+1), pagePath(p))))
	}
	moved := "http://" + hostName(i+3) + "/moved"
	site[pagePath(pages)] = crawltest.StaticPage(crawltest.Redirect(http.StatusMovedPermanently, moved))
	site["/moved"] = crawltest.StaticPage(crawltest.HTML("moved"))
	site["/"] = crawltest.StaticPage(crawltest.Redirect(http.StatusFound, pagePath(0)))
	site["/sitemap.xml"] = crawltest.StaticPage(crawltest.TypedResponse("application/xml",
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://`+host+`/listed</loc></url></urlset>`))
	site["/listed"] = crawltest.StaticPage(crawltest.HTML("listed"))
	return crawltest.Site{Host: host, Pages: site, Robots: crawltest.StaticRobots(crawltest.Robots{
		Response: robots, CrawlDelay: rest, IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/closed") }})}
}
