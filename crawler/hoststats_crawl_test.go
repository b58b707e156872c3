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

// hostOf returns what the store has of the host of an origin.
func hostOf(t *testing.T, store storage.Store, origin string) storage.Host {
	t.Helper()
	u, err := decorum.ParseURL(origin + "/")
	if err != nil {
		t.Fatal(err)
	}
	o, met, err := store.(storage.Inspector).Origin(t.Context(), u.Origin())
	if err != nil || !met {
		t.Fatalf("origin %s: met %t, %v", origin, met, err)
	}
	return o.Host
}

// memoOf returns the memo of the host of an origin.
func memoOf(t *testing.T, store storage.Store, origin string) crawler.HostMemo {
	t.Helper()
	return crawler.ReadHostMemo(hostOf(t, store, origin).Memo)
}

// A memo counts what the server saw, over all origins of the host and two runs.
func TestMemoOfACrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := crawltest.Site{
			Host: "a.test", Robots: robotsText("User-agent: *\nCrawl-delay: 3\nSitemap: http://a.test/map.xml\n", 3*time.Second, nil),
			Pages: map[string]crawltest.Page{
				"/": pageOf("/1", "/moved"), "/1": pageOf("/2"), "/2": pageOf("/3"), "/3": pageOf(), "/listed": pageOf(),
				"/moved":   crawltest.Always(crawltest.Redirect(http.StatusFound, "http://a.test:81/")),
				"/map.xml": sitemapOf("urlset", "http://a.test/listed", "http://a.test/broken"),
				"/broken":  crawltest.Always(crawltest.Status(http.StatusInternalServerError)),
			},
			Latency: crawltest.Latency{Base: 250 * time.Millisecond},
		}
		web, store := crawltest.New(site), memory()
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
		got := memoOf(t, store, "http://a.test")
		want := crawler.HostMemo{
			Requests: int64(len(log)), Declared: 3 * time.Second, Configured: time.Second,
			Last: log[len(log)-1].End.UTC(), Status: log[len(log)-1].Status,
			Addr: got.Addr, Bytes: got.Bytes, Gaps: got.Gaps,
		}
		pages := map[string]bool{}
		for _, x := range log {
			want.Spent += x.End.Sub(x.Start)
			if x.Status == http.StatusInternalServerError {
				want.Failures++
			}
			if !strings.HasSuffix(x.URL, "/robots.txt") && !strings.HasSuffix(x.URL, "/map.xml") {
				want.Pages++
				pages[x.URL] = true
			}
		}
		want.Begun = int64(len(pages))
		if got != want {
			t.Errorf("memo %+v,\nwant %+v", got, want)
		}
		if want.Failures < 3 || want.Pages < 8 {
			t.Errorf("%d failures and %d pages in the log: the test has lost its point", want.Failures, want.Pages)
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

// Where a host has several slots, visits end in another order than they began,
// and acks would overtake each other: no count is lost.
func TestMemoWithSeveralSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 200
		var links []string
		for i := range pages {
			links = append(links, fmt.Sprintf("/%d", i))
		}
		r := rand.New(rand.NewPCG(1, 2))
		chance := make(chan time.Duration, 1)
		chance <- 0
		web := crawltest.New(crawltest.Site{Host: "a.test", Others: pageOf(links...), Robots: robotsText("", 0, nil),
			Latency: crawltest.Latency{Base: 100 * time.Millisecond}})
		store := memory()
		slow := &faulty{Store: store, ack: func(acks []storage.Ack) []storage.Ack {
			<-chance
			wait := time.Duration(r.IntN(500)) * time.Millisecond
			chance <- 0
			time.Sleep(wait)
			return acks
		}}
		c := newCrawl(t, web, slow, "http://a.test/0")
		c.Policy.Concurrency, c.Policy.Delay, c.Policy.Adaptive = 8, -1, -1
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		got := memoOf(t, store, "http://a.test")
		if got.Pages != pages || got.Requests != int64(len(log)) || got.Requests != pages+1 {
			t.Errorf("%d pages and %d requests are remembered, want %d and %d", got.Pages, got.Requests, pages, len(log))
		}
		if got.Shortfall != 0 {
			t.Errorf("shortfall %v", got.Shortfall)
		}
	})
}

// A rest that was cut short is told: here by a store that hurries, in a new run,
// whose limiter knows nothing of the visit before.
func TestMemoTellsOfAShortfall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Others: pageOf("/1"), Robots: robotsText("", 0, nil)})
		store := memory()
		ctx, stop := context.WithCancel(t.Context())
		hasty := &faulty{Store: store, ack: func(acks []storage.Ack) []storage.Ack {
			if len(acks) == 1 && acks[0].Outcome == storage.Done {
				h := acks[0].Host
				h.Due = h.Due.Add(-h.Gap / 4)
				stop()
			}
			return acks
		}}
		if err := newCrawl(t, web, hasty, "http://a.test/").Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if err := newCrawl(t, web, store).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := memoOf(t, store, "http://a.test")
		if want := 250 * time.Millisecond; got.Shortfall != want || got.Gaps.Min != time.Second-want {
			t.Errorf("shortfall %v, least gap %v; want %v, %v", got.Shortfall, got.Gaps.Min, want, time.Second-want)
		}
	})
}
