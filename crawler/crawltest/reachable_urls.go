package crawltest

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// CrawlSettings holds the settings for a crawl of a web: where it starts, and the limits by which it
// ends.
type CrawlSettings struct {
	Seeds          []string
	MaxDepth       int           // links from a seed; 0: 32
	MaxAttempts    int           // requests for a page that keeps failing; 0: 3
	RequestTimeout time.Duration // of one request, because some sites never answer; 0: 30 s
}

func (p CrawlSettings) withDefaults() CrawlSettings {
	if p.MaxDepth == 0 {
		p.MaxDepth = 32
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 3
	}
	if p.RequestTimeout == 0 {
		p.RequestTimeout = 30 * time.Second
	}
	return p
}

// ReachableURLs holds the URLs that a correct crawler finds on a web with its CrawlSettings, if it
// stays on the hosts of its seeds. The lists are sorted and hold URLs in the form of the log.
type ReachableURLs struct {
	Pages      []string // pages that it requests, whatever the answer
	Sitemaps   []string // sitemaps that it requests
	Disallowed []string // URLs that it must not request: robots.txt closes them or is unreachable
}

// ReachablePages returns the pages that a correct crawler requests with w.CrawlSettings.
func (w *Web) ReachablePages() []string { return w.FindReachableURLs(w.CrawlSettings).Pages }

// FindReachableURLs explores the web with the settings p. It makes and logs no request. It takes the
// rules of a site from its RobotsSpec, follows redirects, links, sitemaps and feeds, and respects
// nofollow. It understands only HTML in the form that DemoWeb writes: <a> elements with href first,
// feeds in <link> elements, and attributes in double quotes. It explores the web as it is at the
// time of the call, and assumes that redirects of robots.txt succeed.
func (w *Web) FindReachableURLs(p CrawlSettings) ReachableURLs {
	e := &reachabilitySearch{web: w, plan: p.withDefaults(), hostsInScope: map[string]bool{},
		discoveredURLs: map[string]bool{}, now: time.Now()}
	// Start with the seeds and the sitemaps of their hosts.
	for _, seed := range p.Seeds {
		e.hostsInScope[hostOf(seed)] = true
	}
	for _, seed := range p.Seeds {
		e.addDiscoveredURL(seed, 0, false)
	}
	for _, host := range slices.Sorted(maps.Keys(e.hostsInScope)) {
		e.discoverSitemapsInRobots(host)
	}
	// Explore breadth first.
	for len(e.queue) > 0 {
		next := e.queue[0]
		e.queue = e.queue[1:]
		e.exploreURL(next)
	}
	slices.Sort(e.result.Pages)
	slices.Sort(e.result.Sitemaps)
	slices.Sort(e.result.Disallowed)
	return e.result
}

// A reachabilitySearch finds reachable URLs breadth first.
type reachabilitySearch struct {
	web            *Web
	plan           CrawlSettings
	now            time.Time       // the time at which the web is explored
	hostsInScope   map[string]bool // the hosts of the seeds
	discoveredURLs map[string]bool // all URLs found in scope
	queue          []discoveredURL // URLs to explore
	result         ReachableURLs
}

// A discoveredURL is a URL to explore.
type discoveredURL struct {
	url       string
	depth     int // links from a seed
	isSitemap bool
}

// addDiscoveredURL queues a URL, or adds it to the disallowed ones, unless it is known, too deep or
// out of scope. Sitemaps may be on any host.
func (e *reachabilitySearch) addDiscoveredURL(found string, depth int, sitemap bool) {
	host := hostOf(found)
	if depth > e.plan.MaxDepth || !sitemap && !e.hostsInScope[host] {
		return
	}
	site := e.web.siteOf(host)
	rules := site.robotsAt(e.now)
	origin, path := splitOriginAndPath(found)
	if rules.RemoveCleanParams != nil {
		path = rules.RemoveCleanParams(path)
	}
	found = origin + path
	if e.discoveredURLs[found] {
		return
	}
	e.discoveredURLs[found] = true
	if e.isRobotsUnreachable(rules.Response) || rules.IsDisallowed != nil && rules.IsDisallowed(path) {
		e.result.Disallowed = append(e.result.Disallowed, found)
		return
	}
	e.queue = append(e.queue, discoveredURL{found, depth, sitemap})
}

// isRobotsUnreachable reports whether a robots.txt with the answer a is unreachable.
func (e *reachabilitySearch) isRobotsUnreachable(a Response) bool {
	return !e.respondsBeforeTimeout(a) || a.Status == http.StatusTooManyRequests || a.Status >= 500
}

