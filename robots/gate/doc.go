// Package gate decides whether a URL may be visited now, by the robots.txt of its origin.
//
// Begin reading at Gate.Check. It returns the Clearance for a URL, without which the URL must
// not be fetched; or one for the robots.txt, if that must be fetched first; or an error that
// says why neither may be fetched, and until when. Only a Gate makes a valid Clearance.
// Gate.RecordFetch takes what a fetch of a robots.txt returned: RFC 9309 says what each
// status means and for how long. What the Gate learns it keeps as notes, in a storage.Store
// for example, so that a restart fetches nothing again.
//
// The crawler calls it for each visit, and the inspector to explain decisions. The package
// makes no request, takes the time as an argument and starts no goroutine. Locks:
// originCache.mu guards the table of origins; its holder does no I/O and waits for no other
// lock. originEntry.mu of one origin is held while notes of that origin are read and written.
// No goroutine holds two of them.
package gate
