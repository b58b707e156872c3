package crawler_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage"
)

// changingRobots returns the robots.txt of a site that disallows /flip between two times and may be
// cached for maxAge.
func changingRobots(from, to time.Time, maxAge time.Duration) func(time.Time) crawltest.RobotsSpec {
	return func(at time.Time) crawltest.RobotsSpec {
		r := crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /never\n"),
			IsDisallowed: hasPrefixFunc("/never")}
		if !at.Before(from) && at.Before(to) {
			r = crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /flip\n"),
				IsDisallowed: hasPrefixFunc("/flip")}
		}
		r.Response.Header.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(maxAge.Seconds())))
		return r
	}
}

func hasPrefixFunc(prefix string) func(string) bool {
	return func(path string) bool { return strings.HasPrefix(path, prefix) }
}

// queueURLs queues n URLs, taking the patterns in turn.
func queueURLs(t *testing.T, c *crawler.Crawler, n int, patterns ...string) {
	t.Helper()
	const batch = 10_000
	for i := 0; i < n; i += batch {
		entries := make([]storage.Entry, min(batch, n-i))
		for j := range entries {
			u, err := decorum.ParseURL(fmt.Sprintf(patterns[(i+j)%len(patterns)], i+j))
			if err != nil {
				t.Fatal(err)
			}
			entries[j] = storage.Entry{URL: u, PriorityClass: storage.ClassNormal}
		}
		if _, err := c.Frontier.Discover(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRulesFlip: while 100,000 URLs are queued on the origin (10,000 unless it runs at full size),
// its robots.txt disallows half of them, and allows them again hours later.
func TestRulesFlip(t *testing.T) {
	urls := 10_000
	if *fullSize {
		urls = 100_000
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { testRulesFlip(t, newMemoryStore(), urls) })
	})
	t.Run("bolt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := openBolt(t, filepath.Join(t.TempDir(), "frontier.db"))
			testRulesFlip(t, store, urls)
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

func testRulesFlip(t *testing.T, store storage.Store, urls int) {
	unit := time.Duration(urls/10) * time.Second // a tenth of the crawl
	begin := time.Now()
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
		Robots: changingRobots(begin.Add(2*unit), begin.Add(5*unit), unit/3)})
	c := newDirectCrawl(t, web, store)
	queueURLs(t, c, urls, "http://a.test/open/%d", "http://a.test/flip/%d")
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkPoliteness(t, web, time.Second)
	var known [3]time.Time // when each file was fetched
	var flips [3]int       // visits to /flip while each file was in force
	pages := 0
	for _, x := range web.Log() {
		if strings.HasSuffix(x.URL, "/robots.txt") {
			for i, at := range []time.Time{begin, begin.Add(2 * unit), begin.Add(5 * unit)} {
				if known[i].IsZero() && !x.Start.Before(at) {
					known[i] = x.End
				}
			}
			continue
		}
		pages++
		if strings.Contains(x.URL, "/flip/") {
			i := 2
			for x.Start.Before(known[i]) || known[i].IsZero() {
				i--
			}
			flips[i]++
		}
	}
	t.Logf("%d pages in %v; of /flip: %d before it was closed, %d while it was (known after %v), %d after (known "+
		"after %v)", pages, time.Since(begin),
		flips[0], flips[1], known[1].Sub(begin.Add(2*unit)), flips[2], known[2].Sub(begin.Add(5*unit)))
	if flips[0] == 0 || flips[1] != 0 || flips[2] == 0 || pages != urls {
		t.Errorf("%d pages, %v of /flip; want %d, and none of /flip while it was closed", pages, flips, urls)
	}
}

// An unparkRecorder notes for which origins parked URLs are evaluated, and when.
type unparkRecorder struct {
	storage.Store
	mu           sync.Mutex
	unparked     map[decorum.Origin][]time.Time
	otherOrigins int // evaluated URLs of other origins than the one named
}

func (w *unparkRecorder) UnparkMatchingURLs(ctx context.Context, o decorum.Origin,
	shouldUnpark func(storage.Entry) bool) (int, error) {
	w.mu.Lock()
	w.unparked[o] = append(w.unparked[o], time.Now())
	w.mu.Unlock()
	return w.Store.UnparkMatchingURLs(ctx, o, func(e storage.Entry) bool {
		if e.URL.Origin() != o {
			w.mu.Lock()
			w.otherOrigins++
			w.mu.Unlock()
		}
		return shouldUnpark(e)
	})
}

// TestRulesFlipOfOneOrigin: two origins of a host, and another host. An origin's parked URLs are
// evaluated when its own robots.txt has changed, and at no other time; other origins' URLs are not
// touched.
func TestRulesFlipOfOneOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		const pages, keep = 5000, 20 * time.Minute
		ofA, ofB := changingRobots(begin.Add(2*keep), begin.Add(4*keep), keep),
			changingRobots(begin, begin.Add(keep), keep)
		page := crawltest.StaticPage(crawltest.HTML("a page"))
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: page, Robots: ofA},
			crawltest.Site{Host: "b.test", Fallback: page, Robots: ofB})
		store := &unparkRecorder{Store: newMemoryStore(), unparked: map[decorum.Origin][]time.Time{}}
		c := newDirectCrawl(t, web, store)
		origins := []string{"http://a.test", "https://a.test", "http://b.test"}
		robotsOf := []func(time.Time) crawltest.RobotsSpec{ofA, ofA, ofB}
		for _, o := range origins {
			queueURLs(t, c, pages, o+"/open/%d", o+"/flip/%d")
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkPoliteness(t, web, time.Second)
		log := web.Log()
		for i, o := range origins {
			var fetched []time.Time // when each file was fetched that differed from the one before
			visits, last := 0, ""
			for _, x := range log {
				path, ours := strings.CutPrefix(x.URL, o+"/")
				switch {
				case ours && path != "robots.txt":
					visits++
				case ours:
					text := robotsOf[i](x.Start).Response.Body
					if text != last {
						fetched = append(fetched, x.End)
					}
					last = text
				}
			}
			u, err := decorum.ParseURL(o)
			if err != nil {
				t.Fatal(err)
			}
			unparked := store.unparked[u.Origin()]
			if want := []int{3, 3, 2}[i]; len(fetched) != want || len(unparked) != want || visits != pages {
				t.Errorf("%s: %d pages, %d files learnt, judged again %d times; want %d, %d and as many", o, visits,
					len(fetched), len(unparked), pages, want)
				continue
			}
			for i := range unparked {
				if next := time.Second + time.Millisecond; unparked[i].Before(fetched[i]) ||
					unparked[i].Sub(fetched[i]) > 2*next {
					t.Errorf("%s: file %d was known at %v, and URLs were judged again at %v", o, i,
						fetched[i].Sub(begin), unparked[i].Sub(begin))
				}
			}
		}
		if store.otherOrigins > 0 {
			t.Errorf("%d URLs were judged again for another origin's sake", store.otherOrigins)
		}
	})
}

