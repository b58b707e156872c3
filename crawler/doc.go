// Package crawler walks one URL at a time through the house.
//
// The hallway is Crawler.walk: lease, clearance, permit, ticket, fetch,
// record, callbacks, links, ack. Each step takes the value that proves the
// step before was made, and nothing goes back to an earlier room: links are
// discovered into the store, redirects are discovered and not followed, and an
// origin whose rules are unknown has its robots.txt fetched as the visit of
// that step. One lease, at most one visit, one ack. Workers never sleep for
// politeness.
//
// A Fetcher gets pages, a Handler reads them, Hooks look on, a Recorder writes
// down. Only this package makes Tickets, from a robots.Clearance and a
// politeness.Permit, and a Fetcher refuses to send a request without one.
package crawler
