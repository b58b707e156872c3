package httpfetch_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// A closingServer answers requests over plain connections, which it keeps open, except that closeAt
// ends the connection at request number failing of all.
type closingServer struct {
	failing int
	closeAt func(*net.TCPConn)

	mu       sync.Mutex // guards requests
	requests []string   // paths, in the order of arrival
}

func (s *closingServer) serveConn(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, req.URL.Path)
		n := len(s.requests)
		s.mu.Unlock()
		if n == s.failing {
			s.closeAt(c.(*net.TCPConn))
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// count returns how many requests for path arrived.
func (s *closingServer) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.requests {
		if p == path {
			n++
		}
	}
	return n
}

// TestServerClosesConnection: if the server closes a kept-open connection before the first byte of the
// answer, the visit is repeated on a new connection and not charged; if the connection is new, or the
// answer has begun, it is a failure. Request 1 is for robots.txt, request 2 for the page.
func TestServerClosesConnection(t *testing.T) {
	write := func(s string) func(*net.TCPConn) { return func(c *net.TCPConn) { io.WriteString(c, s) } }
	reset := func(c *net.TCPConn) { must(t, c.SetLinger(0)) }
	for _, tt := range []struct {
		name       string
		closeAt    func(*net.TCPConn)
		staleConns int64 // visits that are repeated
		errors     int64 // visits that are charged
	}{
		{"after it read the request", func(*net.TCPConn) {}, 1, 0},
		{"with a reset", reset, 1, 0},
		{"in the status line", write("HTTP/1"), 0, 1},
		{"in the header", write("HTTP/1.1 200 OK\r\nContent-Le"), 0, 1},
		{"after an interim answer", write("HTTP/1.1 103 Early Hints\r\n\r\n"), 0, 1},
		{"in the body", write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := &closingServer{failing: 2, closeAt: tt.closeAt}
			l := testlisten.Listen(t, "127.0.0.1:0")
			go testlisten.Serve(l, server.serveConn)
			fetcher := newFetcher(t, connectingTo(t, httpfetch.Config{AllowPrivate: true}, l.Addr().String()))
			crawl := newCrawl(t, fetcher, "http://site.test/page")
			crawl.Settings.MaxAttempts = 1
			must(t, crawl.Run(t.Context()))
			stats := crawl.Stats()
			if stats.StaleConns != tt.staleConns || stats.Errors != tt.errors {
				t.Errorf("%d visits are repeated and %d charged, want %d and %d",
					stats.StaleConns, stats.Errors, tt.staleConns, tt.errors)
			}
			if got, want := server.count("/page"), int(1+tt.staleConns); got != want {
				t.Errorf("the server saw %d requests for the page, want %d", got, want)
			}
			if want := 1 - tt.errors; stats.Pages != want {
				t.Errorf("%d pages are answered, want %d", stats.Pages, want)
			}
		})
	}
}

// TestServerClosesNewConnection: the first request of a connection that the server closes is a failure.
func TestServerClosesNewConnection(t *testing.T) {
	server := &closingServer{failing: 1, closeAt: func(*net.TCPConn) {}}
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, server.serveConn)
	fetcher := newFetcher(t, connectingTo(t, httpfetch.Config{AllowPrivate: true}, l.Addr().String()))
	_, err := fetcher.Fetch(t.Context(), pageTicket(t, "http://site.test/page"))
	if err == nil || isStale(err) {
		t.Errorf("%v, want an error that is charged to the host", err)
	}
}

// TestServerAlwaysClosesKeptConnections: a server that closes each connection at its second request
// answers every page. After two such visits the crawl opens a connection for each.
func TestServerAlwaysClosesKeptConnections(t *testing.T) {
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, func(c net.Conn) {
		(&closingServer{failing: 2, closeAt: func(*net.TCPConn) {}}).serveConn(c)
	})
	crawl := newCrawl(t, newFetcher(t, connectingTo(t, httpfetch.Config{AllowPrivate: true}, l.Addr().String())),
		"http://site.test/1", "http://site.test/2", "http://site.test/3", "http://site.test/4", "http://site.test/5")
	must(t, crawl.Run(t.Context()))
	if stats := crawl.Stats(); stats.Pages != 5 || stats.Errors != 0 || stats.StaleConns != 2 {
		t.Errorf("%d pages, %d errors, %d repeated visits; want 5, 0, 2", stats.Pages, stats.Errors, stats.StaleConns)
	}
}

// TestHTTP2StaleConnections: a stream that the server did not process, because it went away or gave
// the connection up, is marked as stale on a kept-open connection. A plea for fewer requests is not.
func TestHTTP2StaleConnections(t *testing.T) {
	ca := newAuthority(t)
	for _, tt := range []struct {
		name      string
		misbehave func(f *http2.Framer, c net.Conn, stream uint32)
		want      bool
	}{
		{"GOAWAY", func(f *http2.Framer, _ net.Conn, _ uint32) { _ = f.WriteGoAway(0, http2.ErrCodeNo, nil) }, true},
		{"gone", func(_ *http2.Framer, c net.Conn, _ uint32) { c.Close() }, true},
		{"REFUSED_STREAM", resetStream(http2.ErrCodeRefusedStream), true},
		{"INTERNAL_ERROR", resetStream(http2.ErrCodeInternal), false},
		{"GOAWAY with ENHANCE_YOUR_CALM", func(f *http2.Framer, c net.Conn, stream uint32) {
			_ = f.WriteGoAway(stream, http2.ErrCodeEnhanceYourCalm, nil)
			c.Close()
		}, false},
		{"gone after the header", func(f *http2.Framer, c net.Conn, stream uint32) {
			writeH2Response(f, stream, false)
			c.Close()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &h2Server{misbehave: tt.misbehave}
			address := s.start(t, ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour),
				time.Now().Add(time.Hour)))
			config := withShortTimeouts(offeringHTTP2(hostileConfig))
			fetcher := httpfetch.NewWithNetwork(connectingTo(t, config, address), nil,
				ca.certPool())
			if _, err := fetcher.Fetch(t.Context(), pageTicket(t, "https://site.test/")); err != nil {
				t.Fatal(err)
			}
			_, err := fetcher.Fetch(t.Context(), pageTicket(t, "https://site.test/"))
			if err == nil || isStale(err) != tt.want {
				t.Errorf("the error is %v; want one that is marked as stale: %v", err, tt.want)
			}
		})
	}
}

// isStale reports whether err says that the server closed a kept-open connection.
func isStale(err error) bool {
	var stale *crawler.StaleConnError
	return errors.As(err, &stale)
}