// A revisitingStore is a store in which every visited page awaits its revisit.
type revisitingStore struct {
	storage.Store
	interval time.Duration
}

func (r revisitingStore) Ack(ctx context.Context, acks []storage.Ack) error {
	acks = slices.Clone(acks)
	for i := range acks {
		if acks[i].Outcome == storage.Done && acks[i].Lease.Source != storage.SourcePrerequisite {
			acks[i].Outcome, acks[i].NotBefore = storage.RevisitAt, time.Now().Add(r.interval)
		}
	}
	return r.Store.Ack(ctx, acks)
}

// TestRulesFlipWhilePagesAwaitRevisit: pages that are disallowed when their revisit is due are
// parked, and visited again when they are allowed, beside others that were never visited.
func TestRulesFlipWhilePagesAwaitRevisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, every = 200, 2 * time.Hour
		begin := time.Now()
		from, to, end := begin.Add(5*time.Hour), begin.Add(15*time.Hour), begin.Add(24*time.Hour)
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Robots: changingRobots(from, to, time.Hour)})
		store := revisitingStore{newMemoryStore(), every}
		c := newDirectCrawl(t, web, store)
		queueURLs(t, c, pages, "http://a.test/open/%d", "http://a.test/flip/%d")
		time.AfterFunc(6*time.Hour, func() { queueURLs(t, c, pages, "http://a.test/flip/new%d") })
		for time.Now().Before(end) { // a run may end when all pages await a revisit
			ctx, cancel := context.WithDeadline(t.Context(), end)
			c.Run(ctx)
			cancel()
			time.Sleep(time.Minute)
		}
		if r := web.Judge(crawltest.JudgeOptions{MinDelay: time.Second, RequiredProductToken: "testbot",
			AllowRevisits: true}); !r.OK() {
			t.Errorf("the judge says:\n%v", r)
		}
		visits := map[string][3]int{} // of each page: before, while disallowed, after
		for _, x := range web.Log() {
			v := visits[x.URL]
			switch {
			case x.Start.Before(from.Add(time.Hour)): // the file is known by then
				v[0]++
			case x.Start.Before(to):
				v[1]++
			default:
				v[2]++
			}
			visits[x.URL] = v
		}
		for i := range pages {
			open := i%2 == 0
			url := fmt.Sprintf("http://a.test/flip/%d", i)
			if open {
				url = fmt.Sprintf("http://a.test/open/%d", i)
			}
			if v := visits[url]; v[0] < 2 || open != (v[1] >= 4) || !open && v[1] > 0 || v[2] < 2 {
				t.Errorf("%s: %v visits before, while it was closed, and after", url, v)
			}
			url = fmt.Sprintf("http://a.test/flip/new%d", i)
			if v := visits[url]; v[0]+v[1] > 0 || v[2] < 2 {
				t.Errorf("%s: %v visits before, while it was closed, and after", url, v)
			}
		}
	})
}
