package crawler

// HeldResources counts what a crawl holds for visits in progress.
type HeldResources struct {
	HostLeases       int // leases, as the host table counts them
	FirstVisitTokens int // first visits to pages, as the budgets of hosts count them
	TDMRepLookups    int // lookups of a tdmrep.json
}

// CountHeldResources returns what the crawl holds now.
func (c *Crawler) CountHeldResources() (held HeldResources) {
	c.hostTable.mu.Lock()
	for _, m := range c.hostTable.hosts {
		held.HostLeases += m.leaseCount
		held.FirstVisitTokens += len(m.firstVisitTokens)
	}
	c.hostTable.mu.Unlock()
	lookups := &c.prerequisites.tdmrepCache
	lookups.mu.Lock()
	defer lookups.mu.Unlock()
	held.TDMRepLookups = len(lookups.lookupLeaseTokens)
	return held
}

// PagesBegun returns the page visits that the run's budget counts.
func (c *Crawler) PagesBegun() int64 { return c.budget.pagesBegun.Load() }

// WatchBrakes makes a crawl whose steps are made one by one react to changes of its brakes, as Run
// does, until stop is called.
func (c *Crawler) WatchBrakes() (stop func()) {
	c.waitlist.brakesChanged = make(chan struct{}, 1)
	return c.Brakes.NotifyOnChange(c.onBrakesChanged)
}

// NewTicket makes a ticket outside a crawl.
var NewTicket = newTicket
