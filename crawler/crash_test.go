package crawler_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// TestSitemapsSurviveACrash: the process crashes after learning a robots.txt and before queueing
// its sitemaps. The next run reads the robots.txt from its notes, sends no request for it, and
// queues them.
func TestSitemapsSurviveACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nSitemap: http://a.test/map.xml\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{"/": pageWithLinks(), "/listed": pageWithLinks(),
				"/map.xml": sitemapPage("urlset", "http://a.test/listed")}})
		cut := errors.New("power cut")
		store := &faultyStore{Store: newMemoryStore(), add: func(es []storage.Entry) error {
			if es[0].Source == storage.SourcePrerequisite {
				return cut
			}
			return nil
		}}
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); !errors.Is(err, cut) {
			t.Fatalf("the first run ended with %v", err)
		}
		store.add = nil
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		if times["http://a.test/listed"] != 1 || times["http://a.test/robots.txt"] != 1 {
			t.Errorf("requests %v: want the listed page, and robots.txt once", times)
		}
	})
}

// TestRobotsRedirectSurvivesCrash: the process crashes after learning that a robots.txt is
// redirected and before queueing the target. The next run soon requests the target.
func TestRobotsRedirectSurvivesCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(302, "/rules.txt")}),
			Pages: map[string]crawltest.PageFunc{"/": pageWithLinks(),
				"/rules.txt": crawltest.StaticPage(crawltest.Text("User-agent: *\nDisallow: /x\n"))}})
		cut := errors.New("power cut")
		store := &faultyStore{Store: newMemoryStore(), add: func(es []storage.Entry) error {
			if !es[0].RobotsFor.IsZero() {
				return cut
			}
			return nil
		}}
		if err := newCrawl(t, web, store, "http://a.test/").Run(t.Context()); !errors.Is(err, cut) {
			t.Fatalf("the first run ended with %v", err)
		}
		store.add = nil
		begin := time.Now()
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, times := countRequests(web.Log())
		if times["http://a.test/"] != 1 || times["http://a.test/rules.txt"] != 1 ||
			times["http://a.test/robots.txt"] != 1 {
			t.Errorf("requests %v: want each once", times)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("the second run took %v", took)
		}
	})
}

// TestUnparkKnowsPurposes: a new robots.txt that still reserves a page against the crawl's purpose
// unparks nothing: otherwise each of a million pages would be leased only to be parked again.
func TestUnparkKnowsPurposes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/closed"),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				more := ""
				if at.Sub(begin) > 20*time.Hour {
					more = "Disallow: /other\n"
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nContent-Signal: /closed " +
					"ai-train=no\nAllow: /\n" + more)}
			}})
		store := newMemoryStore()
		for range 2 {
			c := newCrawl(t, web, store, "http://a.test/"+time.Now().Format("05"))
			agent, err := robots.NewAgent("testbot")
			if err != nil {
				t.Fatal(err)
			}
			c.Gate = gate.New(gate.Config{Agent: agent, Purposes: []string{"ai-train"}}, store)
			var refused atomic.Int64
			c.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) { refused.Add(1) }
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if first := time.Since(begin) < 20*time.Hour; refused.Load() > 0 != first {
				t.Errorf("%d URLs were refused; the first run: %t", refused.Load(), first)
			}
			time.Sleep(25*time.Hour + time.Second)
		}
		if n, err := countsOf(store); err != nil || n.ParkedURLs != 1 {
			t.Errorf("%+v, %v: want the page parked", n, err)
		}
	})
}
