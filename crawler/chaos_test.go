package crawler_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

var chaosSeeds = flag.Int("chaos", 20, "how many webs TestChaos makes up")

// A chaosWeb is a web that keeps changing: robots.txt files change their rules and delays, fail and
// move; pages fail, redirect across hosts and send Retry-After. After calmAt everything works.
type chaosWeb struct {
	seed   uint64
	hosts  int
	pages  int // per host
	begin  time.Time
	calmAt time.Time // from then on everything works
}

// randFor returns a random source that is the same for the same place: a host, a page or a time.
func (c *chaosWeb) randFor(place ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, place...)
	return rand.New(rand.NewPCG(c.seed, h.Sum64()))
}

func (c *chaosWeb) host(i int) string { return fmt.Sprintf("h%d.test", i%c.hosts) }

// randomURL returns a random page of the web.
func (c *chaosWeb) randomURL(rng *rand.Rand) string {
	base := []string{"http://%s", "http://%s", "http://%s", "https://%s", "http://%s:8080"}[rng.IntN(5)]
	return fmt.Sprintf(base, c.host(rng.IntN(c.hosts))) + c.pagePath(rng.IntN(c.pages))
}

// pagePath returns page n of a host. The pages are in four folders.
func (c *chaosWeb) pagePath(n int) string { return fmt.Sprintf("/d%d/%d", n%4, n) }

// newWeb returns the web.
func (c *chaosWeb) newWeb(slots int) *crawltest.Web {
	var sites []crawltest.Site
	var seeds []string
	for i := range c.hosts {
		host := c.host(i)
		rng := c.randFor("site", host)
		sites = append(sites, crawltest.Site{
			Host: host, MaxConcurrency: slots,
			Robots:   func(at time.Time) crawltest.RobotsSpec { return c.robotsAt(host, at) },
			Fallback: c.answerPage,
			Latency: crawltest.Latency{Base: randomDuration(rng, time.Millisecond, time.Second),
				Jitter: randomDuration(rng, time.Millisecond, 2*time.Second), Seed: c.seed},
		})
		seeds = append(seeds, "http://"+host+"/seed")
	}
	web := crawltest.New(sites...)
	web.CrawlSettings = crawltest.CrawlSettings{Seeds: seeds, MaxDepth: 1 << 20}
	return web
}

// rulesOf returns the rules of a host in an epoch, and their text.
func (c *chaosWeb) rulesOf(host string, epoch int) (crawltest.RobotsSpec, string) {
	rng := c.randFor("rules", host, epoch)
	text, closed := "User-agent: *\nDisallow: /never\n", []string{"/never"}
	for d := range 4 {
		if rng.IntN(4) == 0 {
			closed = append(closed, fmt.Sprintf("/d%d/", d))
			text += fmt.Sprintf("Disallow: /d%d/\n", d)
		}
	}
	r := crawltest.RobotsSpec{IsDisallowed: func(p string) bool {
		return slices.ContainsFunc(closed, func(c string) bool { return strings.HasPrefix(p, c) })
	}}
	if rng.IntN(2) == 0 {
		r.CrawlDelay = randomDuration(rng, 0, 20*time.Second).Truncate(time.Millisecond)
		text += fmt.Sprintf("Crawl-delay: %.3f\n", r.CrawlDelay.Seconds())
	}
	return r, text
}

// robotsAt returns a host's robots.txt at a time: it changes every few minutes.
func (c *chaosWeb) robotsAt(host string, at time.Time) crawltest.RobotsSpec {
	epoch, isCalm := int(at.Sub(c.begin)/randomDuration(c.randFor("epoch", host), 2*time.Minute, 20*time.Minute)),
		!at.Before(c.calmAt)
	if isCalm {
		epoch = -1
	}
	rules, text := c.rulesOf(host, epoch)
	rng := c.randFor("robots", host, epoch)
	kind := rng.IntN(12)
	switch {
	case isCalm || kind < 6:
		rules.Response = crawltest.Text(text)
		rules.Response.Header.Set("Cache-Control", fmt.Sprintf("max-age=%d", rng.IntN(1200)))
	case kind == 6:
		rules.Response = crawltest.Redirect(http.StatusFound,
			fmt.Sprintf("http://%s/rules/%s/%d", c.host(rng.IntN(c.hosts)), host, epoch))
	case kind == 7:
		return crawltest.RobotsSpec{Response: crawltest.Status(http.StatusNotFound)}
	default:
		return crawltest.RobotsSpec{Response: c.failureAnswer(rng, at)}
	}
	return rules
}

// failureAnswer returns an answer that fails.
func (c *chaosWeb) failureAnswer(rng *rand.Rand, at time.Time) crawltest.Response {
	a := crawltest.Status([]int{429, 503, 500, 502}[rng.IntN(4)])
	pause := randomDuration(rng, time.Second, 2*time.Minute)
	switch rng.IntN(8) {
	case 0, 1:
		a.Header.Set("Retry-After", fmt.Sprint(int(pause.Seconds())))
	case 2:
		a.Header.Set("Retry-After", at.Add(pause).UTC().Format(http.TimeFormat))
	case 3:
		return crawltest.Response{Fault: crawltest.Hang}
	case 4:
		return crawltest.Response{Fault: crawltest.Reset}
	case 5:
		return crawltest.Response{Body: "User-agent: *\nAllow: /\n", Fault: crawltest.ShortBody}
	}
	return a
}

