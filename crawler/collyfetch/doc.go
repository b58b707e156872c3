// Package collyfetch joins decorum and colly.
//
// Wrap takes a colly.Collector that a program already has, with its callbacks,
// and builds a whole crawl around it: robots.txt, pace, a frontier that survives
// kill -9. It is the way from a colly program to a polite one:
//
//	c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{
//		Agent: "examplebot/1.0", Contact: "https://example.org/bot", Dir: "crawl"})
//
// Collector is the same for a crawl that somebody else has put together, such as
// daemon.Main from a project file. docs/colly.md tells what becomes of each of
// colly's methods and settings.
//
// Fetcher is the crawl's HTTPFetcher, on net/http. A crawl without callbacks goes by it
// alone, and needs nothing of colly. Under callbacks colly's own robots.txt, revisit
// check, cookies and redirects are off: decorum decides.
//
// # How a page goes through colly
//
// The crawl asks the Collector for a page with a ticket. A coroutine lets colly
// make the request: OnRequest runs, and then the transport under the collector,
// the door, which sends the request by the HTTPFetcher. There colly pauses. The
// crawl does its accounts (the host's rest begins, the address is free), and
// calls Handle, which lets colly go on to the callbacks for the response. What
// they visit never gets to the door: it is queued, and colly is told to abort. What
// they FollowLink is queued without colly.
//
// # No ticket, no request
//
// A request that is for no page in hand is refused by the door, as one of a
// Clone is that did not Join. In the HTTPFetcher the turnstile makes each request itself,
// for the URL of the ticket that pays for it, and none without. And
// where a program replaces the door, by SetClient or WithTransport, the requests
// of the collector have a context that is done, and a header that is no HTTP:
// another transport sends nothing.
package collyfetch
