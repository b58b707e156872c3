// Package bodymem limits the memory that the bodies of responses take.
//
// All visits of a process share one Budget. Each visit has a VisitShare of it: the visit reserves bytes
// before it reads them, and holds them until the last use of its body.
//
//	var share bodymem.VisitShare
//	budget.OpenShare(&share, url)
//	defer share.Close()
//	body, more, err := share.ReadAll(ctx, r, limit, 0, nil)
//	...
//	share.ShrinkTo(int64(cap(body))) // what ReadAll took beyond the body is free again
//
// A visit that needs more bytes than are free waits. If every visit that holds memory waits, none
// could end, so the youngest of them ends with a *FullError, which counts neither against its host
// nor against its URL. The URL keeps its age, and its next visit reserves all that it may need
// before it sends the request, or ends after five seconds without having sent it. So at most one
// visit to a URL is ended after its request was sent, and then never the oldest visit.
//
// An eighth of the memory is for the first 64 KiB of each visit, so that long bodies do not keep short
// ones waiting.
//
// Begin reading at VisitShare.Reserve, and at Budget.serveOrEndWaiters for the order of waiters.
// The package decides only who gets memory; it fetches and parses nothing. It starts no goroutine
// except that a timer calls Budget.denyYoungestWaiterIfStalled once a second while a visit waits.
// Budget.mu is the only lock.
package bodymem
