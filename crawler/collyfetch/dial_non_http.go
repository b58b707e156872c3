package collyfetch

import (
	"context"
	"net"
	"net/netip"

	"github.com/decorum-crawler/decorum/crawler"
)

// Dial connects to addr, a host and a port, or to where ConnectToRules sends it, for
// a visit that does not speak HTTP. What holds for requests holds for it: an
// address that is not public, or must not be visited now, is refused when it is
// about to be connected to, and so is every address without a ticket.
//
// The port is that of the ticket's URL: see CheckPort.
func (f *HTTPFetcher) DialNonHTTP(ctx context.Context, t crawler.Ticket, addr string) (net.Conn, error) {
	if err := CheckPort(t.URL().Origin(), f.dialer.connectToRules); err != nil {
		return nil, err
	}
	return f.dialer.dial(contextWithTicket(ctx, t), "tcp", addr)
}

// DialNonHTTPAddrPort is Dial to an address that the server gave to the visit. ConnectTo was
// applied when the crawl connected to the server. The server chooses the port, so a
// port that CheckPort refuses is never used.
func (f *HTTPFetcher) DialNonHTTPAddrPort(ctx context.Context, t crawler.Ticket, addr netip.AddrPort) (net.Conn, error) {
	if err := CheckAddrPort(addr); err != nil {
		return nil, err
	}
	return f.dialer.netDialer.DialContext(contextWithTicket(ctx, t), "tcp", addr.String())
}

// contextWithTicket returns a context whose connections are for the visit of t.
func contextWithTicket(ctx context.Context, t crawler.Ticket) context.Context {
	return context.WithValue(ctx, roundTripContextKey{}, &roundTrip{ticket: t})
}
