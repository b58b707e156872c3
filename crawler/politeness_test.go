package crawler_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestRequestRate: Request-rate holds in its hours from their first moment on, even if the host's
// last rest was shorter.
func TestRequestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Fallback: pageWithLinks(numberedPaths(60)...), MaxConcurrency: 4,
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
				"User-agent: *\nRequest-rate: 1/20\nRequest-rate: 1/3m 0005-0100\n"), CrawlDelay: 20 * time.Second})})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		c.Policy.Concurrency = 4
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if len(log) != 62 {
			t.Errorf("%d requests, want 62", len(log))
		}
		for i := 1; i < len(log); i++ {
			want, at := 20*time.Second, log[i].Start.UTC()
			if clock := at.Hour()*60 + at.Minute(); 5 <= clock && clock < 60 {
				want = 3 * time.Minute
			}
			if gap := log[i].Start.Sub(log[i-1].End); gap < want {
				t.Errorf("request %d at %v: %v after the last, want %v", i, at, gap, want)
			}
		}
		if took := time.Since(log[0].Start); took > 62*20*time.Second+time.Hour {
			t.Errorf("took %v", took)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestOverrides: overrides apply to single hosts, and one of them expires while the crawl runs.
// What a host asks for itself still holds.
func TestOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := func(host string, robots string, delay time.Duration) crawltest.Site {
			return crawltest.Site{Host: host, Fallback: pageWithLinks(numberedPaths(99)...),
				Robots:  robotsText(robots, delay, nil),
				Latency: crawltest.Latency{Base: 100 * time.Millisecond}, MaxConcurrency: 8}
		}
		web := crawltest.New(site("fast.test", "", 0),
			site("asks.test", "User-agent: *\nCrawl-delay: 7\n", 7*time.Second),
			site("ends.test", "", 0), site("past.test", "", 0), site("other.test", "", 0))
		var out bytes.Buffer
		begin := time.Now()
		c := newCrawl(t, web, newMemoryStore(), "http://fast.test/", "http://asks.test/", "http://ends.test/",
			"http://past.test/", "http://other.test/")
		c.Log = slog.New(slog.NewTextHandler(&out, nil))
		c.Policy.Delay = 2 * time.Second
		noDelay := politeness.HostOverride{Delay: new(politeness.NoDelay), AdaptiveFactor: new(-1.0),
			Concurrency: new(4), Reason: "ours"}
		ends, expired := noDelay, noDelay
		ends.Concurrency, ends.Expires, expired.Expires = new(1), begin.Add(5*time.Second), begin
		c.Policy.HostOverrides = map[string]politeness.HostOverride{"fast.test": noDelay, "asks.test": noDelay,
			"ends.test": ends, "past.test": expired}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		for host, want := range map[string]time.Duration{"asks.test": 7 * time.Second, "past.test": 2 * time.Second,
			"other.test": 2 * time.Second} {
			if gap := minHostGap(log, host); gap != want {
				t.Errorf("%s: least gap %v, want %v", host, gap, want)
			}
		}
		if took := lastAnswerEnd(log, "fast.test").Sub(begin); took > 5*time.Second {
			t.Errorf("fast.test took %v for 101 requests, four at a time", took)
		}
		withoutDelay, withDelay := 0, 0
		for i, x := range hostLog(log, "ends.test") {
			if i > 0 && x.Start.Sub(begin) > 8*time.Second {
				withDelay++
			} else {
				withoutDelay++
			}
		}
		if withoutDelay < 40 || withDelay < 40 ||
			lastAnswerEnd(log, "ends.test").Sub(begin) < time.Duration(withDelay-1)*2*time.Second {
			t.Errorf("ends.test: %d requests swiftly, %d slowly, until %v", withoutDelay, withDelay,
				lastAnswerEnd(log, "ends.test").Sub(begin))
		}
		for line, want := range map[string]int{
			`msg="the policy is overridden for a host" host=fast.test delay=0s adaptive=0 concurrency=4 window=always reason=ours expires=never`:                1,
			`msg="the policy is overridden for a host" host=ends.test`:                                                                                          1,
			`msg="the policy is overridden for a host" host=past.test`:                                                                                          0,
			`msg="the override of a host has expired and is not applied" host=past.test`:                                                                        1,
			`msg="the override of a host has expired and is not applied" host=ends.test`:                                                                        1,
			`msg="the override of a host has expired and is not applied" host=fast.test`:                                                                        0,
			`msg="the policy is overridden for a host" host=ends.test delay=0s adaptive=0 concurrency=1 window=always reason=ours expires=2000-01-01T00:00:05Z`: 1,
		} {
			if n := strings.Count(out.String(), line); n != want {
				t.Errorf("%d times in the log, want %d: %s\n%s", n, want, line, out.String())
			}
		}
	})
}

