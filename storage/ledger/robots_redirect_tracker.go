package ledger

// A robotsFetchKey identifies a request for a robots.txt: the origin that the file is for, and the
// requested URL.
type robotsFetchKey struct{ origin, url string }

// A robotsRedirectTracker records which requests for a robots.txt were redirected. A request for another URL
// than its origin's /robots.txt must follow such a request. Otherwise any page could be labelled as a
// robots.txt, which needs no verdict.
type robotsRedirectTracker struct {
	unansweredFetches map[int64]robotsFetchKey // requests without a response, by number
	redirectedFetches map[robotsFetchKey]bool  // requests with a redirect or an unknown answer as response
}

// addAndCheckRequest adds a request for a robots.txt. It reports whether the request is for the
// /robots.txt of its origin, or may follow a recorded redirect from there.
func (k *robotsRedirectTracker) addAndCheckRequest(n int64, q *Request) (follows bool) {
	k.unansweredFetches[n] = robotsFetchKey{q.Origin, q.URL}
	return q.URL == q.Origin+"/robots.txt" || k.redirectedFetches[robotsFetchKey{q.Origin, q.Referrer}]
}

// addResponse adds a response. Only its status counts: the ledger does not record the target of a redirect.
func (k *robotsRedirectTracker) addResponse(a *Response) {
	if h, ok := k.unansweredFetches[a.RequestNumber]; ok && a.Status >= 300 && a.Status < 400 {
		k.redirectedFetches[h] = true
	}
	delete(k.unansweredFetches, a.RequestNumber)
}

// assumeUnansweredRedirected ends a run that was killed. Its requests without a response may have been
// redirected, and count so.
func (k *robotsRedirectTracker) assumeUnansweredRedirected() {
	for _, h := range k.unansweredFetches {
		k.redirectedFetches[h] = true
	}
	clear(k.unansweredFetches)
}
