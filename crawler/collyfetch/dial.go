package collyfetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// matches reports whether the rule is for connections to a host and a port.
func (c ConnectTo) matches(host, port string) bool {
	return (c.Host == "" || strings.Trim(c.Host, "[]") == host) && (c.Port == "" || c.Port == port)
}

// redirect returns where a connection to host and port goes, by the first rule
// that matches.
func redirect(rules []ConnectTo, host, port string) (string, string) {
	for _, r := range rules {
		if r.matches(host, port) {
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

// A network makes the connections of a crawl.
type network struct {
	cfg    Config
	names  *names
	dialer net.Dialer
	// unfit says what kind of address one is that must not be connected to, ""
	// if it may.
	unfit func(netip.Addr) string
	roots *x509.CertPool // whose certificates are good; nil: the system's
}

func newNetwork(cfg Config) *network {
	own := &ownAddrs{list: net.InterfaceAddrs}
	n := &network{cfg: cfg, names: newNames(cfg.Resolver, cfg.DNSTTL), unfit: own.unfit}
	if cfg.AllowPrivate {
		n.unfit = func(netip.Addr) string { return "" }
	}
	n.dialer = net.Dialer{KeepAlive: 30 * time.Second,
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			return n.guard(ctx, address)
		}}
	return n
}

// idle is how many connections are kept open for the next visit. A host has as many
// of them as it was visited at a time: one, unless the project allows more. All that
// goes through a proxy in the clear is one host's.
const idle = 512

// newTransport returns the transport of a crawl.
func newTransport(n *network) *http.Transport {
	t := &http.Transport{
		DialContext:            n.dial,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the turnstile asks for more than gzip
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		TLSClientConfig:        &tls.Config{RootCAs: n.roots},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: n.cfg.MaxHeader,
	}
	n.throughProxy(t)
	t.DialContext = n.within(t.DialContext)
	gate(t)
	if n.cfg.Capture {
		tap(t)
	}
	return t
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// within bounds a dialler by the time of a visit: net/http lets it go on when
// the request that it is for has ended.
func (n *network) within(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// wrapping returns a dialler whose connections are those of dial, wrapped.
func wrapping(dial dialFunc, wrap func(net.Conn) net.Conn) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return wrap(c), nil
	}
}

// dial connects to addr, a host and a port, or to where ConnectTo sends it.
func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	host, port = redirect(n.cfg.ConnectTo, host, port)
	addrs, err := n.names.lookup(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var first error
	for i, a := range addrs {
		conn, err := n.try(ctx, network, net.JoinHostPort(a.String(), port), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		if first == nil || isRoute(first) && !isRoute(err) {
			first = err
		}
	}
	n.names.forget(host) // it may have moved
	return nil, first
}

// isRoute reports whether err says that this machine has no route to an address, for
// example to one of IPv6 where it only has IPv4. An error of another address of the
// same host takes precedence.
func isRoute(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// try connects to an address in its share of the time that is left, with so
// many addresses still to be tried.
func (n *network) try(ctx context.Context, network, address string, left int) (net.Conn, error) {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(end)/time.Duration(left), time.Second))
	defer cancel()
	return n.dialer.DialContext(ctx, network, address)
}

// guard refuses a connection to an address that is not public, unless private
// ones are allowed, and to one that must not be visited now. It is asked by the
// socket that is about to be connected, so that no answer of a name server gets
// past it.
func (n *network) guard(ctx context.Context, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if err := n.refuse(ap); err != nil {
		return err
	}
	p, _ := ctx.Value(passageKey{}).(*passage)
	if p == nil {
		p = &passage{} // its zero ticket is refused
	}
	return p.ticket.Connect(ap.Addr())
}

// refuse returns why address must not be connected to, if so.
func (n *network) refuse(address netip.AddrPort) error {
	if why := n.unfit(address.Addr().Unmap().WithZone("")); why != "" {
		return &decorum.Error{Op: "connect to", URL: address.String(), Kind: decorum.Forbidden,
			Err: fmt.Errorf("%s address; fetch.allow_private or --allow-private allows it", why)}
	}
	return nil
}
