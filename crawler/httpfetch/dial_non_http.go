package httpfetch

import (
	"context"
	"net"
	"net/netip"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
)

// DialNonHTTP connects to addr, a host and a port, or to where ConnectToRules sends it, for
// a visit that does not speak HTTP. What holds for requests holds for it: an
// address that is not public, or must not be visited now, is refused when it is
// about to be connected to, and so is every address without a ticket.
//
// It returns an error of Kind Forbidden if the port of the ticket's URL is that of another
// service, such as a mail server, and no rule of ConnectToRules allows it.
func (f *Fetcher) DialNonHTTP(ctx context.Context, t crawler.Ticket, addr string) (net.Conn, error) {
	if err := dialrules.CheckPort(t.URL().Origin(), f.dialer.connectToRules); err != nil {
		return nil, err
	}
	return f.dialer.dial(contextWithTicket(ctx, t), "tcp", addr)
}

// DialNonHTTPAddrPort is DialNonHTTP to an address that the server gave to the visit.
// ConnectToRules were applied when the crawl connected to the server. The server chooses the
// port, so no rule allows one of another service.
func (f *Fetcher) DialNonHTTPAddrPort(ctx context.Context, t crawler.Ticket, addr netip.AddrPort) (net.Conn, error) {
	if err := dialrules.CheckAddrPort(addr); err != nil {
		return nil, err
	}
	return f.dialer.netDialer.DialContext(contextWithTicket(ctx, t), "tcp", addr.String())
}

// contextWithTicket returns a context whose connections are for the visit of t.
func contextWithTicket(ctx context.Context, t crawler.Ticket) context.Context {
	return context.WithValue(ctx, roundTripContextKey{}, &roundTrip{ticket: t})
}
