package crawler_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
)

// A stallingServer listens on its own address. It does not answer pages under /slow while shut is
// open. It reports each request for such a page, and each client that disconnects.
type stallingServer struct {
	*httptest.Server
	requests               atomic.Int64
	stalling               atomic.Bool
	received, disconnected chan string
}

func newStallingServer(t *testing.T, addr string) *stallingServer {
	t.Helper()
	l, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	d := &stallingServer{received: make(chan string, 100), disconnected: make(chan string, 100)}
	d.stalling.Store(true)
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.requests.Add(1)
		if d.stalling.Load() && strings.HasPrefix(r.URL.Path, "/slow") {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			d.received <- r.URL.Path
			<-r.Context().Done()
			d.disconnected <- r.URL.Path
		}
	}))
	d.Server.Listener.Close()
	d.Server.Listener = l
	d.Start()
	t.Cleanup(d.Close)
	return d
}

// TestABrakeOverSockets: when Set returns, the server of the stopped host has seen its connection
// close and gets no further request, while another server is visited as before.
func TestABrakeOverSockets(t *testing.T) {
	stopped, free := newStallingServer(t, "127.0.0.1"), newStallingServer(t, "127.0.0.2")
	seeds := []string{stopped.URL + "/slow", stopped.URL + "/1", stopped.URL + "/2", free.URL + "/1"}
	store := newMemoryStore()
	c := newCrawl(t, crawltest.New(), store)
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)", AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Fetcher = fetcher
	c.Policy.Delay, c.Policy.AdaptiveFactor = time.Millisecond, -1
	c.Brakes = &politeness.Brakes{}
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter, WaitForRevisitsAndSuspensions: true})
	addSeeds(t, c, seeds...)
	visits := make(chan string, 100)
	c.Hooks.Visited = func(v *crawler.Visit) { visits <- v.URL().String() }
	var run sync.WaitGroup
	run.Go(func() {
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, stopped.received, "/slow")
	if err := c.Brakes.Set(politeness.Brake{Host: "127.0.0.1", Stop: true}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, stopped.disconnected, "/slow") // although the page has a minute
	before := stopped.requests.Load()
	for i := range 20 {
		page := free.URL + "/again" + strings.Repeat("x", i)
		addSeeds(t, c, page, strings.Replace(page, free.URL, stopped.URL, 1))
		waitFor(t, visits, page)
	}
	if n := stopped.requests.Load(); n != before {
		t.Errorf("%d requests were made to a host that was stopped", n-before)
	}
	stopped.stalling.Store(false)
	c.Brakes.Remove("127.0.0.1")
	run.Wait()
	if s := c.Stats(); s.Errors != 0 || s.Retries != 0 || s.Pages != int64(len(seeds)+40) {
		t.Errorf("%+v", s)
	}
	if n := stopped.requests.Load(); n != 25 { // robots.txt, one page twice, 22 others
		t.Errorf("%d requests were made, want 25", n)
	}
}

// waitFor waits until want arrives.
func waitFor(t *testing.T, from <-chan string, want string) {
	t.Helper()
	for got := ""; got != want; {
		select {
		case got = <-from:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s did not come", want)
		}
	}
}
