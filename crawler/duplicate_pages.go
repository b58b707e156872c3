package crawler

import (
	"encoding/binary"
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
	if len(v.Response.Body) > 0 && !v.Response.Truncated && c.bodies.known(c.bodyKey(v), v.URL().String()) {
		c.tally.duplicates.Add(1)
	}
}

// bodyKey returns what the body of v is known by. Where visits are written down, that
// is what is written.
func (c *Crawler) bodyKey(v *Visit) uint64 {
	if c.Recorder == nil {
		return c.bodies.hash(v.Response.Body)
	}
	sum := v.BodySHA256()
	return binary.LittleEndian.Uint64(sum[:])
}

// contentSeenSize is how many bodies are remembered at least; twice as many at most, in
// about 4 MB.
const contentSeenSize = 50_000

// bodies remembers which pages had which bodies lately.
type bodies struct {
	once                   sync.Once
	seed                   maphash.Seed
	mu                     sync.Mutex
	lately[uint64, uint64] // by the hash of a body: that of the URL that had it first
}

// hash returns a quick hash.
func (b *bodies) hash(text []byte) uint64 {
	b.once.Do(func() { b.seed = maphash.MakeSeed() })
	return maphash.Bytes(b.seed, text)
}

// known reports whether the body with that hash was another URL's before, and
// remembers it.
func (b *bodies) known(key uint64, url string) bool {
	own := b.hash([]byte(url))
	b.mu.Lock()
	defer b.mu.Unlock()
	first, known := b.find(key)
	if !known {
		first = own
	}
	b.keep(key, first, contentSeenSize)
	return first != own
}
