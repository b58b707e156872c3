package ledger

// A robotsFetchKey identifies a request for a robots.txt: the origin that the file is for, and the
// requested URL.
type robotsFetchKey struct{ origin, url string }

// A robotsRedirectTracker knows which requests for a robots.txt were redirected. A request at
// another address than its origin's /robots.txt must follow from such a request:
// otherwise any page could be labelled as a robots.txt, which needs no verdict.
type robotsRedirectTracker struct {
	unansweredFetches map[int64]robotsFetchKey // without an answer so far, by number of the request
	redirectedFetches map[robotsFetchKey]bool  // answered by a redirect, or with an unknown answer
}

// addAndCheckRequest adds a request for a robots.txt, and reports whether it is at its origin, or
// may be the target of a recorded redirect from there.
func (k *robotsRedirectTracker) addAndCheckRequest(n int64, q *Request) (follows bool) {
	k.unansweredFetches[n] = robotsFetchKey{q.Origin, q.URL}
	return q.URL == q.Origin+"/robots.txt" || k.redirectedFetches[robotsFetchKey{q.Origin, q.Referrer}]
}

// addResponse adds an answer. The ledger does not record the target of a redirect.
func (k *robotsRedirectTracker) addResponse(a *Response) {
	if h, ok := k.unansweredFetches[a.RequestNumber]; ok && a.Status >= 300 && a.Status < 400 {
		k.redirectedFetches[h] = true
	}
	delete(k.unansweredFetches, a.RequestNumber)
}

// assumeUnansweredRedirected ends a killed run: the ledger may lack its last answers.
func (k *robotsRedirectTracker) assumeUnansweredRedirected() {
	for _, h := range k.unansweredFetches {
		k.redirectedFetches[h] = true
	}
	clear(k.unansweredFetches)
}
