package httpfetch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// A countingServer serves pages for all hosts and counts its connections.
type countingServer struct {
	*httptest.Server
	address string
	header  http.Header // of every response
	opened  atomic.Int32
	closed  chan struct{} // receives for each connection that is closed

	mu         sync.Mutex            // guards conns
	conns      map[net.Conn]struct{} // idle connections
	becameIdle *sync.Cond            // signals mu when a connection becomes idle
}

// newCountingServer starts a countingServer on address; with TLS if cfg is not nil.
func newCountingServer(t *testing.T, address string, cfg *tls.Config, header http.Header) *countingServer {
	t.Helper()
	s := &countingServer{header: header, closed: make(chan struct{}, 1000), conns: map[net.Conn]struct{}{}}
	s.becameIdle = sync.NewCond(&s.mu)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range s.header {
			w.Header()[name] = values
		}
		resumed := r.TLS != nil && r.TLS.DidResume
		fmt.Fprintf(w, "resumed: %v, %s", resumed, r.Proto)
	}))
	s.Listener.Close()
	s.Listener = testlisten.Listen(t, address)
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		switch state {
		case http.StateNew:
			s.opened.Add(1)
		case http.StateIdle:
			s.conns[c] = struct{}{}
			s.becameIdle.Signal()
		case http.StateClosed:
			s.closed <- struct{}{}
		}
	}
	if cfg == nil {
		s.Start()
	} else {
		s.TLS = cfg
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	s.address = s.Listener.Addr().String()
	return s
}

// closeIdle closes the idle connections, as a server does whose timeout has passed. It waits until there is
// one: a visit may end before the server sees that.
func (s *countingServer) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.conns) == 0 {
		s.becameIdle.Wait()
	}
	for c := range s.conns {
		c.Close()
	}
}

// fetchBody makes a visit to url and returns the body.
func fetchBody(t *testing.T, f *httpfetch.Fetcher, url string) string {
	t.Helper()
	res, err := f.Fetch(t.Context(), pageTicket(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Body)
}

// checkOpened fails the test unless the server has seen want connections.
func (s *countingServer) checkOpened(t *testing.T, after string, want int32) {
	t.Helper()
	if n := s.opened.Load(); n != want {
		t.Errorf("%s: the server saw %d connections, want %d", after, n, want)
	}
}

// waitLen waits until i holds want connections.
func waitLen(t *testing.T, i *httpfetch.IdleConns, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); i.Len() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are kept, want %d", i.Len(), want)
		}
	}
}

// TestTLSSessionsAreResumed: a second connection to a host resumes the TLS session of the first, for
// each version of TLS and also if exchanges are captured. Another Fetcher, another host and a Fetcher
// without sessions make full handshakes.
func TestTLSSessionsAreResumed(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cfg := ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		cfg.MinVersion, cfg.MaxVersion = version, version
		s := newCountingServer(t, "127.0.0.1:0", cfg, http.Header{"Connection": {"close"}})
		for _, capture := range []bool{false, true} {
			config := connectingTo(t, hostileConfig, s.address)
			config.CaptureExchanges = capture
			first := httpfetch.NewWithNetwork(config, nil, ca.certPool())
			for i, want := range []string{"resumed: false", "resumed: true", "resumed: true"} {
				if got := fetchBody(t, first, "https://site.test/"); !strings.HasPrefix(got, want) {
					t.Errorf("%#x, visit %d: %s, want %s", version, i+1, got, want)
				}
			}
			// A session lasts as long as the host is visited.
			first.SetNextVisit("site.test", time.Now().Add(time.Hour))
			for _, want := range []string{"resumed: true", "resumed: false"} {
				if got := fetchBody(t, first, "https://site.test/"); !strings.HasPrefix(got, want) {
					t.Errorf("%#x, before and after the last visit: %s, want %s", version, got, want)
				}
				first.SetNextVisit("site.test", time.Time{})
			}
			// Sessions belong to one Fetcher, and may be off.
			second := httpfetch.NewWithNetwork(config, nil, ca.certPool())
			if got := fetchBody(t, second, "https://site.test/"); !strings.HasPrefix(got, "resumed: false") {
				t.Errorf("%#x: a session of another Fetcher is used", version)
			}
			config.MaxTLSSessions = -1
			none := httpfetch.NewWithNetwork(config, nil, ca.certPool())
			for range 2 {
				if got := fetchBody(t, none, "https://site.test/"); !strings.HasPrefix(got, "resumed: false") {
					t.Errorf("%#x: a session is resumed without MaxTLSSessions", version)
				}
			}
		}
	}
}

