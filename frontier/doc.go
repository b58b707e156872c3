// Package frontier decides which URLs a crawl queues, and which queued URL is visited next.
//
// Discover takes URLs in: it cleans them, checks them against the scope and the limits, and queues
// those that are new. Next leases a URL whose host is due, and waits until there is one. Ack ends
// the lease with the outcome of the visit:
//
//	f := frontier.New(memory.New(memory.Config{}), frontier.Config{Scope: scope})
//	_, err := f.Discover(ctx, storage.Entry{URL: seed, Source: storage.SourceSeed})
//	lease, err := f.Next(ctx)
//	// visit lease.URL
//	err = f.Ack(ctx, storage.Ack{Lease: lease, Outcome: storage.Done, HostState: hostState})
//
// Begin reading with DiscoverReportingRefusals in discover.go and refillReadyOrWait in next.go. The
// fields of Config decide one thing each: ParamCleaner removes query parameters that the project
// declares irrelevant, and session IDs; Scope decides which URLs belong to the crawl; AssignOrder
// orders the URLs of an origin; Budget limits the visits of the whole crawl. A RevisitPolicy
// computes when a page is visited again; the caller of Ack applies it. Refused and rewritten URLs
// are counted by host and reason for reports.
//
// A Frontier is made of parts that are tested alone: the dispatcher leases URLs for the workers in
// Next; hostCountLimiter and urlCountLimiter refuse URLs beyond a limit; httpsUpgradeTracker
// knows which origins have moved to https; seenCache remembers URLs that were offered recently;
// refusalCounter counts refused and rewritten URLs. No part calls the Frontier.
//
// # Order and fairness
//
// Of the hosts that are due, the one that has been due longest goes first, whatever the length of
// its queue. A due host therefore waits for at most one visit (one for each slot) of each host that
// has been due at least as long, and for the visits under way. If w workers make visits of at most
// t, and b hosts have been due at least as long, the visit begins within
//
//	(⌊b/w⌋ + 1) × t
//
// and at once if a worker is free, unless the crawl's VisitBudget is used up. n URLs of an origin
// take a time of the order of n rests and n such waits, however many URLs other origins have. A
// host that never answers occupies a worker until the time-out and then rests ever longer: count it
// among the w, not among the b.
//
// # Goroutines and locks
//
// The package starts no goroutine. dispatcher.leaseLock is held during calls of the queue and while
// Next waits; httpsUpgradeTracker.mu and refusalCounter.mu are held during calls of the store's
// notes. They come before the locks of the store. crawlNotesReader.reading is held during such calls, too,
// and comes before duplicatePatternCloser.mu and redirectTracker.mu. No other two locks of this package are
// held together.
//
// # What it never does
//
// A Frontier never fetches and never evaluates robots.txt. It keeps no state that a restart would
// lose, except counts of URLs by pattern, of sort links and of feeds, and hashes of recently offered
// URLs; everything else is in a storage.Store. No worker sleeps for politeness: Next returns only
// URLs that are due.
package frontier
