package crawler

import "sync"

// Stats counts what a Crawler has done, in all its runs since it was made.
type Stats struct {
	Pages              int64 // page visits that were answered
	RobotsFetches      int64 // visits to a robots.txt
	SitemapFetches     int64 // visits to a sitemap
	TDMRepFetches      int64 // visits to a tdmrep.json
	Bytes              int64 // of bodies, as decoded
	Errors             int64 // visits without a whole answer, and answers of 5xx and 429
	BlockedURLs        int64 // URLs that robots.txt disallows, or tdmrep.json
	PagesWithheld      int64 // pages whose header or text asks not to be used for what the crawl is for
	Retries            int64 // pages that will be asked for again
	GivenUp            int64 // pages given up after too many attempts, until their revisit if they were there before
	Panics             int64 // callbacks that panicked
	LocalFaults        int64 // visits that failed on this machine; they are made again, and no host is charged
	MemoryDeniedVisits int64 // of LocalFaults, those that got no memory for the body of the answer
	InDoubt            int64 // requests that must not be sent twice, were sent, and got no whole answer

	Failures             [FailureClassCount]int64 // visits to pages and sitemaps that failed, by class
	Revisits             int64                    // of Pages, those to pages that had been visited before
	Unchanged            int64                    // revisits, to sitemaps too, that found nothing new
	RescheduledBySitemap int64                    // pages that were due at once, because a sitemap said so

	Redirects          int64 // pages that redirected
	RedirectsToNewURLs int64 // of them, to a URL that was queued: no loop
	// Of pages answered with 2xx, the first time that they are visited:
	NonCanonical    int64 // that name another URL as their canonical one
	DuplicateBodies int64 // whose body is that of a page visited lately, of 50,000 at least

	// Of the process: why no visit may begin now, except for a probe of the machine's
	// network (empty: visits begin), and how many visits are made at a time because the
	// machine is too busy for more (0: no such limit).
	MachinePauseReason      string
	MachineConcurrencyLimit int

	HTTPSUpgrades int64 // sightings of URLs on http that were taken for their twins on https
}

// counters count what the workers do side by side.
type counters struct {
	mu    sync.Mutex // guards stats
	stats Stats      // but for what Crawler.Stats takes from elsewhere
}

// count adds to what was counted.
func (t *counters) count(add func(*Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	add(&t.stats)
}

// countVisit counts one visit.
func (s *Stats) countVisit(v *Visit) {
	switch {
	case v.Kind.IsRobots():
		s.RobotsFetches++
	case v.Kind == TDMRepVisit:
		s.TDMRepFetches++
	case v.Kind == SitemapVisit:
		s.SitemapFetches++
	case v.Response != nil:
		s.Pages++
		if v.IsRevisit() {
			s.Revisits++
		}
	}
	if v.Response == nil && !v.interrupted || isTransientStatus(v.Status()) {
		s.Errors++
	}
	if v.Response != nil {
		s.Bytes += int64(v.BodyLen())
	}
}

// Stats returns what the crawl has done so far. It may be called at any time.
func (c *Crawler) Stats() Stats {
	var s Stats
	c.counters.count(func(counted *Stats) { s = *counted })
	if c.Limiter != nil {
		if b := c.Limiter.NetworkBreaker().State(); b.Open {
			s.MachinePauseReason = b.Reason
		}
		s.MachineConcurrencyLimit = c.Limiter.LocalOverloadLimiter().Limit()
	}
	if c.Frontier != nil {
		s.HTTPSUpgrades = c.Frontier.HTTPSUpgradeCount()
	}
	return s
}
