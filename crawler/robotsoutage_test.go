package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// failingRobots returns the robots.txt of a site that asks for a rest of an hour and disallows /x.
// Between two times it fails, in a different way for each request.
func failingRobots(from, to time.Time) func(time.Time) crawltest.RobotsSpec {
	reasons := []crawltest.Response{crawltest.Status(503), {Fault: crawltest.Reset}, crawltest.Status(429),
		{Fault: crawltest.Hang}, crawltest.Status(500)}
	good := crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nCrawl-delay: 3600\nDisallow: /x\n"),
		CrawlDelay: time.Hour, IsDisallowed: hasPrefixFunc("/x")}
	return func(at time.Time) crawltest.RobotsSpec {
		if at.Before(from) || !at.Before(to) {
			return good
		}
		return crawltest.RobotsSpec{Response: reasons[at.Sub(from)/time.Hour%time.Duration(len(reasons))]}
	}
}

// crawlFor crawls from the store in the file as a daemon does, including waits that a crawl in the
// foreground does not make, until the frontier is empty or the time is over. It calls prepare
// first.
func crawlFor(t *testing.T, web *crawltest.Web, file string, limit time.Duration, prepare func(*crawler.Crawler)) {
	t.Helper()
	store := openBolt(t, file)
	c := newDirectCrawl(t, web, store)
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true})
	if prepare != nil {
		prepare(c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := c.Run(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// pageTimes returns when the pages of a host were requested.
func pageTimes(log []crawltest.Exchange, host string) (at []time.Time) {
	for _, x := range log {
		if path, ok := strings.CutPrefix(x.URL, "http://"+host); ok && path != "/robots.txt" {
			at = append(at, x.Start)
		}
	}
	return at
}

// TestLongOutage: a robots.txt fails for 40 days, while the crawl is stopped and started again. For
// 30 days nothing is visited; then the last good copy applies, with its Crawl-delay (FETCH-13,
// FETCH-16), or no rule where there never was a copy (FETCH-14). Disallowed URLs stay parked, and
// nothing is lost.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		page, latency := crawltest.StaticPage(crawltest.HTML("a page")), crawltest.Latency{Base: time.Second}
		web := crawltest.New(
			crawltest.Site{Host: "known.test", Fallback: page, Latency: latency,
				Robots: failingRobots(begin.Add(30*time.Hour), begin.Add(40*day))},
			crawltest.Site{Host: "new.test", Fallback: page, Latency: latency,
				Robots: failingRobots(begin, begin.Add(40*day))})
		file := filepath.Join(t.TempDir(), "frontier.db")
		const pages = 200 // per host
		crawlFor(t, web, file, 3*day, func(c *crawler.Crawler) {
			queueURLs(t, c, pages, "http://known.test/%d", "http://known.test/x%d")
			queueURLs(t, c, pages, "http://new.test/%d", "http://new.test/x%d")
		})
		for _, d := range []struct{ asleep, awake time.Duration }{
			{time.Hour, 5 * day}, {6 * day, 2 * day}, {time.Minute, 9 * day}, {5 * day, 16 * day},
		} {
			time.Sleep(d.asleep)
			crawlFor(t, web, file, d.awake, nil)
		}
		log := web.Log()
		checkPoliteness(t, web, time.Second)
		outage := map[string]time.Time{} // when robots.txt first failed
		for _, x := range log {
			host := strings.Split(x.URL, "/")[2]
			if strings.HasSuffix(x.URL, "/robots.txt") && x.Status != 200 && outage[host].IsZero() {
				outage[host] = x.Start
			}
		}
		for _, host := range []string{"known.test", "new.test"} {
			visits, want := pageTimes(log, host), pages/2
			var before, during, after int
			for _, at := range visits {
				switch age := at.Sub(outage[host]); {
				case age < 0:
					before++
				case age <= 30*day:
					during++
				case age < 40*day:
					after++
				}
			}
			closed := 0 // visits to pages that the rules disallow, while there are rules
			for _, x := range log {
				if strings.HasPrefix(x.URL, "http://"+host+"/x") {
					closed++
				}
			}
			t.Logf("%s: out of reach from %v on; %d pages before, %d in the 30 days from then, %d until it ended, "+
				"%d in all, %d of them under /x",
				host, outage[host].Sub(begin), before, during, after, len(visits), closed)
			ruled := host == "known.test"
			if during != 0 || after == 0 || len(visits)-closed != want ||
				ruled != (before > 0) || ruled != (closed == 0) {
				t.Errorf("%s: want %d pages but for those under /x, none in the 30 days and some after", host, want)
			}
		}
		store := openBolt(t, file)
		defer store.Close()
		if n, err := countsOf(store); err != nil || n.QueuedURLs != 0 || n.SeenURLs != 2*pages ||
			n.ParkedURLs != n.SeenURLs-len(pageTimes(log, "known.test"))-len(pageTimes(log, "new.test")) {
			t.Errorf("%+v, %v: want all pages that were not visited to be parked, and none lost", n, err)
		}
	})
}

