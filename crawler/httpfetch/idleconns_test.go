package httpfetch_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestConnectionsAreReused: a host has as many connections as concurrent visits, no matter how many
// visits follow, and CloseIdleConnections closes them all.
func TestConnectionsAreReused(t *testing.T) {
	const concurrent, rounds = 4, 10
	var arrived sync.WaitGroup // each request waits for the others of its round
	var opened atomic.Int32
	closed := make(chan struct{}, concurrent)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Done()
		arrived.Wait()
		io.WriteString(w, "<h1>Hello</h1>")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	f, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, AllowPrivate: true})
	must(t, err)
	for range rounds {
		arrived.Add(concurrent)
		var visits sync.WaitGroup
		for range concurrent {
			ticket := pageTicket(t, s.URL+"/page")
			visits.Go(func() {
				if _, err := f.Fetch(t.Context(), ticket); err != nil {
					t.Error(err)
				}
			})
		}
		visits.Wait()
	}
	if n := opened.Load(); n != concurrent {
		t.Fatalf("%d connections were opened, want %d", n, concurrent)
	}
	f.CloseIdleConnections()
	for range concurrent {
		waitClosed(t, closed)
	}
}

// waitClosed waits until a connection is closed. It fails the test if the connection stays open.
func waitClosed(t *testing.T, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("a connection is still open")
	}
}
