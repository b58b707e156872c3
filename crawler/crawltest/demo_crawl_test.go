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

// A walker is the simplest crawler that is polite: one request at a time over
// all hosts, each when its host is due. It knows what each robots.txt means
// from the site's owner, as the judge does. Its fields make it rude.
type walker struct {
	web   *Web
	rt    http.RoundTripper
	delay time.Duration

	ignoreRules bool // asks for what robots.txt closes
	ignoreDelay bool // does not rest for a Crawl-delay
	ignoreNoise bool // asks for each link as it is written
	failOpen    bool // takes a robots.txt out of reach for none
	forgetful   bool // asks for everything twice

	due               map[string]time.Time
	robotsUnreachable map[string]bool
	read              map[string]bool // robots.txt
	seen              map[string]bool
	queue             []step
}

// A step is a URL to ask for.
type step struct {
	url     string
	depth   int
	attempt int
	sitemap bool
}

func newWalker(w *Web) *walker {
	return &walker{web: w, rt: w, delay: 300 * time.Millisecond, due: map[string]time.Time{},
		robotsUnreachable: map[string]bool{}, read: map[string]bool{}, seen: map[string]bool{}}
}

// walk crawls the web by its plan.
func (k *walker) walk() {
	for _, seed := range k.web.Plan.Seeds {
		k.find(step{url: seed})
	}
	for len(k.queue) > 0 {
		next := 0
		for i := range k.queue {
			if k.due[hostOf(k.queue[i].url)].Before(k.due[hostOf(k.queue[next].url)]) {
				next = i
			}
		}
		s := k.queue[next]
		k.queue = slices.Delete(k.queue, next, next+1)
		k.visit(s)
	}
}

func (k *walker) find(s step) {
	host := hostOf(s.url)
	origin, path := split(s.url)
	if clean := k.web.sites[host].robots(time.Now()).Clean; clean != nil && !k.ignoreNoise {
		s.url = origin + clean(path)
	}
	if s.depth > k.web.Plan.MaxDepth || k.seen[s.url] || !slices.Contains(k.web.Plan.Seeds, home(host)) {
		return
	}
	k.seen[s.url] = true
	k.queue = append(k.queue, s)
	if k.forgetful {
		k.queue = append(k.queue, s)
	}
}

// visit asks for a page, after its host's robots.txt.
func (k *walker) visit(s step) {
	host := hostOf(s.url)
	_, path := split(s.url)
	if !k.read[host] {
		k.learn(host)
	}
	rules := k.web.sites[host].robots(time.Now())
	if k.robotsUnreachable[host] && !k.failOpen || !k.ignoreRules && rules.Disallow != nil && rules.Disallow(path) {
		return
	}
	got, err := k.ask(s.url)
	if err != nil || got.status == 429 || got.status >= 500 {
		if s.attempt++; s.attempt < k.web.Plan.Attempts {
			k.queue = append(k.queue, s)
		}
		return
	}
	k.follow(s, got)
}

// learn asks for a robots.txt, and for what it is redirected to.
func (k *walker) learn(host string) {
	k.read[host] = true
	url := home(host) + "robots.txt"
	for range robotsHops + 1 {
		got, err := k.ask(url)
		if err != nil || got.status >= 500 {
			k.robotsUnreachable[host] = true
			return
		}
		if got.status/100 != 3 {
			for line := range strings.Lines(got.body) {
				if to, ok := strings.CutPrefix(line, "Sitemap: "); ok {
					k.find(step{url: strings.TrimSpace(to), sitemap: true})
				}
			}
			break
		}
		url = join(url, got.res.Header.Get("Location"))
	}
	k.rest(host, 0) // it may just have asked for more
}

// ask waits for a host to be due, and asks it.
func (k *walker) ask(url string) (fetched, error) {
	host := hostOf(url)
	time.Sleep(time.Until(k.due[host]))
	ctx, cancel := context.WithTimeout(context.Background(), k.web.Plan.Timeout)
	defer cancel()
	got, err := get(ctx, k.rt, url)
	var pause time.Duration
	if err == nil && got.res.Header.Get("Retry-After") != "" {
		pause = time.Second
	}
	k.rest(host, pause)
	return got, err
}

func (k *walker) rest(host string, pause time.Duration) {
	pause = max(pause, k.delay)
	if !k.ignoreDelay && k.read[host] {
		pause = max(pause, k.web.sites[host].robots(time.Now()).Delay)
	}
	if due := time.Now().Add(pause); due.After(k.due[host]) {
		k.due[host] = due
	}
}

