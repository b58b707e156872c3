package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A resumedCrawl is a crawl of the project in testdata/past, built from the public packages, so that
// it uses the clock of a synctest bubble and a web in memory.
type resumedCrawl struct {
	*crawler.Crawler
	frontierStore, robotsStore *bolt.Store
}

// resumeCrawl opens a copy of the state that the killed crawl left.
func resumeCrawl(t *testing.T, p oldState, web *crawltest.Web) *resumedCrawl {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var (
		c    resumedCrawl
		err  error
		opts = bolt.Options{PostInterruptionDelay: 200 * time.Millisecond,
			OnDamaged: func(err error) { t.Errorf("the state is damaged: %v", err) }}
	)
	c.robotsStore, err = bolt.Open(p.path("data", "robots.db"), opts)
	must(err)
	c.frontierStore, err = bolt.Open(p.path("data", "frontier.db"), opts)
	must(err)
	agent, err := robots.PresetOrNewAgent(robots.Google, "decorum")
	must(err)
	robotsGate := gate.New(gate.Config{
		Agent: agent, UserAgent: "decorum (+mailto:bot@example.com)", MinTTL: time.Minute, MaxTTL: 24 * time.Hour,
		Purposes: []string{"ai-train"},
	}, c.robotsStore)
	limits := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 2, RestartedAt: time.Now()})
	fetcher, err := httpfetch.New(httpfetch.Config{
		UserAgent: "decorum/1 (+mailto:bot@example.com)", Transport: tlsMarkingTransport{web},
		Cookies: httpfetch.NewCookies(c.frontierStore),
	})
	must(err)
	f := frontier.New(c.frontierStore, frontier.Config{Scope: projectScope(t), CleanURL: robotsGate.CleanURL,
		Budget: limits, MaxNextWait: 24 * time.Hour})
	collector := collyfetch.NewCollector(f, fetcher)
	registerCallbacks(collector)
	c.Crawler = &crawler.Crawler{
		Frontier: f, Gate: robotsGate, Policy: projectPolicy(), Limiter: limits,
		Fetcher: collector, Handler: collector.Handle,
		Settings: crawler.Settings{MaxPagesPerHost: 13, ProductToken: "decorum",
			Revisit: frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: time.Hour}},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	must(f.EndSuspensionsExcept(t.Context(), c.ShouldStaySuspended))
	return &c
}

// projectPolicy returns the politeness policy of the project.
func projectPolicy() politeness.Policy {
	delay := func(d time.Duration) politeness.HostOverride {
		return politeness.HostOverride{Delay: &d, Reason: "as in project.yaml"}
	}
	return politeness.Policy{Delay: 200 * time.Millisecond, HostOverrides: map[string]politeness.HostOverride{
		"chain.example": delay(500 * time.Millisecond), "cookie.example": delay(600 * time.Millisecond),
		"tdm.example": delay(600 * time.Millisecond), "secure.example.com": delay(600 * time.Millisecond),
		"frozen.example": delay(500_000 * time.Hour),
	}}
}

// projectScope returns the scope of the project: the hosts of its seeds.
func projectScope(t *testing.T) *frontier.Scope {
	t.Helper()
	var seeds []core.URL
	const names = `news ports chain slow frozen hop hopping down failing busy tomorrow sloth many cookie tdm clean form hang`
	for name := range strings.FieldsSeq(names) {
		seeds = append(seeds, parseURL(t, "http://"+name+".example/"))
	}
	seeds = append(seeds, parseURL(t, "http://secure.example.com/"))
	return frontier.NewScope(frontier.ScopeConfig{Mode: frontier.HostScope}, seeds)
}

func parseURL(t *testing.T, url string) core.URL {
	t.Helper()
	u, err := core.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// run crawls for ten minutes, or until no URL is left to wait for.
func (c *resumedCrawl) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	switch err := c.Run(ctx); {
	case err == nil, errors.Is(err, context.DeadlineExceeded):
	case errors.Is(err, frontier.ErrOnlyRevisitsLeft), errors.Is(err, frontier.ErrOnlySuspendedLeft):
	default:
		t.Errorf("the crawl ended with %v", err)
	}
}

func (c *resumedCrawl) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(c.frontierStore.Close(), c.robotsStore.Close()); err != nil {
		t.Error(err)
	}
}

