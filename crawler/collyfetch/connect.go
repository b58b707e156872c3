package collyfetch

import (
	"context"
	"net"
	"net/netip"

	"github.com/decorum-crawler/decorum/crawler"
)

// Dial connects to addr, a host and a port, or to where ConnectTo sends it, for
// a visit that does not speak HTTP. What holds for requests holds for it: an
// address that is not public, or must not be visited now, is refused when it is
// about to be connected to, and so is every address without a ticket.
func (f *Fetcher) Dial(ctx context.Context, t crawler.Ticket, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	host, port = redirect(f.cfg.ConnectTo, host, port)
	return f.connect(ctx, t, net.JoinHostPort(host, port))
}

// DialAddr is Dial to an address that the visit has been told by its server:
// ConnectTo has had its say when the server was connected to.
func (f *Fetcher) DialAddr(ctx context.Context, t crawler.Ticket, addr netip.AddrPort) (net.Conn, error) {
	return f.connect(ctx, t, addr.String())
}

func (f *Fetcher) connect(ctx context.Context, t crawler.Ticket, address string) (net.Conn, error) {
	ctx = context.WithValue(ctx, passageKey{}, &passage{ticket: t})
	return newDialer(f.cfg).DialContext(ctx, "tcp", address)
}
