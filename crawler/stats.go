package crawler

import "sync"

// Stats counts what a Crawler has done in all its runs.
type Stats struct {
	Pages          int64 // answers to page visits
	RobotsFetches  int64 // visits to a robots.txt
	SitemapFetches int64 // visits to a sitemap
	TDMRepFetches  int64 // visits to a tdmrep.json
	HostTraffic          // of all hosts together
	Errors         int64 // visits without a whole answer, and answers of 408, 425, 429 and 5xx
	BlockedURLs    int64 // leased URLs that robots.txt or tdmrep.json disallows
	PagesWithheld  int64 // pages whose site objects to a purpose of the crawl
	Retries        int64 // failed pages scheduled for another attempt
	// GivenUp counts URLs that are not tried again: pages and sitemaps that failed too often, and requests
	// that a callback or the fetcher refused. A page that was there before waits for its revisit instead.
	// Pages that are missing, or that a handler drops, do not count.
	GivenUp            int64
	Panics             int64 // panics in callbacks
	LocalFaults        int64 // visits that failed on this machine; they are repeated, and no host is charged
	MemoryDeniedVisits int64 // of LocalFaults, those that got no memory for the body
	StaleConns         int64 // visits ended by a server that closed a kept-open connection; repeated, not charged
	InDoubt            int64 // requests that must not be sent twice, were sent, and got no whole answer

	Failures             [FailureClassCount]int64 // failed visits to pages and sitemaps, by class
	Revisits             int64                    // of Pages, those to pages visited before
	Unchanged            int64                    // revisits, also to sitemaps, that found the content unchanged
	RescheduledBySitemap int64                    // pages made due at once by a date in a sitemap

	Redirects          int64 // pages that redirected
	RedirectsToNewURLs int64 // of Redirects, those whose target was queued
	// Of pages answered with 2xx on their first visit:
	NonCanonical    int64 // those that name another URL as canonical
	DuplicateBodies int64 // those whose body another URL had, among the last 50,000 bodies or more

	// Of pages that LinksToFollow has read on their first visit:
	NoFollowLinks int64 // links that it left because the page asks robots not to follow them
	PagesToRender int64 // pages without links that scripts would fill: see extract.MountPoint

	// Why no visit of this process may begin now, except a probe of the network; empty if visits
	// may begin. And how many visits a busy machine allows at a time; 0 means no such limit.
	MachinePauseReason      string
	MachineConcurrencyLimit int

	HTTPSUpgrades int64 // http URLs that the frontier replaced by https, counted each time they are found
}

// counters are the Stats that all workers add to.
type counters struct {
	mu    sync.Mutex // guards stats
	stats Stats      // without the fields that Crawler.Stats reads elsewhere
}

// count calls add with the stats, under the lock.
func (t *counters) count(add func(*Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	add(&t.stats)
}

// HasSent reports whether the first byte of any request of c may have left.
func (c *Crawler) HasSent() bool { return c.hasSent.Load() }

// countVisit counts v by its kind, its result and its body.
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
	s.HostTraffic.Add(v.Traffic())
	if v.Response == nil && !v.interrupted || isTransientStatus(v.Status()) {
		s.Errors++
	}
}

// Stats returns what the crawl has done so far. Any goroutine may call it at any time.
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
