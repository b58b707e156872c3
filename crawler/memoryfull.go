package crawler

import (
	"errors"
	"time"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// fullRest is how long a URL waits after its visit got no memory before its request was
// sent.
const fullRest = 5 * time.Second

// countFull counts a visit that got no memory for its body, and logs the first of a
// series.
func (c *Crawler) countFull(v *Visit) {
	var full *bodymem.FullError
	if !errors.As(v.Err, &full) {
		return
	}
	c.tally.full.Add(1)
	if full.FirstInSeries {
		c.Log.Warn("bodies take all of their memory; visits that get none are made again later, and no host is charged",
			"limit", full.MemorySize, "url", v.URL())
	}
}
