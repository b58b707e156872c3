// Package politeness decides when a host may next be visited.
//
// For each visit a crawl makes three calls. Limiter.Reserve checks that the host is due and returns
// a Permit, which a Fetcher requires as proof. After the transfer, Limiter.ReleaseAfterTransfer
// takes the permit back. Policy.NextVisit then computes from the visit how long the host rests, and
// Limiter.SetNextVisitAndCountBytes remembers it for this process:
//
//	permit, decision := limiter.Reserve(now, host, politeness.PermitRequest{NotBefore: due})
//	if decision.Action != decorum.Proceed {
//		return decision // try again at decision.Until
//	}
//	// make the visit, from now to end
//	limiter.ReleaseAfterTransfer(permit, end)
//	next := policy.NextVisit(politeness.FinishedVisit{Host: host, Start: now, End: end, Status: 200})
//	limiter.SetNextVisitAndCountBytes(host, next, bodyLen)
//
// The caller stores the NextVisit, for example in a storage.Store, because it must survive the
// process. A Limiter enforces it a second time, in memory, and does not trust the store.
//
// Begin reading with Policy.NextVisit in policy.go, which is one formula, and with Limiter.Reserve
// in limiter.go. What answers show of a host is a HostHealth in host_health.go: a value that each
// visit turns into the next one. Its LearnedPace in learned_pace.go is the pace that the host has
// turned out to accept. visitThrottle in visit_throttle.go implements the slots, the delay and the
// waitlist of one host or one IP address. A Window gives the hours in which a host may be visited.
// A HostOverride replaces settings for one host until it expires.
//
// # Shared state
//
// Crawls of one process that may visit the same hosts get their Limiters from one SharedHosts,
// which enforces one pace for each host over all crawls. It also owns the NetworkBreaker and the
// LocalOverloadLimiter, which stop or reduce new visits while this machine has no network or is
// overloaded. Brakes are an operator's orders to stop or slow a host or a domain at once.
//
// Several hosts may share an IP address, which is certain only once a connection exists: the
// Fetcher calls Permit.ClaimServerAddr then. A host whose address is busy, or that other crawls are
// visiting, joins a waitlist. Limiter.TakeGrantedTurns returns the hosts whose turn has come.
//
// # Goroutines and locks
//
// The package starts no goroutine. The locks are taken in this order:
//
//  1. Brakes.mu. It is held while the callbacks of NotifyOnChange run, so it comes before every
//     lock that a callback takes, such as activeLeases.mu of package crawler. This package takes no
//     other lock while it holds Brakes.mu.
//  2. SharedHosts.mu. It guards the tables of hosts and of addresses, every visitThrottle in them,
//     and the mutable fields of each Limiter and of each issued Permit.
//  3. NetworkBreaker.mu, LocalOverloadLimiter.mu and the locks of the rate.Limiters, one at a time.
//     Their methods call nothing that takes another lock.
//
// Only Brakes calls back while it holds a lock. A caller of any other method may therefore hold
// locks of its own. A visit takes the slot of its host before the slot of its address.
//
// # What it never does
//
// The package never reads the clock, never sleeps and opens no connection: the caller passes the
// time to every method that needs it. No setting turns politeness off.
package politeness
