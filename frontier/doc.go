// Package frontier knows which URLs are waiting and which is next.
//
// It brings URLs in (Discover: clean, scope, seen set), hands them out when
// their host is due (Next), and takes back what became of them (Ack). It never
// fetches, never judges robots.txt and holds no state of its own but a count of
// URLs by pattern, and the hashes of URLs that were offered lately (WasRecentlyOffered): all else
// is in a storage.Store. No worker sleeps for politeness: those that find nothing due
// wait in Next until something is.
//
// Begin reading with Discover and Next. A Frontier is made of parts, each of which keeps its own
// lock and is tested alone: the dispatcher leases URLs for the workers that wait in Next; the
// hostCountLimiter and the urlsPerPatternLimiter refuse what is one too many; the httpsUpgradeTracker knows
// which origins have moved to https; the seenCache, what was offered lately; refusalCounters
// count what was refused or rewritten. No part calls the Frontier. Only the dispatcher calls other
// parts while it holds its lock: it empties the caches, which have none. The package starts no
// goroutine.
//
// The parts of a Config decide one thing each. The ParamCleaner takes off what the project
// says does not matter in a query, and ids of sessions; Scope says which URLs
// belong to the crawl; AssignOrder, which of an origin's goes first; Budget, how many
// visits the whole crawl may begin. A RevisitPolicy says when a page is visited again,
// and is asked by whoever acks. What is refused or rewritten is counted, by host
// and reason, for reports.
//
// Of the hosts that are due, the one that has been due longest goes first,
// whatever the length of its queue. So a host that is due waits for at most one
// visit (one for each of its slots) of each host that has been due at least as
// long, and for those in hand. Where w workers make visits that take at most t,
// and b hosts have been due at least as long, its visit begins within
//
//	(⌊b/w⌋ + 1) × t
//
// and at once if a worker is free, unless the crawl's own VisitBudget is used up.
// n URLs of an origin end in time of the order of n rests and n such waits,
// however many URLs other origins have. A host that never answers holds a
// worker until the timeout, and then rests ever longer: it must be reckoned
// with among the w, not among the b.
package frontier
