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

// A Plan is how a web is meant to be crawled: what to begin with, and which
// limits make it end.
type Plan struct {
	Seeds    []string
	MaxDepth int           // links from a seed; 0: 32
	Attempts int           // requests for a page that keeps failing; 0: 3
	Timeout  time.Duration // of one request: some sites answer never. 0: 30 s
}

func (p Plan) withDefaults() Plan {
	if p.MaxDepth == 0 {
		p.MaxDepth = 32
	}
	if p.Attempts == 0 {
		p.Attempts = 3
	}
	if p.Timeout == 0 {
		p.Timeout = 30 * time.Second
	}
	return p
}

// A Reach is what a right crawler finds on a web by its Plan, keeping to the
// hosts of its seeds. The lists are sorted and hold URLs as the log does.
type Reach struct {
	Pages      []string // asked for, whatever the answer
	Sitemaps   []string // asked for
	Disallowed []string // found, and not to be asked for: robots.txt closes them or is out of reach
}

// Reachable returns the pages that a right crawler asks for: see Reach.
func (w *Web) Reachable() []string { return w.Reach(w.Plan).Pages }

// Reach explores the web by a plan, without a request being made or logged. It
// reads robots.txt as Robots states it, follows redirects, links, sitemaps and feeds,
// and heeds nofollow. It reads only HTML as Demo writes it: links are <a> with
// href first, feeds are announced as link elements are there, and attributes have
// double quotes. The web is explored as it is
// at the moment; robots.txt redirects are taken to succeed.
func (w *Web) Reach(p Plan) Reach {
	e := &explorer{web: w, plan: p.withDefaults(), hosts: map[string]bool{}, found: map[string]bool{}, now: time.Now()}
	for _, seed := range p.Seeds {
		e.hosts[hostOf(seed)] = true
	}
	for _, seed := range p.Seeds {
		e.discover(seed, 0, false)
	}
	for _, host := range slices.Sorted(maps.Keys(e.hosts)) {
		e.readRobots(host)
	}
	for len(e.queue) > 0 {
		next := e.queue[0]
		e.queue = e.queue[1:]
		e.visit(next)
	}
	slices.Sort(e.reach.Pages)
	slices.Sort(e.reach.Sitemaps)
	slices.Sort(e.reach.Disallowed)
	return e.reach
}

// An explorer finds what is reachable, breadth first.
type explorer struct {
	web   *Web
	plan  Plan
	now   time.Time
	hosts map[string]bool // in scope
	found map[string]bool
	queue []find
	reach Reach
}

// A find is a URL to explore.
type find struct {
	url     string
	depth   int
	sitemap bool
}

// discover takes a URL that has been found, unless it is known or out of scope.
func (e *explorer) discover(found string, depth int, sitemap bool) {
	host := hostOf(found)
	if depth > e.plan.MaxDepth || !sitemap && !e.hosts[host] {
		return
	}
	site := e.web.sites[host]
	rules := site.robots(e.now)
	origin, path := split(found)
	if rules.Clean != nil {
		path = rules.Clean(path)
	}
	found = origin + path
	if e.found[found] {
		return
	}
	e.found[found] = true
	if e.away(rules.Answer) || rules.Disallow != nil && rules.Disallow(path) {
		e.reach.Disallowed = append(e.reach.Disallowed, found)
		return
	}
	e.queue = append(e.queue, find{found, depth, sitemap})
}

// away reports whether robots.txt is out of reach, given how it is answered.
func (e *explorer) away(a Answer) bool {
	return !e.whole(a) || a.Status == http.StatusTooManyRequests || a.Status >= 500
}

// whole reports whether an answer comes to its end in time.
func (e *explorer) whole(a Answer) bool { return a.Fault == None && a.Wait+a.Spread < e.plan.Timeout }

// readRobots discovers the sitemaps that a host's robots.txt names.
func (e *explorer) readRobots(host string) {
	a := e.web.sites[host].robots(e.now).Answer
	if e.away(a) {
		return
	}
	for line := range strings.Lines(a.Body) {
		if to, ok := strings.CutPrefix(strings.TrimSpace(line), "Sitemap: "); ok {
			e.discover(to, 0, true)
		}
	}
}

// visit explores one page or sitemap.
func (e *explorer) visit(f find) {
	if f.sitemap {
		e.reach.Sitemaps = append(e.reach.Sitemaps, f.url)
	} else {
		e.reach.Pages = append(e.reach.Pages, f.url)
	}
	a, ok := e.ask(f.url)
	if to := a.Header.Get("Location"); ok && to != "" {
		e.resolve(f.url, to, f.depth+1, f.sitemap)
		return
	}
	if !ok || a.Status/100 > 2 {
		return
	}
	switch media := a.Header.Get("Content-Type"); {
	case f.sitemap:
		for _, m := range sitemapLoc.FindAllStringSubmatch(a.Body, -1) {
			e.resolve(f.url, m[2], 1, m[1] == "sitemap")
		}
	case media == "application/rss+xml":
		for _, m := range feedItem.FindAllStringSubmatch(a.Body, -1) {
			e.resolve(f.url, m[1], f.depth+1, false)
		}
	case strings.HasPrefix(media, "text/html"):
		e.follow(f, a)
	}
}

// ask asks for a page as often as it keeps failing and the plan says.
func (e *explorer) ask(page string) (Answer, bool) {
	_, path := split(page)
	host := hostOf(page)
	for nth := range e.plan.Attempts {
		a := e.web.sites[host].answer(Request{Method: http.MethodGet, Host: host, Path: path, At: e.now, Nth: nth + 1})
		if e.whole(a) && !invitesRetry(Exchange{Status: max(a.Status, http.StatusOK)}) {
			return a, true
		}
	}
	return Answer{}, false
}

// Links as Demo writes them.
var (
	sitemapLoc = regexp.MustCompile(`<(url|sitemap)>\s*<loc>([^<]*)</loc>`)
	feedItem   = regexp.MustCompile(`<item><link>([^<]*)</link>`)
	feedLink   = regexp.MustCompile(`<link rel="alternate" type="application/rss\+xml" href="([^"]*)">`)
	anchor     = regexp.MustCompile(`<a href="([^"]*)"([^>]*)>`)
	baseHref   = regexp.MustCompile(`<base href="([^"]*)">`)
	noFollow   = regexp.MustCompile(`<meta name="robots" content="[^"]*nofollow[^"]*">`)
)

// follow discovers the links of an HTML page.
func (e *explorer) follow(f find, a Answer) {
	if noFollow.MatchString(a.Body) || strings.Contains(a.Header.Get("X-Robots-Tag"), "nofollow") {
		return
	}
	base := f.url
	if m := baseHref.FindStringSubmatch(a.Body); m != nil {
		base = join(base, m[1])
	}
	for _, m := range feedLink.FindAllStringSubmatch(a.Body, -1) {
		e.resolve(base, m[1], f.depth+1, false)
	}
	for _, m := range anchor.FindAllStringSubmatch(a.Body, -1) {
		if !strings.Contains(m[2], `rel="nofollow"`) {
			e.resolve(base, html.UnescapeString(m[1]), f.depth+1, false)
		}
	}
}

func (e *explorer) resolve(base, ref string, depth int, sitemap bool) {
	if to := join(base, ref); to != "" {
		e.discover(to, depth, sitemap)
	}
}

// join returns where ref leads from base, "" if not to a page.
func join(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ""
	}
	u, err := b.Parse(ref)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Scheme + "://" + logged(u.Scheme, u.Host) + u.RequestURI()
}
