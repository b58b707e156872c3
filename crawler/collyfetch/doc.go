// Package collyfetch runs colly's callbacks in a crawl of decorum. The requests that callbacks
// make are queued, and sent by crawler/httpfetch when robots.txt and the pace allow it.
//
// Wrap takes a colly.Collector that a program already has, with its callbacks,
// and builds a whole crawl around it: robots.txt, pace, a frontier that survives
// kill -9. It is the way from a colly program to a polite one:
//
//	c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{
//		Agent: "examplebot/1.0", Contact: "https://example.org/bot", StateDir: "crawl"})
//
// Collector is the same for a crawl that somebody else has put together, such as
// daemon.Main from a project file. docs/colly.md tells what becomes of each of
// colly's methods and settings. A crawl without callbacks needs nothing of this package:
// httpfetch.Fetcher is its Fetcher.
//
// Colly's own robots.txt, revisit check, cookies and redirects are off: decorum decides.
//
// # How a page goes through colly
//
// The crawl calls Collector.Fetch with the ticket of a page. A coroutine (callbackRun) has
// colly make the request: the callbacks for requests run, and then the transport under the
// collector, collyTransport, which has the httpfetch.Fetcher send the request. There colly
// pauses. The crawl ends the visit (the host's rest begins, the address is free), and
// calls Collector.Handle, which lets colly go on to the callbacks for the response. What
// they visit never gets to the transport: it is queued, and colly is told to abort. What
// they FollowLink is queued without colly.
//
// # No ticket, no request
//
// collyTransport refuses a request that is for no page in hand, as one of a Clone is that
// did not join the crawl. The httpfetch.Fetcher makes each request itself, for the URL of
// its ticket. Where a program replaces the transport, by SetClient or WithTransport, the
// requests of the collector have a context that is done, and a header that is no HTTP:
// another transport sends nothing.
//
// # Goroutines and locks
//
// The package starts no goroutine: a coroutine runs on the worker that calls Fetch or Handle,
// and ends by Collector.ReleaseVisitResources. Collector.mu, callbackRun.mu and the lock of
// unsentRequests are never held together, nor while callbacks run.
package collyfetch
