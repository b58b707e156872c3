// Package crawler implements the crawl loop: it leases a URL, checks robots.txt and politeness,
// fetches the URL, passes the answer to a Handler, and stores the result.
//
// The package decides, for each leased URL, whether it may be visited now, what becomes of it after
// the visit, and whether the host or this machine caused a failure. Only this package makes Tickets,
// from a gate.Clearance and a politeness.Permit, and a Fetcher refuses to send a request without one.
//
// # A minimal crawl
//
//	c := &crawler.Crawler{Frontier: f, Gate: g, Limiter: limiter, Fetcher: fetcher, Handler: handle}
//	f.Discover(ctx, storage.Entry{URL: seed, Source: storage.SourceSeed})
//	err := c.Run(ctx)
//
// The example of Handler is a complete program. Package daemon builds a Crawler from a project file,
// and collyfetch.Wrap builds one around a colly program. An OnDemandCrawl makes single visits for a
// caller that waits for them: through the same steps, once, and without following links.
//
// # Where to begin reading
//
// Begin with process and visit in pipeline.go, which list the steps in order: lease, clearance,
// permit, ticket, fetch, record, handler, links, ack. Each step takes the value that proves the step
// before, and each step runs once: links and redirects are queued in the store, and if the rules of
// an origin are unknown, the visit is to its robots.txt. One lease leads to at most one visit and to
// one ack.
//
// The pipeline calls these parts. Each is built from values and does not know the Crawler:
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
// The decisions that decorum explain shares with a crawl are in decide.go.
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
// # What becomes of a page
//
// A Handler returns the links that it wants visited, and its verdict. The store has the links before
// the page is acked, so a crash repeats a visit and loses nothing. The verdict is an error:
//
//	nil                    the page is done; a transient status (429, 5xx…) is retried
//	decorum.RetryAfter(d)  the page is visited again, not before d has passed
//	decorum.Drop(why)      the page is given up
//	any other error        the page is visited again after a back-off
//
// Retries end after Settings.MaxAttempts. The crawl catches a panic, logs it with the URL and the
// stack, counts it in Stats.Panics and gives the page up, because a retry would panic again.
//
// To wrap a Handler (timing, filtering, a transaction), write a function that takes a Handler and
// returns one. Hooks only observe: they see every request and each leased URL that was refused.
// frontier.Config has two more hooks, for URLs that are found.
//
// # Goroutines
//
// Run starts Settings.Workers workers and three loops: one renews leases, one saves the frontier's
// counts, one wakes waiting origins. It waits for all of them before it returns. Step runs in the
// caller's goroutine. Timers that end a visit when its lease runs out are stopped with the lease.
// Constructors start nothing.
//
// # Lock order
//
// hostEntry.saveLock comes before hostTable.mu, and hostTable.mu before the locks of
// politeness.Limiter. activeLeases.mu comes before the lock of politeness.Brakes. crawlDelays.mu and
// lastmodAccuracyLock.mu are held during calls of the gate or the store. No two other locks of this
// package are held together, and none is held while a Handler, a Hook, a Recorder or a Fetcher runs.
//
// # What it never does
//
// No worker sleeps for politeness: the frontier hands out only URLs that are due. No redirect is
// followed within a visit. No request is sent without a ticket, and no unsafe request twice.
package crawler
