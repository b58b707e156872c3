package ledger

// A hop names a request for a robots.txt: the origin whose file is asked for, and the URL
// that is.
type hop struct{ origin, url string }

// A redirectKeeper knows which requests for a robots.txt led on. A request for one at
// another address than its origin's /robots.txt must follow from such a request: any page
// could else be labelled as a robots.txt, which needs no verdict.
type redirectKeeper struct {
	open map[int64]hop // without an answer so far, by number of the request
	led  map[hop]bool  // answered by a redirect, or not known how
}

func newRedirectKeeper() redirectKeeper {
	return redirectKeeper{open: map[int64]hop{}, led: map[hop]bool{}}
}

// request enters a request for a robots.txt, and reports whether it is at its origin, or
// where a redirect from there leads as far as the records tell.
func (k *redirectKeeper) request(n int64, q *Request) (follows bool) {
	k.open[n] = hop{q.Origin, q.URL}
	return q.URL == q.Origin+"/robots.txt" || k.led[hop{q.Origin, q.Referrer}]
}

// answer enters an answer. Where a redirect leads is not recorded.
func (k *redirectKeeper) answer(a *Answer) {
	if h, ok := k.open[a.Request]; ok && a.Status >= 300 && a.Status < 400 {
		k.led[h] = true
	}
	delete(k.open, a.Request)
}

// interrupt ends a run that was killed: its last answers may not have been written down.
func (k *redirectKeeper) interrupt() {
	for _, h := range k.open {
		k.led[h] = true
	}
	clear(k.open)
}
