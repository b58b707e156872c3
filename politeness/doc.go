// Package politeness decides when a host may next be visited.
//
// It never reads the clock, never sleeps and starts nothing: every method is
// told the time. Policy.Next says how long a host rests after a visit; Admit
// says whether that rest is over, and its Permit is the proof that a Fetcher
// must be shown.
package politeness
