package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage"
)

// storedHost returns the stored state of the host of an origin.
func storedHost(t *testing.T, store storage.Store, origin string) storage.HostState {
	t.Helper()
	u, err := decorum.ParseURL(origin + "/")
	if err != nil {
		t.Fatal(err)
	}
	o, met, err := store.(storage.Inspector).Origin(t.Context(), u.Origin())
	if err != nil || !met {
		t.Fatalf("origin %s: met %t, %v", origin, met, err)
	}
	return o.HostState
}

// storedHostStats returns the stored statistics of the host of an origin.
func storedHostStats(t *testing.T, store storage.Store, origin string) crawler.HostStats {
	t.Helper()
	return crawler.DecodeHostStats(storedHost(t, store, origin).EncodedStats)
}

// TestHostStatsOfACrawl: the statistics count what the server saw, over all origins of the host and
// two runs.
func TestHostStatsOfACrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := crawltest.Site{
			Host: "a.test", Robots: robotsText("User-agent: *\nCrawl-delay: 3\nSitemap: http://a.test/map.xml\n",
				3*time.Second, nil),
			Pages: map[string]crawltest.PageFunc{
				"/": pageWithLinks("/1", "/moved"), "/1": pageWithLinks("/2"), "/2": pageWithLinks("/3"),
				"/3": pageWithLinks(), "/listed": pageWithLinks(),
				"/moved":   crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "http://a.test:81/")),
				"/map.xml": sitemapPage("urlset", "http://a.test/listed", "http://a.test/broken"),
				"/broken":  crawltest.StaticPage(crawltest.Status(http.StatusInternalServerError)),
			},
			Latency: crawltest.Latency{Base: 250 * time.Millisecond},
		}
		web, store := crawltest.New(site), newMemoryStore()
		first := newCrawl(t, web, store, "http://a.test/")
		first.Settings.MaxPages = 2
		if err := first.Run(t.Context()); !errors.Is(err, crawler.ErrPages) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		got := storedHostStats(t, store, "http://a.test")
		want := crawler.HostStats{
			HostTraffic: crawler.HostTraffic{Requests: int64(len(log)), Bytes: got.Bytes},
			CrawlDelay:  3 * time.Second, ConfiguredDelay: time.Second,
			LastEnd: log[len(log)-1].End.UTC(), LastStatus: log[len(log)-1].Status,
			Addr: got.Addr, Gaps: got.Gaps, Health: got.Health,
			DuplicateLinks: 2, // of the pages on port 81, which repeat those on port 80
		}
		pages := map[string]bool{}
		for _, x := range log {
			want.TotalRequestTime += x.End.Sub(x.Start)
			if x.Status == http.StatusInternalServerError {
				want.FailedRequests++
			}
			if !strings.HasSuffix(x.URL, "/robots.txt") && !strings.HasSuffix(x.URL, "/map.xml") {
				want.Pages++
				pages[x.URL] = true
			}
		}
		want.PagesRequested = int64(len(pages))
		if got != want {
			t.Errorf("statistics %+v,\nwant %+v", got, want)
		}
		if want.FailedRequests < 3 || want.Pages < 8 {
			t.Errorf("%d failures and %d pages in the log: the test has lost its point",
				want.FailedRequests, want.Pages)
		}
		if got.Gaps.Count() != int64(len(log)-1) || got.Gaps.Min != 1*time.Second && got.Gaps.Min != 3*time.Second {
			t.Errorf("%d gaps, the least %v; want one between each two requests", got.Gaps.Count(), got.Gaps.Min)
		}
		if m := got.Gaps.Median(); m < 3*time.Second || m > 7*time.Second {
			t.Errorf("median gap %v", m)
		}
		if got.Bytes == 0 {
			t.Error("no bytes are counted")
		}
	})
}

// TestHostStatsWithSeveralSlots: with several slots, visits end in another order than they began,
// and no count is lost although acks overtake each other.
func TestHostStatsWithSeveralSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 200
		var links []string
		for i := range pages {
			links = append(links, fmt.Sprintf("/%d", i))
		}
		r := rand.New(rand.NewPCG(1, 2))
		rng := make(chan time.Duration, 1)
		rng <- 0
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(links...),
			Robots:  robotsText("", 0, nil),
			Latency: crawltest.Latency{Base: 100 * time.Millisecond}})
		store := newMemoryStore()
		slow := &faultyStore{Store: store, ack: func(acks []storage.Ack) []storage.Ack {
			<-rng
			wait := time.Duration(r.IntN(500)) * time.Millisecond
			rng <- 0
			time.Sleep(wait)
			return acks
		}}
		c := newCrawl(t, web, slow, "http://a.test/0")
		c.Policy.Concurrency, c.Policy.Delay, c.Policy.AdaptiveFactor = 8, -1, -1
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		got := storedHostStats(t, store, "http://a.test")
		if got.Pages != pages || got.Requests != int64(len(log)) || got.Requests != pages+1 {
			t.Errorf("%d pages and %d requests are remembered, want %d and %d", got.Pages,
				got.Requests, pages, len(log))
		}
		if got.LargestDelayShortfall != 0 {
			t.Errorf("shortfall %v", got.LargestDelayShortfall)
		}
	})
}

// TestHostStatsReportShortfall: a rest that was cut short is reported; here the store hurries in a
// new run, whose limiter knows nothing of the visit before.
func TestHostStatsReportShortfall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks("/1"),
			Robots: robotsText("", 0, nil)})
		store := newMemoryStore()
		ctx, stop := context.WithCancel(t.Context())
		hastyStore := &faultyStore{Store: store, ack: func(acks []storage.Ack) []storage.Ack {
			if len(acks) == 1 && acks[0].Outcome == storage.Done {
				h := acks[0].HostState
				h.Due = h.Due.Add(-h.LostVisitDelay / 4)
				stop()
			}
			return acks
		}}
		if err := newCrawl(t, web, hastyStore, "http://a.test/").Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := storedHostStats(t, store, "http://a.test")
		if want := 250 * time.Millisecond; got.LargestDelayShortfall != want || got.Gaps.Min != time.Second-want {
			t.Errorf("shortfall %v, least gap %v; want %v, %v", got.LargestDelayShortfall,
				got.Gaps.Min, want, time.Second-want)
		}
	})
}
