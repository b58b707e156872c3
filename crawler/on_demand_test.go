package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// newOnDemandCrawl returns an OnDemandCrawl that mines text.
func newOnDemandCrawl(t *testing.T, fetcher crawler.Fetcher, options ...func(*crawler.Crawler)) *crawler.OnDemandCrawl {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	c := &crawler.Crawler{
		Gate:    gate.New(gate.Config{Agent: agent, Purposes: []string{"ai-train"}}, memory.New(memory.Config{})),
		Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		Policy:  politeness.Policy{JitterFunc: func() float64 { return 0 }},
		Fetcher: fetcher, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, option := range options {
		option(c)
	}
	d, err := crawler.NewOnDemandCrawl(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parseURL(t *testing.T, text string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// onDemandSites returns a.test, which asks for a delay of 20 s, b.test, whose robots.txt redirects
// to that of a.test, and sites that fail in different ways.
func onDemandSites() *crawltest.Web {
	pages := map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<a href=/linked>linked</a>")),
		"/moved": crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/linked")),
		"/busy":  crawltest.StaticPage(crawltest.Status(http.StatusServiceUnavailable)),
		"/reset": crawltest.StaticPage(crawltest.Response{Fault: crawltest.Reset}),
	}
	rules := "User-agent: *\nDisallow: /closed\nCrawl-delay: 20\nClean-param: x\nSitemap: http://a.test/named.xml\n"
	return crawltest.New(
		crawltest.Site{Host: "a.test", Pages: pages, Robots: robotsText(rules, 20*time.Second, func(path string) bool {
			return strings.HasPrefix(path, "/closed")
		})},
		crawltest.Site{Host: "b.test", Pages: pages,
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(302,
				"http://a.test/robots.txt")})},
		crawltest.Site{Host: "free.test", Pages: pages},
		crawltest.Site{Host: "late.test", Pages: pages,
			Robots: robotsText("User-agent: *\nDisallow: /closed\nCrawl-delay: 7200\n", 2*time.Hour, nil)},
		crawltest.Site{Host: "other.test"},
		crawltest.Site{Host: "down.test",
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Status(503)})},
		crawltest.Site{Host: "gone.test",
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Response{Fault: crawltest.Reset}})})
}

// TestOnDemandSaysSoAtOnce: the caller gets an error at once, in each call, if the time is outside
// the visit hours, or a brake stops the host or delays it beyond the longest wait.
func TestOnDemandSaysSoAtOnce(t *testing.T) {
	brake := func(b politeness.Brake) func(*crawler.Crawler) {
		return func(c *crawler.Crawler) {
			b.Host, c.Brakes = "free.test", &politeness.Brakes{}
			if err := c.Brakes.Set(b); err != nil {
				t.Error(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		option func(*crawler.Crawler)
		says   string
	}{
		"hours": {func(c *crawler.Crawler) { c.Policy.VisitWindow = parseWindow(t, "05:00-06:00", "") },
			"closed until 2000-01-01T05:00:00Z"},
		"stop": {brake(politeness.Brake{Stop: true, Reason: "they wrote"}), "they wrote"},
		"slow": {brake(politeness.Brake{Delay: 3 * time.Hour, Reason: "a sale"}), "a sale"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, visits := time.Now(), 0
				d := newOnDemandCrawl(t, newFetcher(t, onDemandSites()), tt.option)
				for range 3 {
					_, err := d.Visit(t.Context(), parseURL(t, "http://free.test/"))
					if err == nil && name == "slow" { // the first visit comes before there is a rest
						visits++
						continue
					}
					if err == nil || !strings.Contains(err.Error(), tt.says) {
						t.Errorf("error %v, want one that says %q", err, tt.says)
					}
				}
				if waited := time.Since(start); waited > time.Minute {
					t.Errorf("it took %v; %d visits were made", waited, visits)
				}
			})
		})
	}
}

