package httpfetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/http1"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
)

// A crawlDialer makes the connections of a crawl and checks the address of each.
type crawlDialer struct {
	cfg            Config
	connectToRules []dialrules.ConnectTo
	proxy          *url.URL // nil: connections are direct
	resolver       *cachingResolver
	netDialer      net.Dialer
	// blockedAddrKind returns the kind of an address that no visit may connect to, with its
	// article ("a loopback"), or "" if a visit may connect to the address.
	blockedAddrKind func(netip.Addr) string
	rootCAs         *x509.CertPool // trusted certificate authorities; nil: the system's
	// tlsSessions are the TLS sessions that a connection can resume; nil if none is resumed. They are kept in
	// memory and belong to this Fetcher alone: a site could otherwise link the requests of two crawls, and
	// a session verified with one Fetcher's certificate authorities would count for another. crypto/tls
	// sends no early data (0-RTT) outside of QUIC.
	tlsSessions tls.ClientSessionCache
	// keeper decides how long connections are kept open; nil in tests whose visits it does not learn of.
	keeper *connKeeper
}

// newCrawlDialer returns the dialer for cfg. It returns an error if the proxy or a connect-to rule
// is malformed.
func newCrawlDialer(cfg Config) (*crawlDialer, error) {
	own := &ownAddrs{listAddrs: net.InterfaceAddrs}
	n := &crawlDialer{cfg: cfg, resolver: newCachingResolver(cfg.Resolver, cfg.DNSTTL),
		blockedAddrKind: own.blockedAddrKind, rootCAs: cfg.RootCAs,
		keeper: newConnKeeper(cfg.IdleConns, cfg.MaxIdleTime)}
	if cfg.MaxTLSSessions >= 0 {
		n.tlsSessions = tls.NewLRUClientSessionCache(cfg.MaxTLSSessions)
	}
	var err error
	if n.connectToRules, err = dialrules.ParseConnectToRules(cfg.ConnectToRules); err != nil {
		return nil, err
	}
	if cfg.Proxy != "" {
		if n.proxy, err = dialrules.ParseProxy(cfg.Proxy); err != nil {
			return nil, err
		}
	}
	if cfg.AllowPrivate {
		n.blockedAddrKind = func(netip.Addr) string { return "" }
	}
	n.netDialer = net.Dialer{KeepAlive: 30 * time.Second,
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			return n.checkAndClaimServerAddr(ctx, address)
		}}
	return n, nil
}

// tlsHandshakeTimeout bounds a TLS handshake.
const tlsHandshakeTimeout = 10 * time.Second

// newTransport returns the transport of a crawl. From the socket outwards, its connections are a
// keptConn, a leaseCheckedConn, TLS for https, and a recordedConn if exchanges are captured.
//
// It is a transport of net/http only for what http1.Transport does not do: HTTP proxies, and HTTP/2 if
// Config.HTTP2 offers it. Most hosts get one visit at a time, which has no use for several streams on one
// connection; and with HTTP/2 an idle connection takes about twice as much memory.
func newTransport(n *crawlDialer) http.RoundTripper {
	offersHTTP2 := n.cfg.HTTP2 && !n.cfg.CaptureExchanges
	if offersHTTP2 || n.usesHTTPProxy() {
		return newNetHTTPTransport(n, offersHTTP2)
	}
	dial := n.dialHost
	if n.proxy != nil {
		dial = n.dialThroughSOCKSProxy
	}
	t := &http1.Transport{
		IsUsable:          isUsable,
		MaxHeaderBytes:    n.cfg.MaxHeaderBytes,
		DisableKeepAlives: n.keepsNoConns(),
	}
	// The lease is checked below TLS, where the bytes are written.
	t.Dial = checkLeases(n.dialFuncWithTimeout(dial))
	t.DialTLS = dialTLS(t.Dial, n.newTLSConfig())
	if n.cfg.CaptureExchanges {
		t.Dial, t.DialTLS = recordConns(t.Dial), recordConns(t.DialTLS)
	}
	return t
}

// connBufferBytes is the size of each of the two buffers that net/http keeps for every connection, also
// for an idle one. It holds the header of most requests and responses; bodies bypass the buffers.
const connBufferBytes = 2 << 10

