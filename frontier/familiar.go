package frontier

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// familiar remembers URLs that are in the seen set, by their hashes: links that are on
// each page of a site need neither be judged nor looked up again. Nothing that is seen
// is ever unseen, unless the store has lost it.
type familiar struct {
	seed    maphash.Seed
	shelves atomic.Pointer[shelves] // nil: it remembers nothing
}

// A shelf is where some hashes may be, in any of its places: a line of a processor's
// cache. 0 is none.
type shelf [8]atomic.Uint64

// mostFamiliar is how many URLs are remembered, in 8 bytes each.
const mostFamiliar = 1 << 17

type shelves [mostFamiliar / len(shelf{})]shelf

// of returns the hash of u.
func (f *familiar) of(u decorum.URL) uint64 { return maphash.String(f.seed, u.String()) }

// shelf returns where a hash may be.
func (s *shelves) shelf(hash uint64) *shelf { return &s[hash%uint64(len(s))] }

// open returns the shelves. There are some from the first URL on: who looks at a crawl
// that does not go on has a Frontier, too.
func (f *familiar) open() *shelves {
	if s := f.shelves.Load(); s != nil {
		return s
	}
	f.shelves.CompareAndSwap(nil, new(shelves))
	return f.shelves.Load()
}

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

// meet remembers the entries that the store has, to judge by what became of them. They
// are clean, but for the crawl's own errands.
func (f *familiar) meet(entries []storage.Entry, fates []storage.Fate) {
	for i, fate := range fates {
		e := &entries[i]
		if fate == storage.Over || e.Request != nil || e.Source == storage.Robots {
			continue
		}
		hash := f.of(e.URL)
		if shelf := f.open().shelf(hash); !shelf.holds(hash) {
			shelf.put(hash)
		}
	}
}

// forget forgets all: the store may not have it any more.
func (f *familiar) forget() { f.shelves.Store(nil) }

// knows reports whether u is remembered.
func (f *familiar) knows(u decorum.URL) bool {
	s := f.shelves.Load()
	if s == nil {
		return false
	}
	hash := f.of(u)
	return s.shelf(hash).holds(hash)
}

// Knows reports whether u was offered lately, so that to offer it as a link again
// would change nothing: it would still be queued under the same name. It is quick, and
// asks nobody: false says nothing.
func (f *Frontier) Knows(u decorum.URL) bool {
	return f.familiar.knows(u) && (f.cfg.Clean == nil || f.cfg.Clean(u) == u) && f.staysPlain(u)
}
