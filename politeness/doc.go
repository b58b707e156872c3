// Package politeness decides when a host may next be visited.
//
// It never reads the clock, never sleeps and starts nothing: every method is
// told the time. Policy.Next says how long a host rests after a visit, and a
// Window at which hours it may be visited at all. Limits.Admit says whether the
// rest is over, and its Permit is the proof that a Fetcher must be shown.
//
// Hosts may share an IP address, which is known for sure only when a connection
// is made: Permit.Bind asks for it then. An address that is busy keeps a line of
// the hosts that were turned away, and Limits.Calls tells whose turn it is.
package politeness
