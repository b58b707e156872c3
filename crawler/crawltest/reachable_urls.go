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

// A CrawlSettings is how a web is meant to be crawled: what to begin with, and which
// limits make it end.
type CrawlSettings struct {
	Seeds          []string
	MaxDepth       int           // links from a seed; 0: 32
	MaxAttempts    int           // requests for a page that keeps failing; 0: 3
	RequestTimeout time.Duration // of one request: some sites answer never. 0: 30 s
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

// A ReachableURLs is what a right crawler finds on a web by its CrawlSettings, keeping to the
// hosts of its seeds. The lists are sorted and hold URLs as the log does.
type ReachableURLs struct {
	Pages      []string // asked for, whatever the answer
	Sitemaps   []string // asked for
	Disallowed []string // found, and not to be asked for: robots.txt closes them or is out of reach
}

// ReachablePages returns the pages that a right crawler asks for: see FindReachableURLs.
func (w *Web) ReachablePages() []string { return w.FindReachableURLs(w.CrawlSettings).Pages }

// FindReachableURLs explores the web by a plan, without a request being made or logged. It
// reads robots.txt as Robots states it, follows redirects, links, sitemaps and feeds,
// and heeds nofollow. It reads only HTML as DemoWeb writes it: links are <a> with
// href first, feeds are announced as link elements are there, and attributes have
// double quotes. The web is explored as it is
// at the moment; robots.txt redirects are taken to succeed.
func (w *Web) FindReachableURLs(p CrawlSettings) ReachableURLs {
	e := &reachabilitySearch{web: w, plan: p.withDefaults(), hostsInScope: map[string]bool{}, discoveredURLs: map[string]bool{}, now: time.Now()}
	for _, seed := range p.Seeds {
		e.hostsInScope[hostOf(seed)] = true
	}
	for _, seed := range p.Seeds {
		e.addDiscoveredURL(seed, 0, false)
	}
	for _, host := range slices.Sorted(maps.Keys(e.hostsInScope)) {
		e.discoverSitemapsInRobots(host)
	}
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

// A reachabilitySearch finds what is reachable, breadth first.
type reachabilitySearch struct {
	web            *Web
	plan           CrawlSettings
	now            time.Time
	hostsInScope   map[string]bool // in scope
	discoveredURLs map[string]bool
	queue          []discoveredURL
	result         ReachableURLs
}

// A discoveredURL is a URL to explore.
type discoveredURL struct {
	url       string
	depth     int
	isSitemap bool
}

// addDiscoveredURL takes a URL that has been found, unless it is known or out of scope.
func (e *reachabilitySearch) addDiscoveredURL(found string, depth int, sitemap bool) {
	host := hostOf(found)
	if depth > e.plan.MaxDepth || !sitemap && !e.hostsInScope[host] {
		return
	}
	site := e.web.sites[host]
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

// isRobotsUnreachable reports whether robots.txt is out of reach, given how it is answered.
func (e *reachabilitySearch) isRobotsUnreachable(a Response) bool {
	return !e.respondsBeforeTimeout(a) || a.Status == http.StatusTooManyRequests || a.Status >= 500
}

// respondsBeforeTimeout reports whether an answer comes to its end in time.
func (e *reachabilitySearch) respondsBeforeTimeout(a Response) bool {
	return a.Fault == NoFault && a.HeaderDelay+a.BodyDuration < e.plan.RequestTimeout
}

// discoverSitemapsInRobots discovers the sitemaps that a host's robots.txt names.
func (e *reachabilitySearch) discoverSitemapsInRobots(host string) {
	a := e.web.sites[host].robotsAt(e.now).Response
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

// simulateFetch asks for a page as often as it keeps failing and the plan says.
func (e *reachabilitySearch) simulateFetch(page string) (Response, bool) {
	_, path := splitOriginAndPath(page)
	host := hostOf(page)
	for nth := range e.plan.MaxAttempts {
		a := e.web.sites[host].respond(PageRequest{Method: http.MethodGet, Host: host, Path: path, ReceivedAt: e.now, NthForURL: nth + 1})
		if e.respondsBeforeTimeout(a) && !isRetryable(Exchange{Status: max(a.Status, http.StatusOK)}) {
			return a, true
		}
	}
	return Response{}, false
}

// Links as DemoWeb writes them.
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

// resolveURL returns where ref leads from base, "" if not to a page.
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
