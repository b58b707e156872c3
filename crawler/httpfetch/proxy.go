package httpfetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"golang.org/x/net/proxy"

	"github.com/decorum-crawler/decorum/crawler"
)

// usesHTTPProxy reports whether there is a proxy to which requests are sent over HTTP.
func (n *crawlDialer) usesHTTPProxy() bool {
	return n.proxy != nil && (n.proxy.Scheme == "http" || n.proxy.Scheme == "https")
}

// setTransportProxy makes t send everything through the proxy, if there is one. The operator chose
// the proxy, so its address is not checked.
func (n *crawlDialer) setTransportProxy(t *http.Transport) {
	switch {
	case n.proxy == nil:
	case n.usesHTTPProxy():
		plain := *n.proxy
		plain.Scheme = "http" // dialHTTPProxyServer adds TLS, with HTTP/1.1 inside it
		t.Proxy = http.ProxyURL(&plain)
		t.DialContext = n.dialHTTPProxyServer
		t.OnProxyConnectResponse = uncountTunnelBytes
		// Plain http requests to all hosts share these connections, which no host's next visit ends.
		t.IdleConnTimeout = n.cfg.MaxIdleTime
	default:
		t.DialContext = n.dialThroughSOCKSProxy
	}
}

// dialHTTPProxyServer connects to an HTTP proxy, with TLS if its scheme is https.
func (n *crawlDialer) dialHTTPProxyServer(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := proxyServerDialer{}.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	// A tunnel leads to one host; a connection for plain http is used for all hosts.
	if p, _ := ctx.Value(roundTripContextKey{}).(*roundTrip); p != nil && p.ticket.URL().Origin().Scheme() == "https" {
		conn = n.keep(ctx, conn, lookupResult{})
	}
	if n.proxy.Scheme == "http" {
		return conn, nil
	}
	// The proxy's password is secret: TLS offers post-quantum key exchange in spite of Config.NoPostQuantum.
	encrypted := tls.Client(conn, &tls.Config{ServerName: n.proxy.Hostname(),
		NextProtos: []string{"http/1.1"}, RootCAs: n.rootCAs})
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return encrypted, nil
}

// uncountTunnelBytes is an http.Transport.OnProxyConnectResponse. The bytes that opened a tunnel cost the
// proxy, not the host.
func uncountTunnelBytes(ctx context.Context, _ *url.URL, _ *http.Request, _ *http.Response) error {
	p, _ := ctx.Value(roundTripContextKey{}).(*roundTrip)
	if p == nil {
		return nil
	}
	if c := p.dialed.Load(); c != nil {
		c.sent.Store(0)
		c.received.Store(0)
	}
	return nil
}

// A proxyServerDialer connects to a proxy. It reports an unreachable proxy as an outage of the
// crawl's own network, so that the failure is not attributed to the host.
type proxyServerDialer struct{ net.Dialer }

// Dial is part of proxy.Dialer.
func (d proxyServerDialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, addr)
}

// DialContext is part of proxy.ContextDialer.
func (d proxyServerDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, &crawler.NetworkOutageError{Reason: "the proxy cannot be reached", Err: err}
	}
	return conn, nil
}

// dialThroughSOCKSProxy connects to addr, a host and a port, through a SOCKS5 proxy. With the scheme
// socks5 the proxy gets the address that checkAndClaimProxiedHost has checked.
func (n *crawlDialer) dialThroughSOCKSProxy(ctx context.Context, network, addr string) (net.Conn, error) {
	var auth *proxy.Auth
	if user := n.proxy.User; user != nil {
		password, _ := user.Password()
		auth = &proxy.Auth{User: user.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", n.proxy.Host, auth, proxyServerDialer{})
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if n.proxy.Scheme == "socks5" {
		p, _ := ctx.Value(roundTripContextKey{}).(*roundTrip)
		if p == nil {
			return nil, (&roundTrip{}).ticket.ClaimServerAddr(netip.Addr{}) // the zero ticket is refused
		}
		host = p.serverAddr.Addr().String()
	}
	conn, err := dialer.(proxy.ContextDialer).DialContext(ctx, network, net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	return n.keep(ctx, conn, lookupResult{}), nil
}

// defaultPorts has the default port of each scheme that the package fetches.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// lookupAddrIfAllPublic returns the best address of host, or an error if a visit may not connect to
// one of its addresses.
func (n *crawlDialer) lookupAddrIfAllPublic(ctx context.Context, host string) (netip.Addr, error) {
	found, err := n.resolver.lookup(ctx, host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range found.addrs {
		if err := n.checkPublicAddr(netip.AddrPortFrom(a, 0)); err != nil {
			return netip.Addr{}, err
		}
	}
	return found.addrs[0], nil
}

// checkAndClaimProxiedHost makes the checks of a direct connection for a request that a proxy will
// send: it refuses a host with an address that is not public, or that must not be visited now. It
// returns the address it checked. A socks5 proxy gets that address; other proxies get the name, and
// may find another address.
//
// Where private addresses are allowed it checks nothing, since the proxy may know hosts that this
// machine does not know. With socks5 the address is needed, and so it looks up the host.
func (n *crawlDialer) checkAndClaimProxiedHost(ctx context.Context, t crawler.Ticket,
	u *url.URL) (netip.AddrPort, error) {
	if n.cfg.AllowPrivate && n.proxy.Scheme != "socks5" {
		return netip.AddrPort{}, nil
	}
	a, err := n.lookupAddrIfAllPublic(ctx, u.Hostname())
	if errors.As(err, new(*net.DNSError)) {
		err = &fetchError{"the proxy gets no request for a host whose addresses cannot be checked here " +
			"(fetch.allow_private allows it)", "", err}
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, _ := strconv.ParseUint(cmp.Or(u.Port(), defaultPorts[u.Scheme]), 10, 16)
	return netip.AddrPortFrom(a, uint16(port)), t.ClaimServerAddr(a)
}