// newNetHTTPTransport is newTransport on net/http.
func newNetHTTPTransport(n *crawlDialer, offersHTTP2 bool) *http.Transport {
	t := &http.Transport{
		DialContext:            n.dialHost,
		Protocols:              new(http.Protocols),
		DisableCompression:     true, // requestHeader offers more codings than gzip
		DisableKeepAlives:      n.keepsNoConns(),
		MaxIdleConnsPerHost:    math.MaxInt, // connKeeper closes what is not needed
		TLSClientConfig:        n.newTLSConfig(),
		TLSHandshakeTimeout:    tlsHandshakeTimeout,
		MaxResponseHeaderBytes: n.cfg.MaxHeaderBytes,
		ReadBufferSize:         connBufferBytes,
		WriteBufferSize:        connBufferBytes,
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(offersHTTP2)
	n.setTransportProxy(t)
	t.DialContext = checkLeases(n.dialFuncWithTimeout(t.DialContext))
	if n.cfg.CaptureExchanges {
		t.DialTLSContext = recordConns(dialTLS(t.DialContext, t.TLSClientConfig))
		t.DialContext = recordConns(t.DialContext)
	}
	return t
}

// keepsNoConns reports whether each connection is closed after one visit.
func (n *crawlDialer) keepsNoConns() bool {
	return n.cfg.MaxIdleTime < 0 || n.cfg.IdleConns.Limit() == 0
}

// newTLSConfig returns the configuration of TLS for connections to hosts.
func (n *crawlDialer) newTLSConfig() *tls.Config {
	cfg := &tls.Config{RootCAs: n.rootCAs, ClientSessionCache: n.tlsSessions}
	if n.cfg.NoPostQuantum {
		cfg.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}
	}
	return cfg
}

// dialTLS returns a dialFunc that adds TLS with cfg, for HTTP/1.1, to the connections of dial.
func dialTLS(dial dialFunc, cfg *tls.Config) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, tlsHandshakeTimeout,
			timeoutError{"TLS handshake", tlsHandshakeTimeout})
		defer cancel()
		cfg := cfg.Clone()
		cfg.ServerName, cfg.NextProtos = host, []string{"http/1.1"}
		secure := tls.Client(c, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = c.Close() // if ctx has ended, it is closed already
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		return secure, nil
	}
}

// forgetTLSSession drops the TLS session of host, as Origin.Host returns it.
func (n *crawlDialer) forgetTLSSession(host string) {
	if n.tlsSessions == nil {
		return
	}
	serverName := strings.Trim(host, "[]") // as dialTLS has it
	// Put would add an entry for a host without a session, in place of another host's.
	if _, ok := n.tlsSessions.Get(serverName); ok {
		n.tlsSessions.Put(serverName, nil)
	}
}

