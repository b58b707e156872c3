// Package gate decides whether the robots.txt of an origin permits a visit to a URL now.
//
// Gate.Check returns a Clearance for the URL, without which the URL must not be fetched. If the
// robots.txt is unknown or too old, the Clearance is for the robots.txt instead, and its answer goes
// to Gate.RecordFetch. If neither may be fetched now, Check returns an error that says why, and until
// when. Only a Gate makes a valid Clearance.
//
//	g := gate.New(gate.Config{Agent: agent, UserAgent: userAgent}, notes)
//	c, err := g.Check(ctx, now, u)
//	if err != nil {
//		return err // Disallowed, Pending or Unreachable
//	}
//	if c.IsForRobots() {
//		res, fetchErr := fetch(ctx, c.URL())
//		result, err := g.RecordFetch(ctx, now, c, res, fetchErr)
//		// Then queue result.RedirectURL, if there is one, for Gate.CheckRobotsRedirect.
//	}
//
// Begin reading at Gate.Check in gate.go, then Gate.RecordFetch in record_fetch.go. response.go
// decides what each answer means (RFC 9309 and the FETCH requirements), record.go what is stored of
// it, and origin_state.go which rules are in force. The Gate stores its records in storage.Notes, so
// that a restarted crawl fetches no robots.txt again.
//
// The crawler calls the package for each visit, and the inspector to explain decisions. The package
// makes no request, reads no clock and starts no goroutine.
//
// Locks: originCache.mu guards the table of origins. Its holder does no I/O and waits for no other
// lock; evictOne only tries originEntry.mu. The lock originEntry.mu of one origin is held while Check
// and RecordFetch read and write the notes of that origin. Its holder takes neither originCache.mu nor
// the originEntry.mu of another origin. Rules, VerdictFunc and the other methods that only report read
// the notes of an origin that is not cached without a lock, and cache nothing.
package gate
