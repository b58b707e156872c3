package crawltest

import (
	"context"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A testCrawler is a minimal polite crawler. It makes one request at a time over all hosts, each when
// its host is due. It takes the meaning of a robots.txt from the site's RobotsSpec, as the judge
// does. Each of its bool fields makes it impolite in one way.
type testCrawler struct {
	web       *Web
	transport http.RoundTripper
	delay     time.Duration

	ignoreRules      bool // requests pages that robots.txt closes
	ignoreDelay      bool // does not wait for a Crawl-delay
	ignoreCleanParam bool // requests each link as it is written
	ignoreOutage     bool // treats an unreachable robots.txt as missing
	fetchTwice       bool // requests everything twice

	dueAt             map[string]time.Time
	robotsUnreachable map[string]bool
	robotsRead        map[string]bool // the origins whose robots.txt was read
	seen              map[string]bool
	queue             []queuedURL
}

// A queuedURL is a URL to request.
type queuedURL struct {
	url     string
	depth   int
	attempt int
	sitemap bool
}

func newTestCrawler(w *Web) *testCrawler {
	return &testCrawler{web: w, transport: w, delay: 300 * time.Millisecond, dueAt: map[string]time.Time{},
		robotsUnreachable: map[string]bool{}, robotsRead: map[string]bool{}, seen: map[string]bool{}}
}

// crawl crawls the web with its CrawlSettings.
func (k *testCrawler) crawl() {
	for _, seed := range k.web.CrawlSettings.Seeds {
		k.discover(queuedURL{url: seed})
	}
	for len(k.queue) > 0 {
		next := 0
		for i := range k.queue {
			if k.dueAt[hostOf(k.queue[i].url)].Before(k.dueAt[hostOf(k.queue[next].url)]) {
				next = i
			}
		}
		s := k.queue[next]
		k.queue = slices.Delete(k.queue, next, next+1)
		k.visit(s)
	}
}

func (k *testCrawler) discover(s queuedURL) {
	host := hostOf(s.url)
	origin, path := splitOriginAndPath(s.url)
	if clean := k.web.sites[host].robotsAt(time.Now()).RemoveCleanParams; clean != nil && !k.ignoreCleanParam {
		s.url = origin + clean(path)
	}
	if s.depth > k.web.CrawlSettings.MaxDepth || k.seen[s.url] ||
		!slices.Contains(k.web.CrawlSettings.Seeds, homeURL(host)) {
		return
	}
	k.seen[s.url] = true
	k.queue = append(k.queue, s)
	if k.fetchTwice {
		k.queue = append(k.queue, s)
	}
}

// visit requests a page, after the robots.txt of its origin.
func (k *testCrawler) visit(s queuedURL) {
	host := hostOf(s.url)
	_, path := splitOriginAndPath(s.url)
	if !k.robotsRead[host] {
		k.fetchRobots(host)
	}
	rules := k.web.sites[host].robotsAt(time.Now())
	if k.robotsUnreachable[host] && !k.ignoreOutage || !k.ignoreRules &&
		rules.IsDisallowed != nil && rules.IsDisallowed(path) {
		return
	}
	got, err := k.fetch(s.url)
	if err != nil || got.status == 429 || got.status >= 500 {
		if s.attempt++; s.attempt < k.web.CrawlSettings.MaxAttempts {
			k.queue = append(k.queue, s)
		}
		return
	}
	k.discoverLinks(s, got)
}

// fetchRobots requests a robots.txt, and follows its redirects.
func (k *testCrawler) fetchRobots(host string) {
	k.robotsRead[host] = true
	url := homeURL(host) + "robots.txt"
	for range maxRobotsRedirects + 1 {
		got, err := k.fetch(url)
		if err != nil || got.status >= 500 {
			k.robotsUnreachable[host] = true
			return
		}
		if got.status/100 != 3 {
			for line := range strings.Lines(got.body) {
				if to, ok := strings.CutPrefix(line, "Sitemap: "); ok {
					k.discover(queuedURL{url: strings.TrimSpace(to), sitemap: true})
				}
			}
			break
		}
		url = resolveURL(url, got.res.Header.Get("Location"))
	}
	k.postpone(host, 0) // the file may have set a longer delay
}

// fetch waits until a host is due, and makes a request.
func (k *testCrawler) fetch(url string) (clientResponse, error) {
	host := hostOf(url)
	time.Sleep(time.Until(k.dueAt[host]))
	ctx, cancel := context.WithTimeout(context.Background(), k.web.CrawlSettings.RequestTimeout)
	defer cancel()
	got, err := get(ctx, k.transport, url)
	var pause time.Duration
	if err == nil && got.res.Header.Get("Retry-After") != "" {
		pause = time.Second
	}
	k.postpone(host, pause)
	return got, err
}

func (k *testCrawler) postpone(host string, pause time.Duration) {
	pause = max(pause, k.delay)
	if !k.ignoreDelay && k.robotsRead[host] {
		pause = max(pause, k.web.sites[host].robotsAt(time.Now()).CrawlDelay)
	}
	if due := time.Now().Add(pause); due.After(k.dueAt[host]) {
		k.dueAt[host] = due
	}
}

func (k *testCrawler) discoverLinks(s queuedURL, got clientResponse) {
	if to := got.res.Header.Get("Location"); to != "" {
		k.discover(queuedURL{url: resolveURL(s.url, to), depth: s.depth + 1, sitemap: s.sitemap})
		return
	}
	for _, m := range sitemapLocPattern.FindAllStringSubmatch(got.body, -1) {
		k.discover(queuedURL{url: m[2], depth: 1, sitemap: m[1] == "sitemap"})
	}
	for _, m := range feedItemPattern.FindAllStringSubmatch(got.body, -1) {
		k.discover(queuedURL{url: resolveURL(s.url, m[1]), depth: s.depth + 1})
	}
	if s.sitemap || noFollowPattern.MatchString(got.body) ||
		!strings.HasPrefix(got.res.Header.Get("Content-Type"), "text/html") {
		return
	}
	base := s.url
	if m := baseHrefPattern.FindStringSubmatch(got.body); m != nil {
		base = resolveURL(base, m[1])
	}
	for _, m := range feedLinkPattern.FindAllStringSubmatch(got.body, -1) {
		k.discover(queuedURL{url: resolveURL(base, m[1]), depth: s.depth + 1})
	}
	for _, m := range anchorPattern.FindAllStringSubmatch(got.body, -1) {
		if to := resolveURL(base, html.UnescapeString(m[1])); to != "" && !strings.Contains(m[2], "nofollow") {
			k.discover(queuedURL{url: to, depth: s.depth + 1})
		}
	}
}

// pageURLs returns the different pages of a log, sorted.
func pageURLs(log []Exchange) []string {
	var urls []string
	for _, x := range log {
		if _, path := splitOriginAndPath(x.URL); path != robotsPath {
			urls = append(urls, x.URL)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

func TestDemoPoliteCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := DemoWeb()
		newTestCrawler(w).crawl()
		r := w.Judge(JudgeOptions{MinDelay: 300 * time.Millisecond, RequiredProductToken: "testbot"})
		if !r.OK() || r.Retries != 10 {
			t.Errorf("a right crawl is found wrong, or did not retry 10 times:\n%v", r)
		}
		reach := w.FindReachableURLs(w.CrawlSettings)
		want := slices.Concat(reach.Pages, reach.Sitemaps)
		slices.Sort(want)
		if got := pageURLs(w.Log()); !slices.Equal(got, want) {
			t.Errorf("requested %d pages, want %d; missing %q, too many %q", len(got), len(want),
				difference(want, got), difference(got, want))
		}
	})
}

// difference returns the elements of a that are not in b.
func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// The judge reports a crawler that breaks one rule for breaking that rule.
func TestDemoImpoliteCrawls(t *testing.T) {
	tests := []struct {
		name      string
		misbehave func(*testCrawler)
		want      JudgeRule
	}{
		{"rules ignored", func(k *testCrawler) { k.ignoreRules = true }, Disallowed},
		{"Crawl-delay ignored", func(k *testCrawler) { k.ignoreDelay = true }, ShortGap},
		{"too fast by 1 ns", func(k *testCrawler) { k.delay-- }, ShortGap},
		{"Clean-param ignored", func(k *testCrawler) { k.ignoreCleanParam = true }, Duplicate},
		{"everything twice", func(k *testCrawler) { k.fetchTwice = true }, Duplicate},
		{"fail open", func(k *testCrawler) { k.ignoreOutage = true }, RobotsUnreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := DemoWeb()
				k := newTestCrawler(w)
				tt.misbehave(k)
				k.crawl()
				r := w.Judge(JudgeOptions{MinDelay: 300 * time.Millisecond})
				if n := r.CountViolationsOfRule(tt.want); n == 0 || n != len(r.Violations) {
					t.Errorf("found %d times, want more and nothing else:\n%v", n, r)
				}
			})
		})
	}
}

// A crawl over sockets finds the same pages as one in memory. The crawler does not wait in this test,
// and the pages that require it to are replaced.
func TestDemoOverSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("a robots.txt that never comes takes a second")
	}
	w := DemoWeb()
	w.CrawlSettings.RequestTimeout = time.Second
	w.sites["river.example"].Pages["/upstream"] = StaticPage(HTML("in a hurry"))
	w.sites["cafe.example"].Pages["/special"] = StaticPage(HTML("at once"))
	for _, site := range w.sites {
		site.Latency = Latency{}
	}
	_, transport := startServer(t, w)
	transport.DisableKeepAlives = true // else net/http repeats a request by itself after a reset
	k := newTestCrawler(w)
	k.transport, k.delay = transport, 0
	k.ignoreDelay = true
	k.crawl()
	r := w.Judge(JudgeOptions{})
	if n := r.CountViolationsOfRule(ShortGap); n != len(r.Violations) || n == 0 {
		t.Errorf("found wrong in more than the Crawl-delay:\n%v", r)
	}
}
