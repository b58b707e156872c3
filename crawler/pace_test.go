package crawler_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones of the tests are there on any machine

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

func window(t *testing.T, hours, zone string) politeness.Window {
	t.Helper()
	w, err := politeness.ParseWindow(hours, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sleepUntil brings the bubble to a moment, told with its offset.
func sleepUntil(t *testing.T, s string) {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05 -07", s)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(at))
}

// numbered returns links to n pages.
func numbered(n int) []string {
	links := make([]string, n)
	for i := range links {
		links[i] = fmt.Sprintf("/%d", i)
	}
	return links
}

// TestWindowInMidCrawl, over midnight and through both changes of the clocks:
// nothing of the host is asked outside its hours, not the robots.txt, a sitemap
// or a retry; what is under way when they end is finished; and the crawl goes
// on the moment they begin.
func TestWindowInMidCrawl(t *testing.T) {
	for _, tt := range []struct{ name, hours, zone, begin, first, last string }{
		{"over midnight", "23:59-00:01", "Europe/Prague", "2026-01-10 12:00:00 +01", "2026-01-10 23:59:00 +01", "2026-01-11 23:59:00 +01"},
		{"Prague, spring", "02:30-03:02", "Europe/Prague", "2026-03-29 00:00:00 +01", "2026-03-29 03:00:00 +02", "2026-03-30 02:30:00 +02"},
		{"Prague, autumn", "02:58-03:00", "Europe/Prague", "2026-10-25 00:00:00 +02", "2026-10-25 02:58:00 +02", "2026-10-25 02:58:00 +01"},
		{"New York, spring", "01:58-02:30", "America/New_York", "2026-03-08 00:00:00 -05", "2026-03-08 01:58:00 -05", "2026-03-09 01:58:00 -04"},
		{"New York, autumn", "01:58-02:00", "America/New_York", "2026-11-01 00:00:00 -04", "2026-11-01 01:58:00 -04", "2026-11-01 01:58:00 -05"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testWindow(t, window(t, tt.hours, tt.zone), tt.begin, tt.first, tt.last) })
		})
	}
}

// testWindow crawls 12 pages, ten seconds apart, of which one is retried, in two
// minutes of one day and the rest of the next.
func testWindow(t *testing.T, w politeness.Window, begin, first, last string) {
	sleepUntil(t, begin)
	started := time.Now()
	web := crawltest.New(crawltest.Site{Host: "a.test", Others: pageOf(numbered(10)...),
		Robots:  robotsText("User-agent: *\nCrawl-delay: 10\nSitemap: http://a.test/map.xml\n", 10*time.Second, nil),
		Latency: crawltest.Latency{Base: 4 * time.Second},
		Pages: map[string]crawltest.Page{
			"/map.xml": sitemapOf("urlset", "http://a.test/listed"),
			"/3": func(r crawltest.Request) crawltest.Answer {
				if r.Nth == 1 {
					return crawltest.Status(503)
				}
				return crawltest.HTML("")
			},
		}})
	c := newCrawl(t, web, memory(), "http://a.test/0")
	c.Policy.Window = w
	looks := 0
	c.Hooks.Refused = func(storage.Lease, error) { looks++ }
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := web.Log()
	if _, times := visited(log); len(times) != 13 || times["http://a.test/3"] != 2 {
		t.Errorf("%v, want robots.txt, a sitemap, 11 pages, and a retry of /3", times)
	}
	firstOfDay := func(i int, want string) {
		if at, err := time.Parse("2006-01-02 15:04:05 -07", want); err != nil || !log[i].Start.Equal(at) {
			t.Errorf("request %d came at %v, want %s", i, log[i].Start, want)
		}
	}
	firstOfDay(0, first)
	day := slices.IndexFunc(log, func(x crawltest.Exchange) bool { return x.Start.Sub(log[0].Start) > 10*time.Minute })
	if day < 0 {
		t.Fatal("all was visited in the first window")
	}
	firstOfDay(day, last)
	for _, x := range log {
		if !w.Open(x.Start) {
			t.Errorf("%s was asked for at %v, outside %v", x.URL, x.Start, w)
		}
		if x.Status == 0 {
			t.Errorf("%s was broken off", x.URL)
		}
	}
	if most := int(time.Since(started)/(10*time.Minute)) + 5; looks > most {
		t.Errorf("looked %d times in vain, want at most %d", looks, most)
	}
	judged(t, web, time.Second)
}