// A dialFunc is the type of http.Transport.DialContext.
type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialFuncWithTimeout limits dial to the time of a visit: net/http lets a dial continue after the
// request that it was started for has ended.
func (n *crawlDialer) dialFuncWithTimeout(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// dialHost is dial for a connection that may be kept open for later visits to the host.
func (n *crawlDialer) dialHost(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, from, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return n.keep(ctx, conn, from), nil
}

// keep makes conn a keptConn of the host of the visit that it was dialled for. from is the lookup that gave
// its address; it is empty if conn leads to a proxy.
func (n *crawlDialer) keep(ctx context.Context, conn net.Conn, from lookupResult) net.Conn {
	p, _ := ctx.Value(roundTripContextKey{}).(*roundTrip)
	if p == nil || n.keeper == nil {
		return conn
	}
	var tunnelAddr netip.Addr
	if p.viaProxy { // otherwise the visit may be writing serverAddr: net/http may dial in the background
		tunnelAddr = p.serverAddr.Addr()
	}
	return n.keeper.add(conn, p.ticket.URL().Origin().Host(), from, tunnelAddr)
}

// dial connects to addr, a host and a port, or to where ConnectToRules redirect it. It tries each
// address of the host in turn and returns the most telling error if all fail. It also returns the
// lookup of the host.
func (n *crawlDialer) dial(ctx context.Context, network, addr string) (net.Conn, lookupResult, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, lookupResult{}, err
	}
	host, port = dialrules.ApplyConnectTo(n.connectToRules, host, port)
	found, err := n.resolver.lookup(ctx, host)
	if err != nil {
		return nil, found, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var first error
	for i, a := range found.addrs {
		conn, err := n.dialAddr(ctx, network, net.JoinHostPort(a.String(), port), len(found.addrs)-i)
		if err == nil {
			return conn, found, nil
		}
		if first == nil || isNoRoute(first) && !isNoRoute(err) {
			first = err
		}
	}
	n.resolver.forget(host) // the host may have moved
	return nil, found, first
}

// isNoRoute reports whether err says that this machine has no route to an address, for example to
// an IPv6 address from a machine with only IPv4. The error of another address of the same host
// takes precedence.
func isNoRoute(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// dialAddr connects to one address, within its share of the time left: the time left divided by the
// number of addresses still to be tried, but at least one second.
func (n *crawlDialer) dialAddr(ctx context.Context, network, address string, remaining int) (net.Conn, error) {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(end)/time.Duration(remaining), time.Second))
	defer cancel()
	return n.netDialer.DialContext(ctx, network, address)
}

// checkAndClaimServerAddr refuses an address that is not public, unless private addresses are
// allowed, and an address that must not be visited now. The socket calls it when it is about to be
// connected, so no answer of a name server gets past it.
func (n *crawlDialer) checkAndClaimServerAddr(ctx context.Context, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if err := n.checkPublicAddr(ap); err != nil {
		return err
	}
	p, _ := ctx.Value(roundTripContextKey{}).(*roundTrip)
	if p == nil {
		p = &roundTrip{} // the zero ticket is refused
	}
	return p.ticket.ClaimServerAddr(ap.Addr())
}

// checkPublicAddr returns an error of Kind Forbidden if no visit may connect to address.
func (n *crawlDialer) checkPublicAddr(address netip.AddrPort) error {
	if why := n.blockedAddrKind(address.Addr().Unmap().WithZone("")); why != "" {
		return &decorum.Error{Op: "connect to", URL: address.String(), Kind: decorum.Forbidden,
			Err: fmt.Errorf("%s address; --allow-private or fetch.allow_private "+
				"(in Go: Config.AllowPrivate) allows it", why)}
	}
	return nil
}

// DialNonHTTP connects to addr, a host and a port, or to where ConnectToRules redirect it, for a
// visit that does not speak HTTP. The checks of HTTP requests apply: an address that is not public,
// or must not be visited now, is refused when it is about to be connected, and so is every address
// without a ticket.
//
// DialNonHTTP returns an error of Kind Forbidden if the port of the ticket's URL is that of another
// service, such as a mail server, and no rule of ConnectToRules allows it.
func (f *Fetcher) DialNonHTTP(ctx context.Context, t crawler.Ticket, addr string) (net.Conn, error) {
	if err := dialrules.CheckPort(t.URL().Origin(), f.dialer.connectToRules); err != nil {
		return nil, err
	}
	conn, _, err := f.dialer.dial(contextWithTicket(ctx, t), "tcp", addr)
	return conn, err
}

// DialNonHTTPAddrPort is DialNonHTTP for an address that the server sent to the visit.
// ConnectToRules do not apply: they were applied when the crawl connected to the server. The server
// chooses the port, so the port of another service is always refused.
func (f *Fetcher) DialNonHTTPAddrPort(ctx context.Context, t crawler.Ticket, addr netip.AddrPort) (net.Conn, error) {
	if err := dialrules.CheckServerChosenPort(addr); err != nil {
		return nil, err
	}
	return f.dialer.netDialer.DialContext(contextWithTicket(ctx, t), "tcp", addr.String())
}

// contextWithTicket returns a context in which connections are dialled for the visit of t.
func contextWithTicket(ctx context.Context, t crawler.Ticket) context.Context {
	return context.WithValue(ctx, roundTripContextKey{}, &roundTrip{ticket: t})
}
