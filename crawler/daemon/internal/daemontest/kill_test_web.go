package daemontest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// KillTestHosts is the number of hosts of KillTestWeb.
const KillTestHosts = 8

// KillTestHostName returns the name of host i, modulo KillTestHosts.
func KillTestHostName(i int) string { return fmt.Sprintf("h%d.example", i%KillTestHosts) }

// KillTestWeb returns a web whose sites take some seconds to crawl, for crawls that are killed and
// restarted. It has the features that make a restart difficult: a Crawl-delay longer than delay, a
// robots.txt file behind a redirect, disallowed pages, redirects and a sitemap. If rnd is not nil, servers
// also answer slowly, fail, send Retry-After or reset connections.
func KillTestWeb(delay time.Duration, pages int, rnd *rand.Rand) *crawltest.Web {
	var sites []crawltest.Site
	var seeds []string
	for i := range KillTestHosts {
		sites = append(sites, killSite(i, delay, pages, rnd))
		seeds = append(seeds, "http://"+KillTestHostName(i)+"/")
	}
	web := crawltest.New(sites...)
	web.CrawlSettings = crawltest.CrawlSettings{Seeds: seeds, MaxDepth: 100}
	return web
}

// killSite returns site i of KillTestWeb, with n pages.
func killSite(i int, delay time.Duration, n int, rnd *rand.Rand) crawltest.Site {
	// Site 0 has a Crawl-delay, and the robots.txt of site 1 is behind a redirect.
	host := KillTestHostName(i)
	text, requiredDelay, pages := "User-agent: *\nDisallow: /closed\n", time.Duration(0),
		map[string]crawltest.PageFunc{}
	if i == 0 {
		text, requiredDelay = fmt.Sprintf("%sCrawl-delay: %v\n", text, 3*delay.Seconds()), 3*delay
	}
	answer := crawltest.Text(text + "Sitemap: http://" + host + "/sitemap.xml\n")
	if i == 1 {
		pages["/rules.txt"] = crawltest.StaticPage(crawltest.Text(text))
		answer = crawltest.Redirect(http.StatusFound, "/rules.txt")
	}
	for p := range n {
		// Each page links to the next two, so that a lost link loses the rest.
		pages[fmt.Sprintf("/%d", p)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf(
			`<a href="/%d">next</a><a href="/%d">after</a><a href="/closed/%d">closed</a><a href="http://%s/%d">there</a>`,
			p+1, p+2, p, KillTestHostName(i+1), p)))
	}
	pages[fmt.Sprintf("/%d", n)] = crawltest.StaticPage(crawltest.Redirect(http.StatusMovedPermanently,
		fmt.Sprintf("http://%s/moved", KillTestHostName(i+3))))
	pages["/moved"] = crawltest.StaticPage(crawltest.HTML("moved"))
	pages["/"] = crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/0"))
	pages["/sitemap.xml"] = crawltest.StaticPage(crawltest.ResponseOfType("application/xml",
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://`+host+
			`/listed</loc></url></urlset>`))
	pages["/listed"] = crawltest.StaticPage(crawltest.HTML("listed"))
	if rnd != nil {
		addFaults(rnd, pages, n)
	}
	return crawltest.Site{Host: host, Pages: pages,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: answer, CrawlDelay: requiredDelay,
			IsDisallowed: func(p string) bool { return strings.HasPrefix(p, "/closed") }})}
}

// addFaults makes one page fail at its first request, and six pages slow.
func addFaults(rnd *rand.Rand, pages map[string]crawltest.PageFunc, n int) {
	// The first of the pages gets one of these faults.
	soon, later := crawltest.Status(http.StatusServiceUnavailable), crawltest.Status(http.StatusTooManyRequests)
	soon.Header.Set("Retry-After", "10")
	later.Header.Set("Retry-After", "12")
	faults := []crawltest.Response{
		crawltest.Status(http.StatusInternalServerError), crawltest.Status(http.StatusServiceUnavailable), soon, later,
		{Fault: crawltest.Reset}, {Body: strings.Repeat("x", 1000), Fault: crawltest.ResetBody},
	}
	for i, p := range rnd.Perm(n)[:6] {
		path := fmt.Sprintf("/%d", p)
		page, slow, fault := pages[path], time.Duration(rnd.Int64N(int64(300*time.Millisecond))),
			faults[rnd.IntN(len(faults))]
		pages[path] = func(r crawltest.PageRequest) crawltest.Response {
			if i == 0 && r.NthForURL == 1 {
				return fault
			}
			a := page(r)
			a.HeaderDelay = slow
			return a
		}
	}
}