// TestWindowOfAHop: a robots.txt that is redirected to a host outside its hours.
func TestWindowOfAHop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Others: pageOf(),
				Robots: crawltest.Lasting(crawltest.Robots{Answer: crawltest.Redirect(301, "http://b.test/rules")})},
			crawltest.Site{Host: "b.test", Pages: map[string]crawltest.Page{"/rules": crawltest.Always(crawltest.Text("User-agent: *\nDisallow:\n"))}})
		c := newCrawl(t, web, memory(), "http://a.test/")
		w := window(t, "00:10-00:20", "") // the bubble begins at midnight
		c.Policy.Hosts = map[string]politeness.Override{"b.test": {Window: &w}}
		looks := 0
		c.Hooks.Refused = func(storage.Lease, error) { looks++ }
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		urls, _ := visited(web.Log())
		if want := []string{"http://a.test/robots.txt", "http://b.test/rules", "http://a.test/"}; !slices.Equal(urls, want) {
			t.Errorf("requests %q, want %q", urls, want)
		}
		if at := web.Log()[1].Start; !w.Open(at) {
			t.Errorf("b.test was asked at %v", at)
		}
		if looks > 300 {
			t.Errorf("looked %d times in ten minutes", looks)
		}
	})
}

// TestWindowOfAHopAtHome: the hours end between a robots.txt and its hop on the
// same origin, which no hold stops.
func TestWindowOfAHopAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sleepUntil(t, "2000-01-01 00:00:59 +00")
		web := crawltest.New(crawltest.Site{Host: "a.test", Others: pageOf(),
			Robots: crawltest.Lasting(crawltest.Robots{Answer: crawltest.Redirect(301, "http://a.test/rules")}),
			Pages:  map[string]crawltest.Page{"/rules": crawltest.Always(crawltest.Text("User-agent: *\nDisallow:\n"))}})
		c := newCrawl(t, web, memory(), "http://a.test/")
		c.Policy.Window = window(t, "00:00-00:01,00:10-00:20", "")
		looks := 0
		c.Hooks.Refused = func(storage.Lease, error) {
			if looks++; looks == 1000 {
				c.Halt()
			}
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if len(log) != 3 || log[1].URL != "http://a.test/rules" || log[1].Start.UTC().Format(time.TimeOnly) > "00:10:10" || !c.Policy.Window.Open(log[1].Start) {
			t.Errorf("requests %+v", log)
		}
		if looks > 300 {
			t.Errorf("looked %d times in nine minutes", looks)
		}
	})
}

// TestVisitTime of robots.txt holds for all that follows it.
func TestVisitTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Others: pageOf(numbered(40)...), Latency: crawltest.Latency{Base: time.Second},
				Robots: robotsText("User-agent: *\nVisit-time: 0600-0601\nCrawl-delay: 5\n", 5*time.Second, nil)},
			crawltest.Site{Host: "b.test", Others: pageOf(numbered(3)...)})
		c := newCrawl(t, web, memory(), "http://a.test/", "http://b.test/")
		begin := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, x := range web.Log() {
			switch at := x.Start.UTC(); {
			case strings.HasPrefix(x.URL, "http://b.test/"):
				if x.Start.Sub(begin) > time.Minute {
					t.Errorf("%s waited for another host until %v", x.URL, at)
				}
			case x.URL == "http://a.test/robots.txt" && n == 0: // before it nothing is known
			case at.Hour() != 6 || at.Minute() != 0:
				t.Errorf("%s was asked for at %v", x.URL, at)
			default:
				n++
			}
		}
		if days := 4; time.Since(begin) > time.Duration(days+1)*24*time.Hour || n < 41 {
			t.Errorf("%d requests in %v, want 41 pages in about %d days", n, time.Since(begin), days)
		}
		judged(t, web, time.Second)
	})
}

// TestRequestRate holds in its hours, from their first moment on, also for a
// host that earned a shorter rest before.
func TestRequestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Others: pageOf(numbered(60)...), Concurrency: 4,
			Robots: crawltest.Lasting(crawltest.Robots{Answer: crawltest.Text("User-agent: *\nRequest-rate: 1/20\nRequest-rate: 1/3m 0005-0100\n"), Delay: 20 * time.Second})})
		c := newCrawl(t, web, memory(), "http://a.test/")
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
		judged(t, web, time.Second)
	})
}

