// Package politeness decides when a host may next be visited.
//
// It never reads the clock, never sleeps and starts nothing: every method is
// told the time. A crawl goes round in three steps. Limiter.Reserve says whether the
// rest of a host is over, and its Permit is the proof that a Fetcher must be shown.
// The visit is made, and Limiter.ReleaseAfterTransfer takes the permit back. Policy.NextVisit says, of
// what the visit was like, how long the host rests now; Limiter.SetNextVisitAndCountBytes is told, and
// the caller keeps that NextVisit, in a storage.Store say, since it must survive the
// process.
// A Window says at which hours a host may be visited at all, and a HostOverride what
// is otherwise for one host, and until when.
//
// Crawls of one process that visit the same hosts get their Limiter from one SharedHosts:
// then each host has its pace, whoever visits it. Brakes stop or slow a host, or a
// domain, at once.
//
// A NetworkBreaker and a LocalOverloadLimiter belong to the SharedHosts, too: they let fewer visits begin, or none,
// while this machine has no network or is too busy.
//
// Hosts may share an IP address, which is known for sure only when a connection
// is made: Permit.ClaimServerAddr asks for it then. An address that is busy keeps a line of
// the hosts that were turned away, and a host of the crawls; Limiter.TakeGrantedTurns tells
// whose turn it is.
//
// Locks are taken in this order, each while those before it may be held, and none the other
// way round:
//
//  1. the lock of Brakes, which is held while those are told who watch;
//  2. the lock of SharedHosts, under which the table of hosts, the table of addresses and all
//     lines of those who wait are read and changed together;
//  3. the locks of the NetworkBreaker, of the LocalOverloadLimiter and of the limits of requests and
//     bytes, one at a time: their methods know of nothing else that has a lock.
//
// Under the lock of SharedHosts a visit takes its slot of the host first, and then that of the
// address; it gives them back in the reverse order. Nothing here calls back
// while it holds a lock, but Brakes: so a caller may hold locks of its own.
package politeness