// TestOutageInYandex: in the Yandex dialect, a robots.txt that fails disallows nothing.
func TestOutageInYandex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Robots: failingRobots(begin, begin.Add(40*day))})
		store := newMemoryStore()
		c := newDirectCrawl(t, web, store)
		agent, err := robots.NewAgent("testbot")
		if err != nil {
			t.Fatal(err)
		}
		c.Gate = gate.New(gate.Config{Agent: agent, Dialect: robots.Yandex, SessionStart: begin}, store)
		queueURLs(t, c, 20, "http://a.test/%d", "http://a.test/x%d")
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, took := len(pageTimes(web.Log(), "a.test")), time.Since(begin); n != 20 || took > time.Hour {
			t.Errorf("%d pages in %v, want 20 in minutes", n, took)
		}
		r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second})
		if n := r.CountViolationsOfRule(crawltest.RobotsUnreachable); n != len(r.Violations) {
			t.Errorf("the judge, which applies RFC 9309, reports more than that it was closed:\n%v", r)
		}
	})
}

// TestSleepOf31Days: nothing opens the store for a month. Rules fetched before are too old, a
// Retry-After has passed, and a month without requests is not an outage of a month (FETCH-15).
func TestSleepOf31Days(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		busy := crawltest.Status(503)
		busy.Header.Set("Retry-After", "86400")
		web := crawltest.New(
			crawltest.Site{Host: "open.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				if r.Path == "/3" && r.NthForURL == 1 {
					return busy
				}
				return crawltest.HTML("a page")
			}, Robots: failingRobots(begin.Add(-time.Hour), begin)},
			crawltest.Site{Host: "shut.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
				Robots: failingRobots(begin, begin.Add(90*day))})
		file := filepath.Join(t.TempDir(), "frontier.db")
		const pages = 10
		crawlFor(t, web, file, 5*time.Hour, func(c *crawler.Crawler) {
			queueURLs(t, c, pages, "http://open.test/%d")
			queueURLs(t, c, pages, "http://shut.test/%d")
		})
		first := len(web.Log())
		time.Sleep(31 * day)
		crawlFor(t, web, file, 2*day, nil)
		checkPoliteness(t, web, time.Second)
		log := web.Log()
		requested := map[string]bool{}
		for _, x := range log[first:] {
			host := strings.Split(x.URL, "/")[2]
			if !requested[host] && !strings.HasSuffix(x.URL, "/robots.txt") {
				t.Errorf("after the sleep %s is requested first", x.URL)
			}
			requested[host] = true
		}
		if before, all := len(pageTimes(log[:first], "open.test")), len(pageTimes(log, "open.test")); before >= pages ||
			all != pages+1 {
			t.Errorf("open.test: %d pages before the sleep and %d in all, want %d, one of them twice", before, all,
				pages)
		}
		if n := len(pageTimes(log, "shut.test")); n != 0 {
			t.Errorf("shut.test: %d pages, want none: its robots.txt was requested only in a few hours and days", n)
		}
		store := openBolt(t, file)
		defer store.Close()
		if n, err := countsOf(store); err != nil || n.QueuedURLs != pages {
			t.Errorf("%+v, %v: want shut.test's pages in the queue", n, err)
		}
	})
}

// TestRulesThatHoldBriefly: sites allow no caching of their robots.txt, and ask for rests longer
// than a minute or wait longer than that because workers are few. Each robots.txt that is fetched
// serves a page.
func TestRulesThatHoldBriefly(t *testing.T) {
	for _, tt := range []struct {
		name           string
		hosts, workers int
		delay, latency time.Duration
	}{
		{"long rests", 1, 4, 2 * time.Minute, time.Second},
		{"few workers", 50, 1, 0, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				text := fmt.Sprintf("User-agent: *\nCrawl-delay: %v\n", tt.delay.Seconds())
				rules := crawltest.RobotsSpec{Response: crawltest.Text(text), CrawlDelay: tt.delay}
				rules.Response.Header.Set("Cache-Control", "no-cache")
				var sites []crawltest.Site
				var patterns []string
				for i := range tt.hosts {
					host := fmt.Sprintf("h%d.test", i)
					patterns = append(patterns, "http://"+host+"/%d")
					sites = append(sites, crawltest.Site{Host: host, Robots: crawltest.StaticRobots(rules),
						Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
						Latency:  crawltest.Latency{Base: tt.latency}})
				}
				web := crawltest.New(sites...)
				c := newDirectCrawl(t, web, newMemoryStore())
				c.Settings.Workers = tt.workers
				pages := 10 * tt.hosts
				queueURLs(t, c, pages, patterns...)
				ctx, cancel := context.WithTimeout(t.Context(), day)
				defer cancel()
				if err := c.Run(ctx); err != nil {
					t.Fatal(err)
				}
				checkPoliteness(t, web, time.Second)
				if _, times := countRequests(web.Log()); len(times) != pages+tt.hosts {
					t.Errorf("%d URLs were requested, want %d", len(times), pages+tt.hosts)
				}
			})
		})
	}
}