// TestOnDemandVisits: visits on demand send these requests, wait for these times and have these
// results. They are made once, and nothing that they lead to is visited.
func TestOnDemandVisits(t *testing.T) {
	const robotsOnly = " (robots.txt only)"
	for _, tt := range []struct {
		name     string
		visits   []string // each "URL status", "URL error" or, with robotsOnly, "origin error"
		requests []string
		wait     time.Duration // in total
	}{
		{"a page", []string{"http://a.test/ 200"},
			[]string{"http://a.test/robots.txt", "http://a.test/"}, 20 * time.Second},
		{"again", []string{"http://free.test/ 200", "http://free.test/ 200", "http://free.test/none 404"},
			[]string{"http://free.test/robots.txt", "http://free.test/", "http://free.test/", "http://free.test/none"},
			3 * time.Second},
		{"exactly as it is", []string{"http://a.test/?x=1&sid=0123456789abcdef0123456789abcdef 200"},
			[]string{"http://a.test/robots.txt", "http://a.test/?x=1&sid=0123456789abcdef0123456789abcdef"},
			20 * time.Second},
		{"what is closed waits for nothing",
			[]string{"http://a.test/closed disallowed by robots.txt", "http://a.test/closed disallowed by robots.txt"},
			[]string{"http://a.test/robots.txt"}, 0},
		{"no redirect is followed", []string{"http://a.test/moved 302", "http://free.test/ 200"},
			[]string{"http://a.test/robots.txt", "http://a.test/moved", "http://free.test/robots.txt",
				"http://free.test/"}, 21 * time.Second},
		{"no retry", []string{"http://free.test/busy 503",
			"http://free.test/reset unreachable", "http://free.test/ 200"},
			[]string{"http://free.test/robots.txt", "http://free.test/busy", "http://free.test/reset",
				"http://free.test/"}, 1*time.Second + 5*time.Second + 10*time.Second},
		{"too long a pause", []string{"http://late.test/ late.test may not be visited before",
			"http://late.test/ late.test may not be visited before"},
			[]string{"http://late.test/robots.txt"}, 0},
		{"robots.txt cannot be had", []string{"http://down.test/ cannot fetch http://down.test/robots.txt: robots " +
			"http://down.test/: unreachable: robots.txt: status 503; closed until",
			"http://down.test/x cannot fetch http://down.test/robots.txt",
			"http://gone.test/ cannot fetch http://gone.test/robots.txt"},
			[]string{"http://down.test/robots.txt", "http://gone.test/robots.txt"}, 0},
		{"robots.txt alone", []string{"http://a.test/ 200" + robotsOnly, "http://a.test/ nothing" + robotsOnly,
			"http://free.test/ 404" + robotsOnly, "http://late.test/ 200" + robotsOnly},
			[]string{"http://a.test/robots.txt", "http://free.test/robots.txt", "http://late.test/robots.txt"}, 0},
		{"robots.txt as a page", []string{"http://a.test/robots.txt 200"},
			[]string{"http://a.test/robots.txt", "http://a.test/robots.txt"}, 20 * time.Second},
		{"robots.txt elsewhere", []string{"http://b.test/ 200" + robotsOnly, "http://b.test/closed disallowed by " +
			"robots.txt", "http://b.test/ 200"},
			[]string{"http://b.test/robots.txt", "http://a.test/robots.txt", "http://b.test/"}, 21 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := onDemandSites()
				d, start := newOnDemandCrawl(t, newFetcher(t, web)), time.Now()
				for _, visit := range tt.visits {
					visit, isRobotsOnly := strings.CutSuffix(visit, robotsOnly)
					url, want, _ := strings.Cut(visit, " ")
					var v *crawler.Visit
					var err error
					if u := parseURL(t, url); isRobotsOnly {
						v, err = d.FetchRobots(t.Context(), u.Origin())
					} else {
						v, err = d.Visit(t.Context(), u)
					}
					got := "nothing"
					if v != nil {
						got = fmt.Sprint(v.Status())
					}
					if err != nil {
						got = err.Error()
					}
					if !strings.Contains(got, want) {
						t.Errorf("%s: %s, want %s", url, got, want)
					}
				}
				if wait := time.Since(start); wait != tt.wait {
					t.Errorf("it took %v, want %v", wait, tt.wait)
				}
				time.Sleep(24 * time.Hour)
				// a queued URL would go first
				if _, err := d.FetchRobots(t.Context(), parseURL(t, "http://other.test/").Origin()); err != nil {
					t.Error(err)
				}
				requests, _ := countRequests(web.Log())
				if last := len(requests) - 1; !slices.Equal(requests[:last], tt.requests) {
					t.Errorf("requests %q, want %q", requests, tt.requests)
				}
			})
		})
	}
}

