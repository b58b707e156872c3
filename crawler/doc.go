// Package crawler implements the crawl loop: it leases a URL, checks robots.txt and politeness,
// fetches the URL, passes the answer to a Handler, and stores the result.
//
// The package decides, for each leased URL, whether it may be visited now, what becomes of it after
// the visit, and whether the host or this machine caused a failure. A minimal crawl:
//
//	c := &crawler.Crawler{Frontier: f, Gate: g, Limiter: limiter, Fetcher: fetcher, Handler: handle}
//	_, err := f.Discover(ctx, storage.Entry{URL: seed, Source: storage.SourceSeed})
//	err = c.Run(ctx)
//
// The example of Handler is a complete program. Package daemon builds a Crawler from a project file,
// and collyfetch.Wrap builds one around a colly program. An OnDemandCrawl makes single visits for a
// caller that waits for them: through the same steps, once, and without following links.
//
// # Terms
//
//   - A gate fetches and keeps the robots.txt of each origin, and decides whether a URL may be
//     fetched (gate.Gate).
//   - A clearance proves that the robots.txt in force allows one URL to be fetched (gate.Clearance).
//   - A permit proves that a host is due for a visit (politeness.Permit).
//   - A ticket joins a clearance and a permit (Ticket). Only this package makes tickets, and a Fetcher
//     sends one request for each, and none without one.
//   - A brake is an operator's order that stops or slows a host (politeness.Brake).
//
// # Where to begin reading
//
// Begin with process and visit in pipeline.go, which list the steps in order: lease, clearance,
// permit, ticket, fetch, record, handler, links, ack. Each step takes the value that proves the step
// before, and runs once: the store queues links and redirects, and if the rules of an origin are
// unknown, the visit is to its robots.txt. One lease leads to at most one visit and to one ack.
//
// The pipeline calls these parts, which are built from values and do not know the Crawler:
//
//   - hostTable (host_table.go) keeps the state of hosts and computes how long each rests.
//   - prerequisites (prerequisites.go) handles answers for robots.txt, tdmrep.json and sitemaps.
//   - pageHandler (page_handler.go) handles answers for pages.
//   - outcomePlanner (outcome_planner.go) decides whether a URL is visited again.
//   - faultAttributor (fault_attribution.go) decides whether this machine caused a failure.
//   - waitlist (waitlist.go) knows which origins wait for a shared resource or for a brake.
//   - ledgerEntries (ledger_entries.go) writes the ledger.
//   - runBudget (budget.go) counts what a run may do.
//
// # Goroutines and locks
//
// Run starts Settings.Workers workers and three loops: one renews leases, each in a separate
// goroutine, one saves the frontier's counts, one wakes waiting origins. It waits for all of them
// before it returns. Step runs in the caller's goroutine. Constructors start nothing.
//
// hostEntry.saveLock comes before hostTable.mu, and hostTable.mu before the locks of
// politeness.Limiter. The lock of politeness.Brakes, which is held while Brakes reports a change, comes
// before activeLeases.mu. crawlDelays.mu and lastmodAccuracyLock.mu are held during calls of the gate
// or the store. No two other locks of this package are held together, and none is held while a
// Handler, a Hook, a Recorder or a Fetcher runs.
//
// # What it never does
//
// No worker sleeps for politeness: the frontier hands out only URLs that are due. No visit follows a
// redirect. No request is sent without a ticket, and no unsafe request twice.
package crawler
