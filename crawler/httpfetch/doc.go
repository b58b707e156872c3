// Package httpfetch fetches pages by HTTP for a crawl: it is the way out of the machine. A
// request leaves only with a crawler.Ticket, for the ticket's URL, and once.
//
// A Fetcher is the crawler.Fetcher of a crawl without callbacks; crawler/collyfetch sends the
// requests of colly's callbacks by the same Fetcher, and crawler/ftpfetch has it make its
// connections. The package decides which addresses are refused, what is sent and what a
// failure is called. It never decides whether or when a page is visited.
//
// # Where to begin
//
// Fetcher.FetchWithHeader is one visit from its ticket to its decorum.Response. On its way are
//
//   - ticketedClient (ticketed_client.go), which redeems the ticket, adds cookies and the
//     signature, sends the request and reads the body;
//   - crawlDialer (dial.go, proxy.go), which looks up names (cachingResolver), refuses
//     addresses that are not public (publicaddr.go) and claims the server's
//     address for the visit, in the socket that is about to be connected;
//   - leaseCheckedConn, which over HTTP/1 writes nothing when the request is canceled or the lease of the
//     visit has run out, and recordedConn, which keeps the bytes of the exchange for a WARC file;
//   - decoderPools (decode.go), which undo content codings.
//
// # No ticket, no request
//
// On its own net/http sends a GET again when a connection that was kept open breaks. Here the
// second connection of a visit ends the visit before anything is sent: see
// roundTrip.newRequest.
//
// # Goroutines and locks
//
// The package starts no goroutine of its own. Those of net/http end with the visit or, for a
// connection that is kept open, with Fetcher.CloseIdleConnections or after 90 seconds; timers
// and funcs that wait for the end of a context end with the visit. The locks of Cookies, cachingResolver, ownAddrs and
// wireRecorder are never held together. Cookies holds its own while it reads and writes
// notes; cachingResolver looks up names without.
package httpfetch
