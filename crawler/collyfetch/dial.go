package collyfetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A ConnectTo sends connections for Host:Port to Host2:Port2, as curl's option
// of that name does. An empty Host or Port stands for any, an empty Host2 or
// Port2 for the URL's own.
type ConnectTo struct{ Host, Port, Host2, Port2 string }

// ParseConnectTo reads HOST:PORT:HOST2:PORT2. IPv6 addresses are in brackets.
func ParseConnectTo(s string) (ConnectTo, error) {
	var parts []string
	rest := s
	for {
		end := 0
		if strings.HasPrefix(rest, "[") {
			end = strings.IndexByte(rest, ']') + 1
		}
		i := strings.IndexByte(rest[end:], ':')
		if i < 0 {
			parts = append(parts, rest)
			break
		}
		parts, rest = append(parts, rest[:end+i]), rest[end+i+1:]
	}
	if len(parts) != 4 {
		return ConnectTo{}, fmt.Errorf("%q is not HOST:PORT:HOST2:PORT2", s)
	}
	for _, port := range []string{parts[1], parts[3]} {
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return ConnectTo{}, fmt.Errorf("%q: %q is not a port", s, port)
		}
	}
	return ConnectTo{strings.ToLower(parts[0]), parts[1], parts[2], parts[3]}, nil
}

// String returns c as ParseConnectTo reads it.
func (c ConnectTo) String() string {
	return strings.Join([]string{c.Host, c.Port, c.Host2, c.Port2}, ":")
}

// redirect returns where a connection to host and port goes, by the first rule
// that matches.
func redirect(rules []ConnectTo, host, port string) (string, string) {
	for _, r := range rules {
		if (r.Host == "" || strings.Trim(r.Host, "[]") == host) && (r.Port == "" || r.Port == port) {
			if r.Host2 != "" {
				host = strings.Trim(r.Host2, "[]")
			}
			if r.Port2 != "" {
				port = r.Port2
			}
			break
		}
	}
	return host, port
}

// newDialer returns a dialler that asks guard before it connects.
func newDialer(cfg Config) *net.Dialer {
	return &net.Dialer{Timeout: cfg.Timeout, KeepAlive: 30 * time.Second,
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			return guard(ctx, address, cfg.AllowPrivate)
		}}
}

// newTransport returns the transport of a crawl: one idle connection a host,
// because a polite crawl needs no more, and a bounded number of them in all.
func newTransport(cfg Config) *http.Transport {
	dialer := newDialer(cfg)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			host, port = redirect(cfg.ConnectTo, host, port)
			return dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
		},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// guard refuses a connection to an address that is not public, unless private
// ones are allowed, and to one that must not be visited now. It sees the address
// after the name was resolved, so that no answer of a name server gets past it.
func guard(ctx context.Context, address string, private bool) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !private {
		if err := refusePrivate(ap); err != nil {
			return err
		}
	}
	p, _ := ctx.Value(passageKey{}).(*passage)
	if p == nil {
		p = &passage{} // its zero ticket is refused
	}
	return p.ticket.Connect(ap.Addr())
}

func refusePrivate(address netip.AddrPort) error {
	if why := notPublic(address.Addr().Unmap()); why != "" {
		return &decorum.Error{Op: "connect to", URL: address.String(), Kind: decorum.Forbidden,
			Err: fmt.Errorf("%s address; fetch.allow_private or --allow-private allows it", why)}
	}
	return nil
}

// reserved are the ranges that are not public and that netip has no word for.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), // NAT64 leads to any IPv4 address
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4, likewise
}

// notPublic says what kind of address a is, "" if it is a public one.
func notPublic(a netip.Addr) string {
	switch {
	case a.IsLoopback():
		return "a loopback"
	case a.IsPrivate():
		return "a private"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return "a link-local"
	case a.IsMulticast():
		return "a multicast"
	case a.IsUnspecified():
		return "an unspecified"
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return "a reserved"
		}
	}
	return ""
}
