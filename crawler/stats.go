package crawler

import "sync/atomic"

// Stats counts what a Crawler has done, in all its runs since it was made.
type Stats struct {
	Pages    int64 // page visits that were answered
	Robots   int64 // visits to a robots.txt
	Sitemaps int64 // visits to a sitemap
	TDMReps  int64 // visits to a tdmrep.json
	Bytes    int64 // of bodies, as decoded
	Errors   int64 // visits without a whole answer, and answers of 5xx and 429
	Blocked  int64 // URLs that robots.txt disallows, or tdmrep.json
	Withheld int64 // pages whose header or text asks not to be used for what the crawl is for
	Retries  int64 // pages that will be asked for again
	Failed   int64 // pages given up after too many attempts, until their revisit if they were there before
	Panics   int64 // callbacks that panicked
	Local    int64 // visits that failed on this machine; they are made again, and no host is charged
	Full     int64 // of Local, those that got no memory for the body of the answer
	InDoubt  int64 // requests that must not be sent twice, were sent, and got no whole answer

	Failures  [Failures]int64 // visits to pages and sitemaps that failed, by class
	Revisits  int64           // of Pages, those to pages that had been visited before
	Unchanged int64           // revisits, to sitemaps too, that found nothing new
	Recalled  int64           // pages that were due at once, because a sitemap said so

	Redirects    int64 // pages that redirected
	RedirectsNew int64 // of them, to a URL that was queued: no loop
	// Of pages answered with 2xx, the first time that they are visited:
	Renamed    int64 // that name another URL as their canonical one
	Duplicates int64 // whose body is that of a page visited lately, of 50,000 at least

	// Of the process: why no visit may begin now, except for a probe of the machine's
	// network (empty: visits begin), and how many visits are made at a time because the
	// machine is too busy for more (0: no such limit).
	Paused     string
	VisitLimit int

	Folded int64 // sightings of URLs on http that were taken for their twins on https
}

type tally struct {
	pages, robots, sitemaps, bytes, errors, blocked, retries, failed, panics, inDoubt atomic.Int64
	withheld, reservations, localFaults, full                                         atomic.Int64

	failures                      [Failures]atomic.Int64
	revisits, unchanged, recalled atomic.Int64
	redirects, redirectsNew       atomic.Int64
	renamed, duplicates           atomic.Int64
}

// visit counts one visit.
func (t *tally) visit(v *Visit) {
	switch {
	case v.Clearance.ForRobots():
		t.robots.Add(1)
	case isDetour(v.Lease, v.Clearance):
		t.reservations.Add(1)
	case !isPage(v.Lease, v.Clearance):
		t.sitemaps.Add(1)
	case v.Response != nil:
		t.pages.Add(1)
		if v.Revisits() {
			t.revisits.Add(1)
		}
	}
	if v.Response == nil && !v.brokenOff || passing(v.Status()) {
		t.errors.Add(1)
	}
	if v.Response != nil {
		t.bytes.Add(int64(v.Bytes()))
	}
}

// Stats returns what the crawl has done so far. It may be called at any time.
func (c *Crawler) Stats() Stats {
	t := &c.tally
	s := Stats{
		Pages: t.pages.Load(), Robots: t.robots.Load(), Sitemaps: t.sitemaps.Load(),
		Bytes: t.bytes.Load(), Errors: t.errors.Load(), Blocked: t.blocked.Load(),
		Retries: t.retries.Load(), Failed: t.failed.Load(), Panics: t.panics.Load(), InDoubt: t.inDoubt.Load(),
		Local: t.localFaults.Load(), Full: t.full.Load(),
		Revisits: t.revisits.Load(), Unchanged: t.unchanged.Load(), Recalled: t.recalled.Load(),
		Redirects: t.redirects.Load(), RedirectsNew: t.redirectsNew.Load(),
		Withheld: t.withheld.Load(), TDMReps: t.reservations.Load(),
		Renamed: t.renamed.Load(), Duplicates: t.duplicates.Load(),
	}
	if c.Limits != nil {
		if b := c.Limits.Breaker().State(); b.Open {
			s.Paused = b.Why
		}
		s.VisitLimit = c.Limits.Load().Limit()
	}
	if c.Frontier != nil {
		s.Folded = c.Frontier.Folded()
	}
	for f := range s.Failures {
		s.Failures[f] = t.failures[f].Load()
	}
	return s
}