func (k *walker) follow(s step, got fetched) {
	if to := got.res.Header.Get("Location"); to != "" {
		k.find(step{url: join(s.url, to), depth: s.depth + 1, sitemap: s.sitemap})
		return
	}
	for _, m := range sitemapLoc.FindAllStringSubmatch(got.body, -1) {
		k.find(step{url: m[2], depth: 1, sitemap: m[1] == "sitemap"})
	}
	for _, m := range feedItem.FindAllStringSubmatch(got.body, -1) {
		k.find(step{url: join(s.url, m[1]), depth: s.depth + 1})
	}
	if s.sitemap || noFollow.MatchString(got.body) || !strings.HasPrefix(got.res.Header.Get("Content-Type"), "text/html") {
		return
	}
	base := s.url
	if m := baseHref.FindStringSubmatch(got.body); m != nil {
		base = join(base, m[1])
	}
	for _, m := range feedLink.FindAllStringSubmatch(got.body, -1) {
		k.find(step{url: join(base, m[1]), depth: s.depth + 1})
	}
	for _, m := range anchor.FindAllStringSubmatch(got.body, -1) {
		if to := join(base, html.UnescapeString(m[1])); to != "" && !strings.Contains(m[2], "nofollow") {
			k.find(step{url: to, depth: s.depth + 1})
		}
	}
}

// pages returns the different pages of a log, sorted.
func pages(log []Exchange) []string {
	var urls []string
	for _, x := range log {
		if _, path := split(x.URL); path != robotsPath {
			urls = append(urls, x.URL)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

func TestDemoCrawledRightly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Demo()
		newWalker(w).walk()
		r := w.Judge(Options{MinDelay: 300 * time.Millisecond, Product: "testbot"})
		if !r.OK() || r.Retries != 10 {
			t.Errorf("a right crawl is found wrong, or did not retry 10 times:\n%v", r)
		}
		reach := w.Reach(w.Plan)
		want := slices.Concat(reach.Pages, reach.Sitemaps)
		slices.Sort(want)
		if got := pages(w.Log()); !slices.Equal(got, want) {
			t.Errorf("asked for %d pages, want %d; missing %q, too many %q", len(got), len(want), without(want, got), without(got, want))
		}
	})
}

// without returns what of a is not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// A crawler that is rude in one way is found out in that way.
func TestDemoCrawledRudely(t *testing.T) {
	tests := []struct {
		name string
		rude func(*walker)
		want Rule
	}{
		{"rules ignored", func(k *walker) { k.ignoreRules = true }, Disallowed},
		{"Crawl-delay ignored", func(k *walker) { k.ignoreDelay = true }, ShortGap},
		{"too fast by 1 ns", func(k *walker) { k.delay-- }, ShortGap},
		{"Clean-param ignored", func(k *walker) { k.ignoreNoise = true }, Duplicate},
		{"everything twice", func(k *walker) { k.forgetful = true }, Duplicate},
		{"fail open", func(k *walker) { k.failOpen = true }, RobotsUnreachable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := Demo()
				k := newWalker(w)
				tt.rude(k)
				k.walk()
				r := w.Judge(Options{MinDelay: 300 * time.Millisecond})
				if n := r.Count(tt.want); n == 0 || n != len(r.Offences) {
					t.Errorf("found %d times, want more and nothing else:\n%v", n, r)
				}
			})
		})
	}
}

// Over sockets nothing is different but the clock. The walker never rests here,
// and what would make it wait is taken away.
func TestDemoOverSockets(t *testing.T) {
	if testing.Short() {
		t.Skip("a robots.txt that never comes takes a second")
	}
	w := Demo()
	w.Plan.Timeout = time.Second
	w.sites["river.example"].Pages["/upstream"] = Always(HTML("in a hurry"))
	w.sites["cafe.example"].Pages["/special"] = Always(HTML("at once"))
	for _, site := range w.sites {
		site.Latency = Latency{}
	}
	_, transport := start(t, w)
	transport.DisableKeepAlives = true // or net/http repeats a request on its own after a reset
	k := newWalker(w)
	k.rt, k.delay = transport, 0
	k.ignoreDelay = true
	k.walk()
	r := w.Judge(Options{})
	if n := r.Count(ShortGap); n != len(r.Offences) || n == 0 {
		t.Errorf("found wrong in more than the Crawl-delay:\n%v", r)
	}
}