// TestOnDemandWaits: a visit waits for the rest that another crawl's visit requires, no longer than
// the longest Crawl-delay, and only until its context is done.
func TestOnDemandWaits(t *testing.T) {
	errEnough := errors.New("the caller stopped waiting")
	synctest.Test(t, func(t *testing.T) {
		web := onDemandSites()
		d, start := newOnDemandCrawl(t, newFetcher(t, web)), time.Now()
		wantWait := func(what string, want time.Duration) {
			t.Helper()
			if wait := time.Since(start); wait != want {
				t.Errorf("%s took %v, want %v", what, wait, want)
			}
			start = time.Now()
		}
		b, page := parseURL(t, "http://b.test/").Origin(), parseURL(t, "http://free.test/")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(errEnough) })

		d.PostponeHost("free.test", start.Add(10*time.Second))
		if _, err := d.Visit(ctx, page); !errors.Is(err, errEnough) ||
			!strings.HasPrefix(err.Error(), "cannot fetch http://free.test/robots.txt: ") {
			t.Errorf("after the caller stopped waiting: %v", err)
		}
		wantWait("a wait that was broken off", 3*time.Second)
		if v, err := d.Visit(t.Context(), page); err != nil || v.Status() != http.StatusOK {
			t.Errorf("%v, %v", v, err)
		}
		wantWait("the rest of it, and a pause", 8*time.Second)

		var notDue *crawler.HostNotDueError
		due := start.Add(90 * time.Minute)
		d.PostponeHost("a.test", due)
		if _, err := d.FetchRobots(t.Context(), b); !errors.As(err, &notDue) || notDue.Host != "a.test" ||
			!notDue.Due.Equal(due) || !errors.Is(err, decorum.NotDue) {
			t.Errorf("a robots.txt that is redirected to a host which is not due: %v, want until %v", err, due)
		}
		wantWait("being told", 0)
		time.Sleep(5 * time.Minute)
		if _, err := d.FetchRobots(t.Context(), b); !errors.As(err, &notDue) {
			t.Errorf("five minutes later: %v", err)
		}
		time.Sleep(85 * time.Minute)
		if _, err := d.FetchRobots(t.Context(), b); err != nil {
			t.Errorf("when it is due: %v", err)
		}
		requests, _ := countRequests(web.Log())
		want := []string{"http://free.test/robots.txt", "http://free.test/", "http://b.test/robots.txt",
			"http://b.test/robots.txt", "http://a.test/robots.txt"}
		if !slices.Equal(requests, want) {
			t.Errorf("requests %q, want %q", requests, want)
		}
	})
}

// TestOnDemandRedirectGoesOn: if a caller stops waiting for the redirect of a robots.txt, the next
// call continues from there.
func TestOnDemandRedirectGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := onDemandSites()
		d, b := newOnDemandCrawl(t, newFetcher(t, web)), parseURL(t, "http://b.test/").Origin()
		d.PostponeHost("a.test", time.Now().Add(10*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := d.FetchRobots(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the deadline is over", err)
		}
		start := time.Now()
		if v, err := d.FetchRobots(t.Context(), b); err != nil || v.URL() != parseURL(t, "http://a.test/robots.txt") ||
			time.Since(start) != 7*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(start), v, err)
		}
		if requests, _ := countRequests(web.Log()); !slices.Equal(requests,
			[]string{"http://b.test/robots.txt", "http://a.test/robots.txt"}) {
			t.Errorf("requests %q", requests)
		}
	})
}

// An unsentFetcher refuses all requests with an error of a kind.
type unsentFetcher struct{ kind decorum.ErrorKind }

func (f unsentFetcher) Fetch(_ context.Context, t crawler.Ticket) (*decorum.Response, error) {
	return nil, crawler.NewFetchError(t, &decorum.Error{Op: "dial", Kind: f.kind})
}

// TestOnDemandRefusedByUs: if this side refuses a request, the caller gets the error at once.
func TestOnDemandRefusedByUs(t *testing.T) {
	for _, kind := range []decorum.ErrorKind{decorum.Forbidden, decorum.LocalFailure} {
		synctest.Test(t, func(t *testing.T) {
			d, start := newOnDemandCrawl(t, unsentFetcher{kind}), time.Now()
			for range 2 {
				_, err := d.Visit(t.Context(), parseURL(t, "http://a.test/"))
				if !errors.Is(err, kind) || !strings.HasPrefix(err.Error(), "cannot fetch http://a.test/robots.txt: ") {
					t.Errorf("%v, want %v", err, kind)
				}
				if time.Since(start) > time.Minute {
					t.Errorf("it took %v", time.Since(start))
				}
			}
		})
	}
}

// TestOnDemandNeedsParts: NewOnDemandCrawl requires the parts that a Crawler requires.
func TestOnDemandNeedsParts(t *testing.T) {
	if _, err := crawler.NewOnDemandCrawl(&crawler.Crawler{}); !errors.Is(err, decorum.Invalid) {
		t.Errorf("%v, want Invalid", err)
	}
}