// TestOverrides of single hosts, one of which runs out in mid-crawl. What a
// host asks for itself holds all the same.
func TestOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := func(host string, robots string, delay time.Duration) crawltest.Site {
			return crawltest.Site{Host: host, Others: pageOf(numbered(99)...), Robots: robotsText(robots, delay, nil),
				Latency: crawltest.Latency{Base: 100 * time.Millisecond}, Concurrency: 8}
		}
		web := crawltest.New(site("fast.test", "", 0), site("asks.test", "User-agent: *\nCrawl-delay: 7\n", 7*time.Second),
			site("ends.test", "", 0), site("past.test", "", 0), site("other.test", "", 0))
		var out bytes.Buffer
		begin := time.Now()
		c := newCrawl(t, web, memory(), "http://fast.test/", "http://asks.test/", "http://ends.test/", "http://past.test/", "http://other.test/")
		c.Log = slog.New(slog.NewTextHandler(&out, nil))
		c.Policy.Delay = 2 * time.Second
		swift := politeness.Override{Delay: new(politeness.NoDelay), Adaptive: new(-1.0), Concurrency: new(4), Reason: "ours"}
		ends, past := swift, swift
		ends.Concurrency, ends.Expires, past.Expires = new(1), begin.Add(5*time.Second), begin
		c.Policy.Hosts = map[string]politeness.Override{"fast.test": swift, "asks.test": swift, "ends.test": ends, "past.test": past}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		for host, want := range map[string]time.Duration{"asks.test": 7 * time.Second, "past.test": 2 * time.Second, "other.test": 2 * time.Second} {
			if gap := leastGap(log, host); gap != want {
				t.Errorf("%s: least gap %v, want %v", host, gap, want)
			}
		}
		if took := lastOf(log, "fast.test").Sub(begin); took > 5*time.Second {
			t.Errorf("fast.test took %v for 101 requests, four at a time", took)
		}
		swiftly, slowly := 0, 0
		for i, x := range ofHost(log, "ends.test") {
			if i > 0 && x.Start.Sub(begin) > 8*time.Second {
				slowly++
			} else {
				swiftly++
			}
		}
		if swiftly < 40 || slowly < 40 || lastOf(log, "ends.test").Sub(begin) < time.Duration(slowly-1)*2*time.Second {
			t.Errorf("ends.test: %d requests swiftly, %d slowly, until %v", swiftly, slowly, lastOf(log, "ends.test").Sub(begin))
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

// ofHost returns the part of a log that is of one host.
func ofHost(log []crawltest.Exchange, host string) []crawltest.Exchange {
	return slices.DeleteFunc(slices.Clone(log), func(x crawltest.Exchange) bool { return !strings.Contains(x.URL, "//"+host+"/") })
}

// lastOf returns the end of the last answer of a host.
func lastOf(log []crawltest.Exchange, host string) (end time.Time) {
	for _, x := range ofHost(log, host) {
		if x.End.After(end) {
			end = x.End
		}
	}
	return end
}

// TestConcurrentVisitsLoseNoStrikes: four visits at a time to a host that
// fails; each failure counts, whichever ends last.
func TestConcurrentVisitsLoseNoStrikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Concurrency: 4,
			Others: func(r crawltest.Request) crawltest.Answer {
				if r.Path == "/" {
					return pageOf(numbered(4)...)(r)
				}
				a := crawltest.Status(500)
				a.Wait = time.Duration(10-len(r.Path)) * time.Second
				if r.Path == "/2" {
					a.Header.Set("Retry-After", "900")
					a.Wait = 5 * time.Second // the first to end asks for most
				}
				return a
			}})
		c := newCrawl(t, web, memory(), "http://a.test/")
		c.Policy.Concurrency, c.Policy.Adaptive = 4, -1
		c.Settings.Attempts = 1
		var last storage.Host
		c.Hooks.Acked = func(a storage.Ack) {
			if a.Host != nil {
				last = *a.Host
			}
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last.Strikes != 4 {
			t.Errorf("%d strikes after four failures", last.Strikes)
		}
		end := lastOf(web.Log(), "a.test")
		asked := ofHost(web.Log(), "a.test")
		first := slices.IndexFunc(asked, func(x crawltest.Exchange) bool { return x.URL == "http://a.test/2" })
		if want := asked[first].End.Add(15 * time.Minute); !last.Due.Equal(want) || last.Gap != want.Sub(end) {
			t.Errorf("due %v with a gap of %v, want %v, %v", last.Due, last.Gap, want, want.Sub(end))
		}
	})
}

