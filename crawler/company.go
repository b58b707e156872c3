package crawler

import "time"

// A Company is the other processes that work on the same crawl, as far as a visit
// depends on them. Its methods are called by many workers at a time, and must not
// block.
type Company interface {
	// May returns nil if a visit may begin at now, or else a *politeness.Busy: it is
	// not known whether others have said that it must not.
	May(now time.Time) error
}

// may is May, of a crawl that may be alone.
func (c *Crawler) may(now time.Time) error {
	if c.Company == nil {
		return nil
	}
	return c.Company.May(now)
}
