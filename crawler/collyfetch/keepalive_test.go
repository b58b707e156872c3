package collyfetch_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestCrawlClosesItsConnections: Close closes every connection of the crawl.
func TestCrawlClosesItsConnections(t *testing.T) {
	closed := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	o := quietOptions(nil)
	o.Policy.Delay, o.FetchConfig = time.Millisecond, httpfetch.Config{AllowPrivate: true}
	crawl, err := collyfetch.Wrap(colly.NewCollector(), o)
	must(t, err)
	must(t, crawl.Visit(s.URL+"/"))
	must(t, crawl.Close())
	waitClosed(t, closed)
}

// waitClosed waits until a connection is closed. It fails the test if the connection stays open.
func waitClosed(t *testing.T, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("a connection is open still")
	}
}
