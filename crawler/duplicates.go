package crawler

import (
	"hash/maphash"
	"sync"
)

// countDuplicate counts v if its page says that it stands for another, or has the
// body of one that was visited before. A page that was visited before itself is
// counted then, and one that is not to be used is not.
func (c *Crawler) countDuplicate(v *Visit) {
	if !v.OK() || v.Revisits() || v.Lease.Request != nil || v.withheld {
		return
	}
	if to := v.Canonical(); !to.IsZero() && to != v.URL() && c.clean(to) != v.Lease.URL {
		c.tally.renamed.Add(1)
	}
	if body := v.Response.Body; len(body) > 0 && !v.Response.Truncated && c.bodies.known(body, v.URL().String()) {
		c.tally.duplicates.Add(1)
	}
}

// mostBodies is how many bodies are remembered at least; twice as many at most, in
// about 4 MB.
const mostBodies = 50_000

// bodies remembers which pages had which bodies lately.
type bodies struct {
	once                   sync.Once
	seed                   maphash.Seed
	mu                     sync.Mutex
	lately[uint64, uint64] // by the hash of a body: that of the URL that had it first
}

// known reports whether the body was that of another URL before, and remembers
// it.
func (b *bodies) known(body []byte, url string) bool {
	b.once.Do(func() { b.seed = maphash.MakeSeed() })
	key, own := maphash.Bytes(b.seed, body), maphash.String(b.seed, url)
	b.mu.Lock()
	defer b.mu.Unlock()
	first, known := b.find(key)
	if !known {
		first = own
	}
	b.keep(key, first, mostBodies)
	return first != own
}
