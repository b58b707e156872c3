// Package collyfetch joins decorum and colly.
//
// Fetcher is the crawl's Fetcher, with colly as its engine. colly's own
// robots.txt, revisit check, limits, cookies and redirects are off: decorum
// decides. Under colly lies a transport that refuses every request that does
// not carry a valid ticket for exactly its URL, whoever made it.
//
// Collector carries a user's colly callbacks. What a callback visits is
// enqueued, not fetched: it passes scope, seen set, robots.txt and pace like
// any link.
package collyfetch