// TestCompatCrawl continues the state of a killed crawl two seconds after the kill, by the clock of a
// synctest bubble. No URL is lost, no request comes early, twice or for a disallowed URL, and the crawl
// knows the old notes.
func TestCompatCrawl(t *testing.T) {
	p := unpackOldState(t, "crawl")
	before := readExport(t, readCompressed(t, "export.jsonl.zst"))
	var firstLog, laterLog []crawltest.Exchange
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(p.killedAt.Add(2 * time.Second)))
		restart, web := time.Now(), readWeb(t, p.killedAt)
		c := resumeCrawl(t, p, web)
		c.run(t)
		firstLog = web.Log()
		// Pages are due again an hour after their last visit, and a host two days after its
		// Retry-After.
		for _, d := range []time.Duration{70 * time.Minute, 49 * time.Hour} {
			time.Sleep(time.Until(restart.Add(d)))
			c.run(t)
		}
		laterLog = web.Log()[len(firstLog):]
		c.close(t)
		judgeRequests(t, web, p.requestLog, web.Log(), restart)
	})
	checkFirstRun(t, p, before, firstLog)
	checkLaterRuns(t, before, firstLog, laterLog)
	after := readExport(t, runCommand(t, nil, 0, "frontier", "export", "--data", p.path("data")))
	checkNothingLost(t, before, after, countRequests(append(firstLog, laterLog...)))
}

// checkFirstRun checks the requests of the first run.
func checkFirstRun(t *testing.T, p oldState, before frontierExport, log []crawltest.Exchange) {
	t.Helper()
	if r := refetchedPages(p, log); len(r) > 0 {
		t.Errorf("requested again after an answer: %q", r)
	}
	n := countRequests(log)
	for name, u := range before.urls {
		host := parseURL(t, u.URL).Origin().Host()
		notDue := host == "frozen.example" || host == "sloth.example" ||
			host == "tomorrow.example" || host == "many.example"
		closed := strings.Contains(u.URL, "/closed/") || strings.HasSuffix(u.URL, "/robots.txt")
		if u.State == "queued" && !u.Sent && !notDue && !closed && n[name] != 1 {
			t.Errorf("%s was queued, and was requested %d times", name, n[name])
		}
	}
	for _, x := range log {
		u := before.urls[x.Method+" "+x.URL]
		hold := before.origins[u.Origin].HeldUntil
		if x.Start.Before(u.NotBefore) || x.Start.Before(hold) && u.RobotsFor == "" &&
			!strings.HasSuffix(x.URL, "/robots.txt") {
			t.Errorf("%s was requested at %v; it was put off until %v, its origin was held until %v", x.URL,
				x.Start, u.NotBefore, hold)
		}
		if strings.HasPrefix(x.URL, "http://cookie.example/") && x.Status != 200 {
			t.Errorf("%s was answered with %d: the cookie was forgotten", x.URL, x.Status)
		}
	}
	// URLs that are new since the kill: links of pages that were queued.
	for name, want := range map[string]int{
		"POST http://form.example/answered": 0, "POST http://form.example/hanging": 0,
		"POST http://form.example/waiting": 1,
		// the host is known to be on https
		"GET http://secure.example.com/late": 0, "GET https://secure.example.com/late": 1,
		"GET http://hang.example/after": 1, "GET http://failing.example/3": 1, "GET http://down.example/1": 1,
		"GET http://many.example/16": 0, // the host has had its pages
	} {
		if n[name] != want {
			t.Errorf("%s was requested %d times, want %d", name, n[name], want)
		}
	}
}

// checkLaterRuns checks the requests after pages became due again.
func checkLaterRuns(t *testing.T, before frontierExport, firstLog, laterLog []crawltest.Exchange) {
	t.Helper()
	n := countRequests(laterLog)
	for name, u := range before.urls {
		if u.State == "resting" && n[name] == 0 {
			t.Errorf("%s was to be visited again, and was not", name)
		}
	}
	for _, x := range laterLog {
		if x.URL == "http://chain.example/dated" && !x.Conditional {
			t.Error("the ETag of a page was forgotten")
		}
	}
	if n["GET http://tomorrow.example/"] == 0 || n["GET http://tomorrow.example/1"] == 0 {
		t.Error("a host with a Retry-After of two days was forgotten")
	}
}
