package httpfetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testlisten"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// A meteredServer is an https server that counts what a crawl costs it, at its own end of the
// connections.
type meteredServer struct {
	*httptest.Server
	sent, received atomic.Int64 // bytes that the server read and wrote, without the end of connections
	seen           func() crawler.HostTraffic
	onPage         func(*http.Request) // called before a page is answered; nil: nothing

	mu    sync.Mutex            // guards conns
	conns map[*meteredConn]bool // true: idle
}

// A meteredConn is a connection of a meteredServer.
type meteredConn struct {
	net.Conn
	server *meteredServer
	ending atomic.Bool // the server is closing the connection
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.server.sent.Add(int64(n))
	return n, err
}

func (c *meteredConn) Write(b []byte) (int, error) {
	if !c.ending.Load() {
		c.server.received.Add(int64(len(b)))
	}
	return c.Conn.Write(b)
}

// A meteredListener makes meteredConns.
type meteredListener struct {
	net.Listener
	server *meteredServer
}

func (l meteredListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: c, server: l.server}, nil
}

// newMeteredServer starts a server whose pages are gzipped and have a validator.
func newMeteredServer(t *testing.T, cfg *tls.Config) *meteredServer {
	t.Helper()
	s := &meteredServer{conns: map[*meteredConn]bool{}}
	var requests, connections, full, resumed, notModified, decoded, savedByGzip, savedBy304 atomic.Int64
	page := []byte(strings.Repeat("all work and no play. ", 500) + `<a href="/a">a</a><a href="/b">b</a>`)
	var encoded bytes.Buffer
	zw := gzip.NewWriter(&encoded)
	zw.Write(page)
	zw.Close()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if s.onPage != nil && r.URL.Path != "/robots.txt" {
			s.onPage(r)
		}
		switch {
		case r.URL.Path == "/robots.txt":
			w.Header().Set("Content-Length", "0")
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
			notModified.Add(1)
			savedBy304.Add(int64(encoded.Len()))
		default:
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", strconv.Itoa(encoded.Len()))
			w.Header().Set("ETag", `"1"`)
			w.Write(encoded.Bytes())
			decoded.Add(int64(len(page)))
			savedByGzip.Add(int64(len(page) - encoded.Len()))
		}
	}))
	s.Listener.Close()
	s.Listener = meteredListener{testlisten.Listen(t, "127.0.0.1:0"), s}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		metered := c.(*tls.Conn).NetConn().(*meteredConn)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			delete(s.conns, metered)
		default:
			_, known := s.conns[metered]
			if !known && c.(*tls.Conn).ConnectionState().DidResume {
				resumed.Add(1)
			} else if !known {
				full.Add(1)
			}
			s.conns[metered] = state == http.StateIdle
		}
	}
	s.TLS = cfg
	s.StartTLS()
	t.Cleanup(s.Close)
	s.seen = func() crawler.HostTraffic {
		return crawler.HostTraffic{Requests: requests.Load(), Bytes: decoded.Load(),
			WireBytesSent: s.sent.Load(), WireBytesReceived: s.received.Load(), Connections: connections.Load(),
			FullHandshakes: full.Load(), ResumedHandshakes: resumed.Load(), NotModified: notModified.Load(),
			SavedByCompression: savedByGzip.Load(), SavedByRevalidation: savedBy304.Load()}
	}
	return s
}

// siteURL returns the URL of the first page of the server.
func (s *meteredServer) siteURL() string {
	return fmt.Sprintf("https://site.test:%d/", s.Listener.Addr().(*net.TCPAddr).Port)
}

// closeIdle waits until the server has an idle connection, and closes it.
func (s *meteredServer) closeIdle(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		for c, idle := range s.conns {
			if idle {
				c.ending.Store(true)
				c.Conn.Close()
				s.mu.Unlock()
				return
			}
		}
		s.mu.Unlock()
	}
	t.Error("the server has no idle connection")
}

