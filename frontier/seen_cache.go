package frontier

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A hashCache remembers texts by their hashes, for as long as it has room. Its methods
// may be called at the same time.
type hashCache struct {
	seed    maphash.Seed
	size    int                     // texts that it has room for, in 8 bytes each
	shelves atomic.Pointer[[]shelf] // nil: it remembers nothing
}

// newHashCache returns a cache with room for size texts. It takes the room with the
// first text: a program that only inspects a crawl has a Frontier, too.
func newHashCache(size int) hashCache {
	return hashCache{seed: maphash.MakeSeed(), size: size}
}

// A shelf is where some hashes may be, in any of its places: a line of a processor's
// cache. 0 is none.
type shelf [8]atomic.Uint64

// holds reports whether the cache remembers text.
func (c *hashCache) holds(text string) bool {
	shelves := c.shelves.Load()
	if shelves == nil {
		return false
	}
	hash := maphash.String(c.seed, text)
	return shelfOf(*shelves, hash).holds(hash)
}

// remember adds text to the cache, and drops another if its shelf is full.
func (c *hashCache) remember(text string) {
	shelves := c.shelves.Load()
	for shelves == nil {
		empty := make([]shelf, c.size/len(shelf{}))
		c.shelves.CompareAndSwap(nil, &empty)
		shelves = c.shelves.Load()
	}
	hash := maphash.String(c.seed, text)
	if shelf := shelfOf(*shelves, hash); !shelf.holds(hash) {
		shelf.put(hash)
	}
}

// forget clears the cache.
func (c *hashCache) forget() { c.shelves.Store(nil) }

// shelfOf returns where a hash may be.
func shelfOf(shelves []shelf, hash uint64) *shelf { return &shelves[hash%uint64(len(shelves))] }

func (s *shelf) holds(hash uint64) bool {
	for i := range s {
		if s[i].Load() == hash {
			return true
		}
	}
	return false
}

// put puts a hash into a place that is free, or else into one that it names itself.
func (s *shelf) put(hash uint64) {
	for i := range s {
		if s[i].CompareAndSwap(0, hash) {
			return
		}
	}
	s[hash>>32%uint64(len(s))].Store(hash)
}

// familiar remembers URLs that are in the seen set: links that are on each page of a
// site need neither be judged nor looked up again. Nothing that is seen is ever unseen,
// unless the store has lost it.
type familiar struct{ hashCache }

// maxRecentURLs is how many URLs are remembered.
const maxRecentURLs = 1 << 17

// meet remembers the entries that the store has, to judge by what became of them. They
// are clean, but for the crawl's own errands.
func (f *familiar) meet(entries []storage.Entry, fates []storage.Fate) {
	for i, fate := range fates {
		e := &entries[i]
		if fate == storage.Over || e.Request != nil || e.Source == storage.Robots {
			continue
		}
		f.remember(e.URL.String())
	}
}

// Knows reports whether u was offered lately, so that to offer it as a link again
// would change nothing: it would still be queued under the same name. It is quick, and
// asks nobody: false says nothing.
func (f *Frontier) Knows(u decorum.URL) bool {
	return f.familiar.holds(u.String()) && (f.cfg.Clean == nil || f.cfg.Clean(u) == u) && f.staysPlain(u)
}
