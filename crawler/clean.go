package crawler

import (
	"context"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// alias returns the page that l is by the Clean-param rules of its origin, and
// false if it is that page already. They may not have been known when l was
// discovered. The gate, asked about l, has just answered cl or err: only where
// it has judged l are the rules known that hold now. The crawl's own errands
// are as the site's robots.txt names them.
func (c *Crawler) alias(l storage.Lease, cl robots.Clearance, err error) (decorum.URL, bool) {
	judged := errors.Is(err, decorum.Disallowed) || err == nil && !cl.ForRobots()
	if !judged || l.Source == storage.Robots {
		return decorum.URL{}, false
	}
	clean := c.Gate.Clean(l.URL)
	return clean, clean != l.URL
}

// replace queues clean in the place of l, which is then given up without a
// visit: clean is the page that is known, requested and judged (CLEAN-23,
// CLEAN-24).
func (c *Crawler) replace(ctx context.Context, l storage.Lease, clean decorum.URL) (storage.Ack, error) {
	e := l.Entry
	e.URL, e.Attempt = clean, 0
	if _, err := c.Frontier.Discover(ctx, e); err != nil {
		return storage.Ack{Outcome: storage.Again}, err
	}
	return storage.Ack{Outcome: storage.Gone}, nil
}