// TestResumedSessionIsOfAHost: a session is not resumed for another host, even on the same address, whose
// certificate is then checked.
func TestResumedSessionIsOfAHost(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cfg := ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	s := newCountingServer(t, "127.0.0.1:0", cfg, http.Header{"Connection": {"close"}})
	f := httpfetch.NewWithNetwork(connectingTo(t, hostileConfig, s.address), nil, ca.certPool())
	fetchBody(t, f, "https://site.test/")
	_, err := f.Fetch(t.Context(), pageTicket(t, "https://other.test/"))
	if err == nil || !strings.Contains(err.Error(), "the server's certificate is for another host") {
		t.Errorf("%v, want the error of another host's certificate", err)
	}
}

// TestHTTP2IsOffered: HTTP/2 is offered if Config.HTTP2 is set, unless exchanges are captured.
func TestHTTP2IsOffered(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, tt := range []struct {
		http2, capture bool
		want           string
	}{{false, false, "HTTP/1.1"}, {true, false, "HTTP/2.0"}, {true, true, "HTTP/1.1"}} {
		tlsConfig := ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		tlsConfig.NextProtos = []string{"h2", "http/1.1"}
		s := newCountingServer(t, "127.0.0.1:0", tlsConfig, nil)
		cfg := connectingTo(t, hostileConfig, s.address)
		cfg.HTTP2, cfg.CaptureExchanges = tt.http2, tt.capture
		f := httpfetch.NewWithNetwork(cfg, nil, ca.certPool())
		for range 2 {
			if got := fetchBody(t, f, "https://site.test/"); !strings.HasSuffix(got, tt.want) {
				t.Errorf("%+v: %s", tt, got)
			}
		}
		s.checkOpened(t, fmt.Sprintf("%+v", tt), 1)
	}
}

// TestConnectionsFollowNextVisit: a connection is kept if the next visit comes before the server is
// likely to close it. It is closed at once if there is no next visit, or if that comes too late.
func TestConnectionsFollowNextVisit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		keepAlive string
		rest      time.Duration // until the next visit; 0: there is none
		kept      bool
	}{
		{"soon", "", time.Second, true},
		{"within the timeout of the header", "timeout=60", 50 * time.Second, true},
		{"beyond the timeout of the header", "timeout=60", 55 * time.Second, false},
		{"never", "", 0, false},
		{"in an hour", "", time.Hour, false},
	} {
		s := newCountingServer(t, "127.0.0.1:0", nil, http.Header{"Keep-Alive": {tt.keepAlive}})
		cfg := connectingTo(t, hostileConfig, s.address)
		cfg.IdleConns = httpfetch.NewIdleConns(10)
		f := newFetcher(t, cfg)
		fetchBody(t, f, "http://site.test/")
		var due time.Time
		if tt.rest > 0 {
			due = time.Now().Add(tt.rest)
		}
		f.SetNextVisit("site.test", due)
		f.SetNextVisit("unknown.test", due)
		if kept := cfg.IdleConns.Len() == 1; kept != tt.kept {
			t.Errorf("%s: the connection is kept: %v", tt.name, kept)
		}
		if !tt.kept {
			waitClosed(t, s.closed)
		}
	}
}

// TestExpiryOfConnections: without a next visit, a connection is closed after MaxIdleTime.
func TestExpiryOfConnections(t *testing.T) {
	t.Parallel()
	s := newCountingServer(t, "127.0.0.1:0", nil, nil)
	cfg := connectingTo(t, hostileConfig, s.address)
	cfg.MaxIdleTime = time.Millisecond
	fetchBody(t, newFetcher(t, cfg), "http://site.test/")
	waitClosed(t, s.closed)
	cfg.MaxIdleTime = -1
	fetchBody(t, newFetcher(t, cfg), "http://site.test/")
	waitClosed(t, s.closed)
}

// TestIdleConnsLimit: beyond the limit, which Fetchers share, the host that is visited last loses its
// connection.
func TestIdleConnsLimit(t *testing.T) {
	t.Parallel()
	s := newCountingServer(t, "127.0.0.1:0", nil, nil)
	cfg := connectingTo(t, hostileConfig, s.address)
	cfg.IdleConns = httpfetch.NewIdleConns(2)
	first, second := newFetcher(t, cfg), newFetcher(t, cfg)
	now := time.Now()
	visit := func(f *httpfetch.Fetcher, host string, rest time.Duration) {
		fetchBody(t, f, "http://"+host+"/")
		f.SetNextVisit(host, now.Add(rest))
	}
	visit(first, "a.test", 10*time.Second)
	visit(second, "b.test", 30*time.Second)
	visit(first, "c.test", 20*time.Second) // b is visited last
	waitClosed(t, s.closed)
	s.checkOpened(t, "three hosts", 3)
	visit(first, "a.test", 10*time.Second)
	visit(first, "c.test", 20*time.Second)
	s.checkOpened(t, "the hosts that are visited earlier", 3)
	visit(second, "b.test", 30*time.Second) // is again the last
	waitClosed(t, s.closed)
	s.checkOpened(t, "the host that is visited last", 4)
	visit(first, "c.test", 20*time.Second)
	s.checkOpened(t, "the visit before the last", 4)
	if n := cfg.IdleConns.Len(); n != 2 {
		t.Errorf("%d connections are kept, want 2", n)
	}
	none := connectingTo(t, hostileConfig, s.address)
	none.IdleConns = httpfetch.NewIdleConns(0)
	fetchBody(t, newFetcher(t, none), "http://a.test/")
	waitClosed(t, s.closed)
}

