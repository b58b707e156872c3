// Package httpfetch fetches URLs over HTTP for a crawl. Every HTTP request of a crawl passes
// through it: a request is sent only with a crawler.Ticket, only for the ticket's URL, and only
// once.
//
// The package decides which addresses are refused, which bytes are sent, and what a failure is
// called. It never decides whether or when a page is visited.
//
//	fetcher, err := httpfetch.New(httpfetch.Config{
//		UserAgent: "examplebot/1.0 (+https://example.org/bot)",
//	})
//	...
//	crawl := &crawler.Crawler{Fetcher: fetcher, ...}
//
// A Fetcher serves as the crawler.Fetcher of a crawl without callbacks. crawler/collyfetch sends
// the requests of colly's callbacks through a Fetcher, and crawler/ftpfetch opens its connections
// through one.
//
// # Where to begin
//
// Fetcher.FetchWithHeader makes one visit, from its ticket to its decorum.Response. It uses
//
//   - ticketedClient (ticketed_client.go), which redeems the ticket, adds cookies and the
//     signature, sends the request and reads the body;
//   - crawlDialer (dial.go, proxy.go), which looks up names (cachingResolver), refuses addresses
//     that are not public (publicaddr.go) and reserves the server's address for the visit, both
//     when the socket is about to be connected;
//   - http1.Transport (internal/http1), which sends the request over a connection; net/http's takes its
//     place for HTTP proxies and HTTP/2;
//   - connKeeper (host_conns.go), which closes connections that no visit will use: the transport keeps
//     them all, and IdleConns limits those of all Fetchers;
//   - leaseCheckedConn, which over HTTP/1 refuses to write once the request is canceled or the
//     visit's lease has expired, and recordedConn, which keeps the bytes of the exchange for a
//     WARC file;
//   - decoderPools (decode.go), which undo content codings.
//
// # No ticket, no request
//
// http1.Transport sends a request once. net/http sends a GET again by itself when a kept-open connection
// breaks. Here, the second connection of a visit ends the visit before anything is sent: see
// roundTrip.newRequest.
//
// # Goroutines and locks
//
// Neither the package nor http1 starts a goroutine. The goroutines of net/http end with the visit or, for
// a kept-open connection, with Fetcher.CloseIdleConnections or after Config.MaxIdleTime. Timers and
// context callbacks end with the visit, or with the connections of a host.
//
// The locks of Cookies, cachingResolver, ownAddrs, IdleConns and wireRecorder are never held together. Cookies
// holds its lock while it reads and writes notes; cachingResolver releases its lock during a lookup.
// wireRecorder.mu comes before the lock of bodymem.Budget: memory is released under it.
package httpfetch
