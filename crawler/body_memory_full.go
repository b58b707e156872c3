package crawler

import (
	"errors"
	"time"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// memoryRetryDelay is how long a URL waits after its visit got no memory before its request was
// sent.
const memoryRetryDelay = 5 * time.Second

// countIfBodyMemoryFull counts a visit that got no memory for its body, and logs the first of a
// series.
func (c *Crawler) countIfBodyMemoryFull(v *Visit) {
	var fullErr *bodymem.FullError
	if !errors.As(v.Err, &fullErr) {
		return
	}
	c.counters.count(func(s *Stats) { s.MemoryDeniedVisits++ })
	if fullErr.FirstInSeries {
		c.Log.Warn("bodies take all of their memory; visits that get none are made again later, and no host is charged",
			"limit", fullErr.MemorySize, "url", v.URL())
	}
}