// respondsBeforeTimeout reports whether an answer is complete within the request timeout.
func (e *reachabilitySearch) respondsBeforeTimeout(a Response) bool {
	return a.Fault == NoFault && a.HeaderDelay+a.BodyDuration < e.plan.RequestTimeout
}

// discoverSitemapsInRobots discovers the sitemaps that a host's robots.txt names.
func (e *reachabilitySearch) discoverSitemapsInRobots(host string) {
	a := e.web.siteOf(host).robotsAt(e.now).Response
	if e.isRobotsUnreachable(a) {
		return
	}
	for line := range strings.Lines(a.Body) {
		if to, ok := strings.CutPrefix(strings.TrimSpace(line), "Sitemap: "); ok {
			e.addDiscoveredURL(to, 0, true)
		}
	}
}

// exploreURL explores one page or sitemap.
func (e *reachabilitySearch) exploreURL(f discoveredURL) {
	if f.isSitemap {
		e.result.Sitemaps = append(e.result.Sitemaps, f.url)
	} else {
		e.result.Pages = append(e.result.Pages, f.url)
	}
	a, ok := e.simulateFetch(f.url)
	if to := a.Header.Get("Location"); ok && to != "" {
		e.discoverLink(f.url, to, f.depth+1, f.isSitemap)
		return
	}
	if !ok || a.Status/100 > 2 {
		return
	}
	switch media := a.Header.Get("Content-Type"); {
	case f.isSitemap:
		for _, m := range sitemapLocPattern.FindAllStringSubmatch(a.Body, -1) {
			e.discoverLink(f.url, m[2], 1, m[1] == "sitemap")
		}
	case media == "application/rss+xml":
		for _, m := range feedItemPattern.FindAllStringSubmatch(a.Body, -1) {
			e.discoverLink(f.url, m[1], f.depth+1, false)
		}
	case strings.HasPrefix(media, "text/html"):
		e.discoverLinks(f, a)
	}
}

// simulateFetch returns the first answer for a page that is complete and not retryable, and false if
// MaxAttempts requests bring none.
func (e *reachabilitySearch) simulateFetch(page string) (Response, bool) {
	_, path := splitOriginAndPath(page)
	host := hostOf(page)
	for nth := range e.plan.MaxAttempts {
		a := e.web.siteOf(host).respond(PageRequest{Method: http.MethodGet, Host: host, Path: path,
			ReceivedAt: e.now, NthForURL: nth + 1})
		if e.respondsBeforeTimeout(a) && !isRetryable(Exchange{Status: max(a.Status, http.StatusOK)}) {
			return a, true
		}
	}
	return Response{}, false
}

// Patterns for links in the form that DemoWeb writes them.
var (
	sitemapLocPattern = regexp.MustCompile(`<(url|sitemap)>\s*<loc>([^<]*)</loc>`)
	feedItemPattern   = regexp.MustCompile(`<item><link>([^<]*)</link>`)
	feedLinkPattern   = regexp.MustCompile(`<link rel="alternate" type="application/rss\+xml" href="([^"]*)">`)
	anchorPattern     = regexp.MustCompile(`<a href="([^"]*)"([^>]*)>`)
	baseHrefPattern   = regexp.MustCompile(`<base href="([^"]*)">`)
	noFollowPattern   = regexp.MustCompile(`<meta name="robots" content="[^"]*nofollow[^"]*">`)
)

// discoverLinks discovers the links of an HTML page.
func (e *reachabilitySearch) discoverLinks(f discoveredURL, a Response) {
	if noFollowPattern.MatchString(a.Body) || strings.Contains(a.Header.Get("X-Robots-Tag"), "nofollow") {
		return
	}
	base := f.url
	if m := baseHrefPattern.FindStringSubmatch(a.Body); m != nil {
		base = resolveURL(base, m[1])
	}
	for _, m := range feedLinkPattern.FindAllStringSubmatch(a.Body, -1) {
		e.discoverLink(base, m[1], f.depth+1, false)
	}
	for _, m := range anchorPattern.FindAllStringSubmatch(a.Body, -1) {
		if !strings.Contains(m[2], `rel="nofollow"`) {
			e.discoverLink(base, html.UnescapeString(m[1]), f.depth+1, false)
		}
	}
}

func (e *reachabilitySearch) discoverLink(base, ref string, depth int, sitemap bool) {
	if to := resolveURL(base, ref); to != "" {
		e.addDiscoveredURL(to, depth, sitemap)
	}
}

// resolveURL resolves ref against base. It returns "" unless the result is an http or https URL.
func resolveURL(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ""
	}
	u, err := b.Parse(ref)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Scheme + "://" + normalizeHostPort(u.Scheme, u.Host) + u.RequestURI()
}