// TestServerTimeoutIsLearned: after a server has closed two idle connections, a connection is not kept
// for a later visit, except one time in 16.
func TestServerTimeoutIsLearned(t *testing.T) {
	t.Parallel()
	s := newCountingServer(t, "127.0.0.1:0", nil, nil)
	cfg := connectingTo(t, hostileConfig, s.address)
	cfg.IdleConns = httpfetch.NewIdleConns(10)
	f := newFetcher(t, cfg)
	isKept := func() bool {
		fetchBody(t, f, "http://site.test/")
		f.SetNextVisit("site.test", time.Now().Add(80*time.Second))
		return cfg.IdleConns.Len() == 1
	}
	for range 2 {
		if !isKept() {
			t.Fatal("the connection is not kept")
		}
		s.closeIdle() // the next visit finds it closed
	}
	const interval = 16
	for i := 1; i <= interval; i++ {
		if kept := isKept(); kept != (i == interval) {
			t.Errorf("visit %d: the connection is kept: %v", i, kept)
		}
	}
}

// TestCloseConnections: the connections to chosen hosts are closed at once.
func TestCloseConnections(t *testing.T) {
	t.Parallel()
	s := newCountingServer(t, "127.0.0.1:0", nil, nil)
	f := newFetcher(t, connectingTo(t, hostileConfig, s.address))
	fetchBody(t, f, "http://a.test/")
	fetchBody(t, f, "http://b.test/")
	f.CloseConnections(func(host string) bool { return host == "a.test" })
	waitClosed(t, s.closed)
	fetchBody(t, f, "http://b.test/")
	s.checkOpened(t, "b.test was visited again", 2)
	fetchBody(t, f, "http://a.test/")
	s.checkOpened(t, "a.test was visited again", 3)
}

// TestKeptConnectionFollowsAddress: when a host has moved to another address, the next visit goes there,
// without a failure.
func TestKeptConnectionFollowsAddress(t *testing.T) {
	t.Parallel()
	first := newCountingServer(t, "127.0.0.1:0", nil, nil)
	_, port, _ := net.SplitHostPort(first.address)
	second := newCountingServer(t, "127.0.0.2:"+port, nil, nil)
	var moved atomic.Bool
	_, resolver := newCachingResolver(t, dnsZone{"site.test": func(int) []string {
		if moved.Load() {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	}})
	cfg := hostileConfig
	cfg.Resolver, cfg.DNSTTL = resolver, -1
	f := newFetcher(t, cfg)
	url := "http://site.test:" + port + "/"
	fetchBody(t, f, url)
	fetchBody(t, f, url)
	first.checkOpened(t, "two visits", 1)
	moved.Store(true)
	fetchBody(t, f, url)
	fetchBody(t, f, url)
	first.checkOpened(t, "the move", 1)
	second.checkOpened(t, "the move", 1)
	waitClosed(t, first.closed)
}

// TestKeptConnectionFollowsGuard: an address that is refused now gets no visit over a connection from
// before.
func TestKeptConnectionFollowsGuard(t *testing.T) {
	t.Parallel()
	s := newCountingServer(t, "127.0.0.1:0", nil, nil)
	var refused atomic.Bool
	f := httpfetch.NewWithNetwork(connectingTo(t, hostileConfig, s.address), func(netip.Addr) string {
		if refused.Load() {
			return "a refused"
		}
		return ""
	}, nil)
	fetchBody(t, f, "http://site.test/")
	refused.Store(true)
	_, err := f.Fetch(t.Context(), pageTicket(t, "http://site.test/"))
	if !errors.Is(err, decorum.Forbidden) {
		t.Errorf("%v, want Forbidden", err)
	}
	waitClosed(t, s.closed)
	s.checkOpened(t, "the refusal", 1)
}

// TestKeptConnectionNeedsLookup: when the lookup of a host has expired and fails, no visit uses the
// connection, which may lead to a former address. An address that cannot be reached is not reported as
// the end of the connection from before.
func TestKeptConnectionNeedsLookup(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"lookup", "connection"} {
		s := newCountingServer(t, "127.0.0.1:0", nil, nil)
		var broken atomic.Bool
		_, resolver := newCachingResolver(t, dnsZone{"site.test": func(int) []string {
			if broken.Load() {
				return []string{"127.0.0.9"}
			}
			return []string{"127.0.0.1"}
		}})
		if dial := resolver.Dial; fault == "lookup" {
			resolver.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if broken.Load() {
					return nil, errors.New("the name server is down")
				}
				return dial(ctx, network, address)
			}
		}
		cfg := hostileConfig
		cfg.Resolver, cfg.DNSTTL = resolver, -1
		f := newFetcher(t, cfg)
		_, port, _ := net.SplitHostPort(s.address)
		url := "http://site.test:" + port + "/"
		fetchBody(t, f, url)
		broken.Store(true)
		_, err := f.Fetch(t.Context(), pageTicket(t, url))
		if err == nil || errors.As(err, new(*crawler.StaleConnError)) {
			t.Errorf("%s: %v, want the error of a new connection", fault, err)
		}
		waitClosed(t, s.closed)
		s.checkOpened(t, fault, 1)
	}
}

