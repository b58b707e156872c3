package crawler

import "time"

// A Company is the other processes that work on the same crawl, as far as a visit
// depends on them, and the limits of all together. Its methods are called by many
// workers at a time, and must not block.
type Company interface {
	// May returns nil if a visit may begin at now, or else a *politeness.Busy: it is
	// not known whether others have said that it must not.
	May(now time.Time) error
	// Page counts a page that is about to be visited. It returns a *politeness.Busy
	// if all that are permitted for now have been visited, and ErrPages if no more
	// will be.
	Page() error
	// Unpage takes back the counting of a visit that was not made.
	Unpage()
	// Receive counts the bytes of a body, as decoded.
	Receive(bytes int64)
}

// may is Company.May, of a crawl that may be alone.
func (c *Crawler) may(now time.Time) error {
	if c.Company == nil {
		return nil
	}
	return c.Company.May(now)
}

// page counts a page that is about to be visited, and returns why it may not be.
func (c *Crawler) page() error {
	if n := c.pages.Add(1); c.Settings.MaxPages > 0 && n > c.Settings.MaxPages {
		return ErrPages
	}
	if c.Company == nil {
		return nil
	}
	err := c.Company.Page()
	if err != nil {
		c.pages.Add(-1)
	}
	return err
}

// unpage takes back what page did.
func (c *Crawler) unpage() {
	c.pages.Add(-1)
	if c.Company != nil {
		c.Company.Unpage()
	}
}

// received counts the bytes of a body.
func (c *Crawler) received(bytes int) {
	c.bytes.Add(int64(bytes))
	if c.Company != nil {
		c.Company.Receive(int64(bytes))
	}
}