// TestHostTraffic: what a crawl counts as the cost of a host is what the server counts, over two runs with
// a closed connection between them: bytes, connections, handshakes, 304s, and bytes saved.
func TestHostTraffic(t *testing.T) {
	t.Parallel()
	zone := map[string]string{"site.test": "127.0.0.1"}
	_, httpProxy := newHTTPProxy(t, zone)
	httpProxy.Start()
	for name, change := range map[string]func(*httpfetch.Config){
		"direct":                func(*httpfetch.Config) {},
		"captured":              func(cfg *httpfetch.Config) { cfg.CaptureExchanges = true },
		"through a tunnel":      func(cfg *httpfetch.Config) { cfg.Proxy = httpProxy.URL },
		"through a SOCKS proxy": func(cfg *httpfetch.Config) { cfg.Proxy = newSOCKSProxy(t, "socks5h", zone).URL },
	} {
		ca := newAuthority(t)
		now := time.Now()
		s := newMeteredServer(t, ca.newServerConfig(t, "site.test", now.Add(-time.Hour), now.Add(time.Hour)))
		cfg := connectingTo(t, hostileConfig, s.Listener.Addr().String())
		cfg.IdleConns = httpfetch.NewIdleConns(10)
		change(&cfg)
		fetcher := httpfetch.NewWithNetwork(cfg, nil, ca.certPool())
		c := newCrawl(t, fetcher, s.siteURL())
		store := c.Frontier.Store()
		for run := range 2 {
			// The second crawl goes on from the state of the first.
			if run == 1 {
				s.closeIdle(t)
				if name == "through a tunnel" { // net/http notes it in the background
					waitLen(t, cfg.IdleConns, 0)
				}
				next := newCrawl(t, fetcher)
				next.Frontier, next.Gate = c.Frontier, c.Gate
				c = next
			}
			c.Settings.Revisit = frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: time.Millisecond}
			c.Settings.MaxPages = 4
			c.Handler = c.LinksToFollow
			if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrPages) {
				t.Fatal(err)
			}
		}
		// Compare the stored counts of the host, and those of the second run, with the server's.
		got, want := storedTraffic(t, store, s.siteURL()), s.seen()
		if got != want {
			t.Errorf("%s: counted\n%+v, the server\n%+v", name, got, want)
		}
		if want.FullHandshakes != 1 || want.ResumedHandshakes != 1 || want.NotModified == 0 {
			t.Errorf("the test has lost its point: the server saw %+v", want)
		}
		if second := c.Stats(); second.Requests != 4 || second.ResumedHandshakes != 1 ||
			second.WireBytesReceived == 0 || second.WireBytesReceived >= want.WireBytesReceived {
			t.Errorf("second run: %+v", second.HostTraffic)
		}
	}
}

// TestHostTrafficOverHTTP2: visits that share a connection at the same time count each of its bytes once. The
// server counts the same, but for a few frames that belong to no visit.
func TestHostTrafficOverHTTP2(t *testing.T) {
	t.Parallel()
	const slots, maxOtherFrames = 4, 200
	ca, now := newAuthority(t), time.Now()
	serverConfig := ca.newServerConfig(t, "site.test", now.Add(-time.Hour), now.Add(time.Hour))
	serverConfig.NextProtos = []string{"h2"}
	s := newMeteredServer(t, serverConfig)
	pair := make(chan struct{})
	s.onPage = func(r *http.Request) { // each request waits for another one
		if r.ProtoMajor != 2 {
			t.Errorf("the request came over %s", r.Proto)
		}
		select {
		case pair <- struct{}{}:
		case <-pair:
		case <-r.Context().Done():
			t.Error("a visit was alone")
		}
	}
	cfg := connectingTo(t, hostileConfig, s.Listener.Addr().String())
	cfg.HTTP2 = true
	var pages []string
	for i := range 10 * slots {
		pages = append(pages, fmt.Sprintf("%s%d", s.siteURL(), i))
	}
	c := newCrawl(t, httpfetch.NewWithNetwork(cfg, nil, ca.certPool()), pages...)
	c.Policy = politeness.Policy{Delay: time.Millisecond, Concurrency: slots}
	c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
	must(t, c.Run(t.Context()))
	got, want := storedTraffic(t, c.Frontier.Store(), s.siteURL()), s.seen()
	if max(got.WireBytesSent-want.WireBytesSent, want.WireBytesSent-got.WireBytesSent,
		got.WireBytesReceived-want.WireBytesReceived, want.WireBytesReceived-got.WireBytesReceived) <= maxOtherFrames {
		got.WireBytesSent, got.WireBytesReceived = want.WireBytesSent, want.WireBytesReceived
	}
	if got != want || want.Connections != 1 {
		t.Errorf("counted\n%+v, the server\n%+v", got, want)
	}
}

// storedTraffic returns the traffic of the host of page in store.
func storedTraffic(t *testing.T, store storage.Store, page string) crawler.HostTraffic {
	t.Helper()
	u, err := decorum.ParseURL(page)
	must(t, err)
	o, _, err := store.(storage.Inspector).Origin(t.Context(), u.Origin())
	must(t, err)
	return crawler.DecodeHostStats(o.HostState.EncodedStats).HostTraffic
}

// TestTrafficOfFailedHandshake: a visit whose TLS handshake fails has the bytes of the handshake, but no
// connection.
func TestTrafficOfFailedHandshake(t *testing.T) {
	t.Parallel()
	now := time.Now()
	cfg := newAuthority(t).newServerConfig(t, "site.test", now.Add(-time.Hour), now.Add(time.Hour))
	s := newMeteredServer(t, cfg)
	fetcher := httpfetch.NewWithNetwork(connectingTo(t, hostileConfig, s.Listener.Addr().String()), nil,
		newAuthority(t).certPool())
	c := newCrawl(t, fetcher, "https://site.test/")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var traffic crawler.HostTraffic
	c.Hooks.Visited = func(v *crawler.Visit) {
		traffic = v.Traffic()
		cancel()
	}
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if traffic.WireBytesSent == 0 || traffic.WireBytesReceived == 0 || traffic.Connections != 0 {
		t.Errorf("counted %+v", traffic)
	}
}