// hostLog returns the exchanges with one host.
func hostLog(log []crawltest.Exchange, host string) []crawltest.Exchange {
	return slices.DeleteFunc(slices.Clone(log), func(x crawltest.Exchange) bool {
		return !strings.Contains(x.URL, "//"+host+"/")
	})
}

// lastAnswerEnd returns the end of a host's last answer.
func lastAnswerEnd(log []crawltest.Exchange, host string) (end time.Time) {
	for _, x := range hostLog(log, host) {
		if x.End.After(end) {
			end = x.End
		}
	}
	return end
}

// TestConcurrentVisitsLoseNoFailures: four concurrent visits to a failing host; every failed page
// counts, whichever visit ends last. The third and the fourth are failures of the host.
func TestConcurrentVisitsLoseNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", MaxConcurrency: 4,
			Fallback: func(r crawltest.PageRequest) crawltest.Response {
				if r.Path == "/" {
					return pageWithLinks(numberedPaths(4)...)(r)
				}
				a := crawltest.Status(500)
				a.HeaderDelay = time.Duration(10-len(r.Path)) * time.Second
				if r.Path == "/2" {
					a.Header.Set("Retry-After", "900")
					a.HeaderDelay = 5 * time.Second // the first to end asks for the longest rest
				}
				return a
			}})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		c.Policy.Concurrency, c.Policy.AdaptiveFactor = 4, -1
		c.Settings.MaxAttempts = 1
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := storedHost(t, store, "http://a.test")
		if last.ConsecutiveFailures != 2 {
			t.Errorf("%d consecutive failures counted after four failed pages", last.ConsecutiveFailures)
		}
		end := lastAnswerEnd(web.Log(), "a.test")
		exchanges := hostLog(web.Log(), "a.test")
		first := slices.IndexFunc(exchanges, func(x crawltest.Exchange) bool { return x.URL == "http://a.test/2" })
		if want := exchanges[first].End.Add(15 * time.Minute); !last.Due.Equal(want) ||
			last.LostVisitDelay != want.Sub(end) {
			t.Errorf("due %v with a gap of %v, want %v, %v", last.Due, last.LostVisitDelay, want, want.Sub(end))
		}
	})
}

