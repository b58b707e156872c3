// Package collyfetch runs colly's callbacks in a decorum crawl. The requests that callbacks make
// are queued; crawler/httpfetch sends each when robots.txt allows it and its host is due.
//
// Wrap takes the colly.Collector of an existing program, with its callbacks, and builds a complete
// crawl around it (package crawl), with robots.txt, delays, and a frontier that survives kill -9:
//
//	c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{
//		Agent: "examplebot/1.0", Contact: "https://example.org/bot", StateDir: "crawl"})
//
// Collector does the same for a crawl that is assembled elsewhere, for example by daemon.Main from
// a project file. docs/colly.md lists the effect of each of colly's methods and settings. A crawl
// without callbacks does not need this package: httpfetch.Fetcher serves as its Fetcher.
//
// Colly's robots.txt check, revisit check, cookies and redirects are off, because decorum decides
// all of these.
//
// # How a page passes through colly
//
// Begin reading at Collector.Fetch.
//
//  1. The crawl calls Collector.Fetch with the ticket of a page. A coroutine (callbackRun) makes
//     colly start the request.
//  2. The callbacks for requests run. The collector's transport, collyTransport, sends the request
//     through the httpfetch.Fetcher, and the coroutine pauses there.
//  3. The crawl ends the visit: the host's delay begins, and its address is free for other visits.
//  4. The crawl calls Collector.Handle, which resumes the coroutine. The callbacks for the response
//     run. A request that they make never reaches the transport: it is queued, and colly's own
//     request is aborted. FollowLink queues a link without involving colly.
//
// # No ticket, no request
//
// collyTransport refuses every request that does not belong to a callbackRun, such as a request of
// a Clone that has not joined the crawl. The httpfetch.Fetcher builds each request itself, for the
// URL of its ticket. If a program replaces the transport, by SetClient or WithTransport, the other
// transport sends nothing: the collector's requests have a canceled context and a header whose name
// is invalid in HTTP.
//
// # Goroutines and locks
//
// Crawl.RunQueue starts a goroutine for Queue.Run, which ends when the queue has ended; the package
// starts no other. A coroutine runs on the worker that calls Fetch or Handle, and
// Collector.ReleaseVisitResources ends it. Collector.mu, callbackRun.mu, unsentRequests.mu,
// warnings.mu and queueRun.mu are never held together, nor while callbacks run.
package collyfetch
