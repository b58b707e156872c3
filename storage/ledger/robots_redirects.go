package ledger

// A hop identifies a request for a robots.txt: the origin that the file is for, and the
// requested URL.
type hop struct{ origin, url string }

// A redirectKeeper knows which requests for a robots.txt were redirected. A request at
// another address than its origin's /robots.txt must follow from such a request:
// otherwise any page could be labelled as a robots.txt, which needs no verdict.
type redirectKeeper struct {
	open map[int64]hop // without an answer so far, by number of the request
	led  map[hop]bool  // answered by a redirect, or with an unknown answer
}

func newRedirectKeeper() redirectKeeper {
	return redirectKeeper{open: map[int64]hop{}, led: map[hop]bool{}}
}

// request adds a request for a robots.txt, and reports whether it is at its origin, or
// may be the target of a recorded redirect from there.
func (k *redirectKeeper) request(n int64, q *Request) (follows bool) {
	k.open[n] = hop{q.Origin, q.URL}
	return q.URL == q.Origin+"/robots.txt" || k.led[hop{q.Origin, q.Referrer}]
}

// answer adds an answer. The ledger does not record the target of a redirect.
func (k *redirectKeeper) answer(a *Answer) {
	if h, ok := k.open[a.Request]; ok && a.Status >= 300 && a.Status < 400 {
		k.led[h] = true
	}
	delete(k.open, a.Request)
}

// interrupt ends a killed run: the ledger may lack its last answers.
func (k *redirectKeeper) interrupt() {
	for _, h := range k.open {
		k.led[h] = true
	}
	clear(k.open)
}