// answerPage answers for all pages of all hosts. A page fails at most twice.
func (c *chaosWeb) answerPage(r crawltest.PageRequest) crawltest.Response {
	if rulesPath, ok := strings.CutPrefix(r.Path, "/rules/"); ok {
		var epoch int
		host, n, _ := strings.Cut(rulesPath, "/")
		fmt.Sscan(n, &epoch)
		_, text := c.rulesOf(host, epoch)
		return crawltest.Text(text)
	}
	if rng := c.randFor("failure", r.Host, r.Path, r.NthForURL); r.NthForURL <= 2 && rng.IntN(6) == 0 {
		return c.failureAnswer(rng, r.ReceivedAt)
	}
	rng := c.randFor("page", r.Host, r.Path)
	switch rng.IntN(12) {
	case 0:
		return crawltest.Redirect(http.StatusMovedPermanently, c.randomURL(rng))
	case 1:
		return crawltest.Status(http.StatusNotFound)
	}
	var links strings.Builder
	for range 1 + rng.IntN(8) {
		fmt.Fprintf(&links, `<a href="%s">x</a>`, c.randomURL(rng))
	}
	a := crawltest.HTML(links.String())
	if rng.IntN(8) == 0 {
		a.BodyDuration = randomDuration(rng, 0, 10*time.Second)
	}
	return a
}

// TestChaos: on random webs, with random workers, slots and delays and a crawl that is stopped and
// halted now and then, the judge, which shares no code with robots and politeness, finds no
// violation; and after calmAt every allowed page is visited.
func TestChaos(t *testing.T) {
	n := uint64(*chaosSeeds)
	if raceEnabled {
		n = max(1, n/5)
	}
	var requests, redone int
	for i := range n {
		t.Run(fmt.Sprint(*randomSeed+i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := crawlChaos(t, *randomSeed+i)
				requests += r.Requests
				redone += r.RestartRefetches
			})
		})
	}
	t.Logf("%d webs from seed %d on: %d requests, %d of them again after a stop", n, *randomSeed, requests, redone)
}

func crawlChaos(t *testing.T, seed uint64) crawltest.JudgeReport {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	begin := time.Now()
	world := &chaosWeb{seed: seed, hosts: 2 + rng.IntN(8), pages: 10 + rng.IntN(40), begin: begin,
		calmAt: begin.Add(randomDuration(rng, time.Hour, 4*time.Hour))}
	slots, store := 1+rng.IntN(2), newMemoryStore()
	web := world.newWeb(slots)
	policy := politeness.Policy{Delay: randomDuration(rng, 100*time.Millisecond, 3*time.Second), Concurrency: slots,
		JitterFunc: func() float64 { return 0.5 }}
	workers := 1 + rng.IntN(20)
	crawl := func(seeds ...string) *crawler.Crawler {
		c := newCrawl(t, web, store, seeds...)
		c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true})
		c.Policy, c.Settings.Workers = policy, workers
		return c
	}
	var restarts []time.Time
	for seeds := web.CrawlSettings.Seeds; time.Now().Before(world.calmAt); seeds = nil {
		runOrHalt(t, crawl(seeds...), randomDuration(rng, time.Minute, time.Hour), rng.IntN(2) == 0)
		time.Sleep(randomDuration(rng, 0, 10*time.Minute))
		restarts = append(restarts, time.Now())
	}
	time.Sleep(25 * time.Hour) // every known robots.txt is now too old
	var last []storage.Entry
	for i := range world.hosts {
		for _, origin := range []string{"http://%s", "https://%s", "http://%s:8080"} {
			// requested again even if everything else is parked, and on http even if https is the same
			last = append(last, storage.Entry{URL: parseURL(t, fmt.Sprintf(origin, world.host(i))+"/last"),
				Source: storage.SourceSeed, HTTPSUpgradeTried: true})
		}
	}
	restarts = append(restarts, time.Now())
	c := crawl()
	if _, err := c.Frontier.Discover(t.Context(), last...); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := web.Judge(crawltest.JudgeOptions{MinDelay: policy.Delay,
		RequiredProductToken: "testbot", RestartTimes: restarts})
	if !r.OK() {
		t.Errorf("seed %d: the judge says:\n%v", seed, r)
	}
	checkReached(t, web, store)
	return r
}

// runOrHalt runs the crawl for a time, then stops or halts it.
func runOrHalt(t *testing.T, c *crawler.Crawler, d time.Duration, halt bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	if halt {
		ctx = t.Context()
		defer time.AfterFunc(d, c.Halt).Stop()
	}
	if err := c.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, crawler.ErrHalted) {
		t.Fatal(err)
	}
}

// checkReached reports pages that are allowed now and never got a final answer. The pages of a host are
// the same on http and https, so an answer on https will do.
func checkReached(t *testing.T, web *crawltest.Web, store storage.Store) {
	t.Helper()
	answered := map[string]bool{}
	for _, x := range web.Log() {
		if !x.Incomplete && x.Status != 0 && x.Status != http.StatusTooManyRequests && x.Status < 500 {
			answered[x.URL] = true
		}
	}
	for _, url := range web.ReachablePages() {
		if rest, isHTTP := strings.CutPrefix(url, "http://"); !answered[url] && !(isHTTP && answered["https://"+rest]) {
			t.Errorf("%s can be reached, and was not", url)
		}
	}
	if n, err := countsOf(store); err != nil || n.QueuedURLs != 0 || n.LeasedURLs != 0 {
		t.Errorf("%+v, %v: want nothing left in the queue", n, err)
	}
}