// TestRetryAfterBeyondMax: the host is suspended, and never visited sooner.
func TestRetryAfterBeyondMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", time.Now().Add(72*time.Hour).UTC().Format(http.TimeFormat))
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/busy": func(r crawltest.PageRequest) crawltest.Response {
				if r.NthForURL == 1 {
					return busy
				}
				return crawltest.HTML("")
			}}})
		store := newMemoryStore()
		if err := newCrawl(t, web, store, "http://a.test/busy").Run(t.Context()); !errors.Is(err,
			frontier.ErrOnlySuspendedLeft) {
			t.Fatalf("ended with %v, want ErrDormant", err)
		}
		if n := len(web.Log()); n != 2 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(71 * time.Hour)
		if err := newCrawl(t, web, store).Run(t.Context()); !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Errorf("after 71 hours: %v, want ErrDormant", err)
		}
		time.Sleep(time.Hour)
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Errorf("after 72 hours: %v", err)
		}
		if n := len(web.Log()); n < 3 {
			t.Errorf("%d requests, want the page again", n)
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestEveryFailureBacksOff: each kind of failure doubles the rest, plus jitter, and each success
// undoes one doubling.
func TestEveryFailureBacksOff(t *testing.T) {
	for name, answer := range map[string]crawltest.Response{
		"429": crawltest.Status(429), "503": crawltest.Status(503), "reset": {Fault: crawltest.Reset},
		"reset in mid-answer": {Body: "half", Fault: crawltest.ResetBody}, "timeout": {Fault: crawltest.Hang},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				web := crawltest.New(crawltest.Site{Host: "a.test",
					Fallback: func(r crawltest.PageRequest) crawltest.Response {
						if n++; n > 1 && n <= 4 {
							return answer
						}
						return pageWithLinks(numberedPaths(12)...)(r)
					}})
				c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
				c.Policy.AdaptiveFactor = -1  // a timeout takes long
				c.Policy.MaxLearnedDelay = -1 // the last rest is the normal one
				c.Policy.JitterFunc = func() float64 { return 0.8 }
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				var gaps []float64
				for log := web.Log(); len(log) > 1 && len(gaps) < 8; log = log[1:] {
					gaps = append(gaps, math.Round(log[1].Start.Sub(log[0].End).Seconds()))
				}
				// robots.txt, a page, three failures, three steps back, and the normal rest.
				if want := []float64{1, 1, 6, 12, 24, 12, 6, 1}; !slices.Equal(gaps, want) {
					t.Errorf("rests of %v seconds, want %v", gaps, want)
				}
			})
		})
	}
}

// TestCrawlsOwnLimits: limits of requests and of bytes a second hold over all hosts, and a host
// that waits for them also gets its own rest.
func TestCrawlsOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(30, crawltest.Latency{Base: 100 * time.Millisecond})
		for i := range sites {
			sites[i].Fallback = pageWithLinks("/1", "/2")
		}
		web := crawltest.New(sites...)
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, newMemoryStore(),
			politeness.LimiterConfig{CrawlRequestsPerSecond: 4}, seeds...)
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.RequiredDelay() > time.Second {
				t.Errorf("%v: required rest %v", v.URL(), v.RequiredDelay())
			}
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		for i := 4; i < len(log); i++ {
			if span := log[i].Start.Sub(log[i-4].Start); span < time.Second-time.Millisecond {
				t.Errorf("5 requests in %v at 4 a second", span)
			}
		}
		if took := log[len(log)-1].Start.Sub(log[0].Start); len(log) != 120 || took > 119*time.Second/4*106/100 {
			t.Errorf("%d requests took %v", len(log), took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(20, crawltest.Latency{})
		for i := range sites {
			sites[i].Fallback = crawltest.StaticPage(crawltest.HTML(strings.Repeat("x", 50_000)))
		}
		web := crawltest.New(sites...)
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, newMemoryStore(),
			politeness.LimiterConfig{CrawlBytesPerSecond: 10_000}, seeds...)
		c.Settings.Workers = 1
		begin := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := web.Log()[39].Start.Sub(begin); took < 93*time.Second || took > 100*time.Second {
			t.Errorf("950 kB at 10 kB a second took %v", took)
		}
	})
}

// Hooks.Visited gets the delay after each visit, and its reason.
func TestDelayAfterVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1")}
		slow.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: *\nCrawl-delay: 3\n"), CrawlDelay: 3 * time.Second})
		web := crawltest.New(slow, crawltest.Site{Host: "b.test", Fallback: pageWithLinks("/1")})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/", "http://b.test/")
		var mu sync.Mutex
		got := map[string]map[politeness.DelayReason]time.Duration{}
		c.Hooks.Visited = func(v *crawler.Visit) {
			mu.Lock()
			defer mu.Unlock()
			host := v.URL().Origin().Host()
			if got[host] == nil {
				got[host] = map[politeness.DelayReason]time.Duration{}
			}
			got[host][v.DelayReason] = v.NextVisit.Delay
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[string]map[politeness.DelayReason]time.Duration{
			"a.test": {politeness.RobotsDelay: 3 * time.Second}, "b.test": {politeness.ConfiguredDelay: time.Second}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
