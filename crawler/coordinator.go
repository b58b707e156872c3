package crawler

import "time"

// A Coordinator is the other processes that work on the same crawl, as far as a visit
// depends on them, and the limits of all together. Its methods are called by many
// workers at a time, and must not block.
type Coordinator interface {
	// CheckVisit returns nil if a visit may begin at now, or else a *politeness.VisitDelayedError: it is
	// not known whether others have said that it must not.
	CheckVisit(now time.Time) error
	// AcquireCrawlPageBudget counts a page that is about to be visited. It returns a *politeness.VisitDelayedError
	// if all that are permitted for now have been visited, and ErrPages if no more
	// will be.
	AcquireCrawlPageBudget() error
	// ReleaseCrawlPageBudget takes back the counting of a visit that was not made.
	ReleaseCrawlPageBudget()
	// AddBodyBytes counts the bytes of a body, as decoded.
	AddBodyBytes(bytes int64)
}

// checkVisitWithCoordinator is Coordinator.CheckVisit, of a crawl that may be alone.
func (c *Crawler) checkVisitWithCoordinator(now time.Time) error {
	if c.Coordinator == nil {
		return nil
	}
	return c.Coordinator.CheckVisit(now)
}

// acquireCrawlPageBudget counts a page that is about to be visited, and returns why it may not be.
func (c *Crawler) acquireCrawlPageBudget() error {
	if n := c.pagesBegun.Add(1); c.Settings.MaxPages > 0 && n > c.Settings.MaxPages {
		return ErrPages
	}
	if c.Coordinator == nil {
		return nil
	}
	err := c.Coordinator.AcquireCrawlPageBudget()
	if err != nil {
		c.pagesBegun.Add(-1)
	}
	return err
}

// releaseCrawlPageBudget takes back what page did.
func (c *Crawler) releaseCrawlPageBudget() {
	c.pagesBegun.Add(-1)
	if c.Coordinator != nil {
		c.Coordinator.ReleaseCrawlPageBudget()
	}
}

// addBodyBytes counts the bytes of a body.
func (c *Crawler) addBodyBytes(bytes int) {
	c.bodyBytesReceived.Add(int64(bytes))
	if c.Coordinator != nil {
		c.Coordinator.AddBodyBytes(int64(bytes))
	}
}