// TestRetryAfterBeyondPatience: the host is never visited sooner, but set aside.
func TestRetryAfterBeyondPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", time.Now().Add(72*time.Hour).UTC().Format(http.TimeFormat))
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.Page{
			"/busy": func(r crawltest.Request) crawltest.Answer {
				if r.Nth == 1 {
					return busy
				}
				return crawltest.HTML("")
			}}})
		store := memory()
		if err := newCrawl(t, web, store, "http://a.test/busy").Run(t.Context()); !errors.Is(err, frontier.ErrDormant) {
			t.Fatalf("ended with %v, want ErrDormant", err)
		}
		if n := len(web.Log()); n != 2 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(71 * time.Hour)
		if err := newCrawl(t, web, store).Run(t.Context()); !errors.Is(err, frontier.ErrDormant) {
			t.Errorf("after 71 hours: %v, want ErrDormant", err)
		}
		time.Sleep(time.Hour)
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Errorf("after 72 hours: %v", err)
		}
		if n := len(web.Log()); n < 3 {
			t.Errorf("%d requests, want the page again", n)
		}
		judged(t, web, time.Second)
	})
}

// TestEveryFailureBacksOff: each kind of trouble doubles the rest, with jitter
// on top, and each success takes one step back.
func TestEveryFailureBacksOff(t *testing.T) {
	for name, answer := range map[string]crawltest.Answer{
		"429": crawltest.Status(429), "503": crawltest.Status(503), "reset": {Fault: crawltest.Reset},
		"reset in mid-answer": {Body: "half", Fault: crawltest.ResetBody}, "timeout": {Fault: crawltest.Hang},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				web := crawltest.New(crawltest.Site{Host: "a.test", Others: func(r crawltest.Request) crawltest.Answer {
					if n++; n > 1 && n <= 4 {
						return answer
					}
					return pageOf(numbered(12)...)(r)
				}})
				c := newCrawl(t, web, memory(), "http://a.test/")
				c.Policy.Adaptive = -1 // a timeout takes its time
				c.Policy.Jitter = func() float64 { return 0.8 }
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				var gaps []float64
				for log := web.Log(); len(log) > 1 && len(gaps) < 8; log = log[1:] {
					gaps = append(gaps, math.Round(log[1].Start.Sub(log[0].End).Seconds()))
				}
				// robots.txt, a page, three failures, three steps back, and on.
				if want := []float64{1, 1, 6, 12, 24, 12, 6, 1}; !slices.Equal(gaps, want) {
					t.Errorf("rests of %v seconds, want %v", gaps, want)
				}
			})
		})
	}
}

// TestCrawlsOwnLimits on requests and on bytes a second hold over all hosts.
// Whoever has to wait for them keeps the rest that it is owed itself.
func TestCrawlsOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := village(30, crawltest.Latency{Base: 100 * time.Millisecond})
		for i := range sites {
			sites[i].Others = pageOf("/1", "/2")
		}
		web := crawltest.New(sites...)
		c := over(t, wire{web, oneAddress}, memory(), politeness.LimitsConfig{RequestsPerSecond: 4}, seeds...)
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.Required() > time.Second {
				t.Errorf("%v: required rest %v", v.URL(), v.Required())
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
		if took := log[len(log)-1].Start.Sub(log[0].Start); len(log) != 120 || took > 119*time.Second/4*102/100 {
			t.Errorf("%d requests took %v", len(log), took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := village(20, crawltest.Latency{})
		for i := range sites {
			sites[i].Others = crawltest.Always(crawltest.HTML(strings.Repeat("x", 50_000)))
		}
		web := crawltest.New(sites...)
		c := over(t, wire{web, oneAddress}, memory(), politeness.LimitsConfig{BytesPerSecond: 10_000}, seeds...)
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
