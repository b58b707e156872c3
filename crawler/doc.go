// Package crawler takes one URL at a time through the steps of a visit.
//
// The pipeline is in pipeline.go, in the order in which it runs: lease, clearance, permit, ticket,
// fetch, record, callbacks, links, ack. Each step takes the value that proves the
// step before was made, and nothing goes back to an earlier step: links are
// discovered into the store, redirects are discovered and not followed, and an
// origin whose rules are unknown has its robots.txt fetched as the visit of
// that step. One lease, at most one visit, one ack. Workers never sleep for
// politeness.
//
// The parts that it calls are built from values, and know no Crawler: hostTable has what is known
// of hosts, and how long each rests; prerequisites takes the answers of robots.txt, tdmrep.json and
// sitemaps; pageHandler those of pages; outcomePlanner decides whether a URL is visited again;
// faultAttributor, whether this machine is to blame; waitlist has who waits for something that
// hosts share, or for a brake; ledgerEntries writes the ledger; runBudget counts what a run may do.
//
// A Fetcher gets pages, a Handler reads them, Hooks look on, a Recorder writes
// down. Only this package makes Tickets, from a gate.Clearance and a
// politeness.Permit, and a Fetcher refuses to send a request without one.
//
// # Terms
//
// Five terms are this project's own:
//
//   - A gate fetches and keeps the robots.txt of each origin, and decides whether a URL may be fetched (gate.Gate).
//   - A clearance proves that the robots.txt in force allows one URL to be fetched (gate.Clearance).
//   - A permit proves that a host is due for a visit (politeness.Permit).
//   - A ticket joins a clearance and a permit; a Fetcher sends one request for it, and none without one (Ticket).
//   - A brake is an operator's order that stops or slows a host (politeness.Brake).
//
// # To run a crawl
//
// Fill in the parts of a Crawler, queue seeds with its Frontier, and Run it: see
// the example of Handler. Package daemon does so from a project file, and
// collyfetch.Wrap around a colly program.
//
// Who waits for the answer to a single visit has it made by an OnDemandCrawl, which takes it
// through the same steps, once, and follows nothing.
//
// # What becomes of a page
//
// A Handler returns the links that it wants visited, and its verdict. They are
// in the store before the page is acked: a crash repeats a visit, and loses
// nothing. The verdict is an error:
//
//	nil                    the page is done; a status that passes (429, 5xx…) is tried again
//	decorum.RetryAfter(d)  it is visited again, not before d has passed
//	decorum.Drop(why)      it is given up
//	anything else          it is visited again after a back-off
//
// Repeats end after Settings.MaxAttempts. A panic is caught, logged with the URL and
// the stack, and counted in Stats.Panics; the page is given up, for what panics
// today will tomorrow.
//
// What goes around a Handler (timing, filtering, a transaction) is a function
// that takes a Handler and returns one. Hooks only look on, and must not block:
// they see every request, and each URL that was refused when its turn came.
// frontier.Config has two more, for URLs that are found.
package crawler