// TestTunnelFollowsAddress: when the address of a host has changed, the next visit opens another tunnel,
// through each kind of proxy. The tunnels of a host that is not visited again are closed.
func TestTunnelFollowsAddress(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cfg := ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		site := newCountingServer(t, "127.0.0.2:0", cfg, nil)
		_, port, _ := net.SplitHostPort(site.address)
		var moved atomic.Bool
		_, resolver := newCachingResolver(t, dnsZone{"site.test": func(int) []string {
			if moved.Load() {
				return []string{"127.0.0.3"}
			}
			return []string{"127.0.0.2"}
		}})
		roots := ca.certPool()
		zone := map[string]string{"site.test": "127.0.0.2", "127.0.0.3": "127.0.0.2"} // all lead to one server
		var p *proxyServer
		if strings.HasPrefix(scheme, "socks") {
			p = newSOCKSProxy(t, scheme, zone)
		} else {
			var s *httptest.Server
			if p, s = newHTTPProxy(t, zone); scheme == "https" {
				s.StartTLS()
				roots.AddCert(s.Certificate())
			} else {
				s.Start()
			}
			p.URL = s.URL
		}
		idle := httpfetch.NewIdleConns(10)
		config := httpfetch.Config{UserAgent: userAgent, Resolver: resolver, DNSTTL: -1, Proxy: p.URL, IdleConns: idle}
		f := httpfetch.NewWithNetwork(config, func(netip.Addr) string { return "" }, roots)
		url := "https://site.test:" + port + "/"
		for range 2 {
			fetchBody(t, f, url)
		}
		if n := len(p.targets()); n != 1 {
			t.Errorf("%s: %d tunnels for two visits, want 1", scheme, n)
		}
		moved.Store(true)
		for range 2 {
			fetchBody(t, f, url)
		}
		if n := len(p.targets()); n != 2 {
			t.Errorf("%s: %d tunnels after the move, want 2", scheme, n)
		}
		waitLen(t, idle, 1)
		f.SetNextVisit("site.test", time.Time{})
		waitLen(t, idle, 0)
		for range 2 {
			waitClosed(t, site.closed)
		}
	}
}

// TestIdleTimeOfOneVisitAtATime: a server that closes connections while the host has several visits under way
// says nothing about how long it keeps them idle.
func TestIdleTimeOfOneVisitAtATime(t *testing.T) {
	t.Parallel()
	arrived, finish := make(chan struct{}), make(chan struct{})
	s := serveOn(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			close(arrived)
			<-finish
		case "/close":
			panic(http.ErrAbortHandler)
		}
	}))
	cfg := connectingTo(t, hostileConfig, s)
	cfg.IdleConns = httpfetch.NewIdleConns(10)
	f := newFetcher(t, cfg)
	var visits sync.WaitGroup
	visits.Go(func() {
		if _, err := f.Fetch(t.Context(), pageTicket(t, "http://site.test/slow")); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	for range 2 {
		fetchBody(t, f, "http://site.test/")
		_, err := f.Fetch(t.Context(), pageTicket(t, "http://site.test/close"))
		if !errors.As(err, new(*crawler.StaleConnError)) {
			t.Errorf("%v, want the end of a kept-open connection", err)
		}
	}
	close(finish)
	visits.Wait()
	f.SetNextVisit("site.test", time.Now().Add(time.Minute))
	if n := cfg.IdleConns.Len(); n != 1 {
		t.Errorf("%d connections are kept, want 1", n)
	}
}
