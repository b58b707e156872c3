package frontier

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// familiar remembers URLs that are in the seen set, by their hashes: links that are on
// each page of a site need neither be judged nor looked up again. Each has the one
// place where it may be, and nothing that is seen is ever unseen.
type familiar struct {
	seed   maphash.Seed
	places []atomic.Uint64
}

// mostFamiliar is how many URLs are remembered, in 8 bytes each. A power of two.
const mostFamiliar = 1 << 17

func newFamiliar() familiar {
	return familiar{maphash.MakeSeed(), make([]atomic.Uint64, mostFamiliar)}
}

// of returns the hash of u, and its place.
func (f familiar) of(u decorum.URL) (uint64, *atomic.Uint64) {
	h := maphash.String(f.seed, u.String())
	return h, &f.places[h%mostFamiliar]
}

// meet remembers the entries that the store has, to judge by what became of them.
func (f familiar) meet(entries []storage.Entry, fates []storage.Fate) {
	for i, fate := range fates {
		if e := &entries[i]; fate != storage.Over && e.Request == nil && e.For.IsZero() {
			h, place := f.of(e.URL)
			place.Store(h)
		}
	}
}

// Knows reports whether u was offered lately, so that to offer it as a link again
// would change nothing. It is quick, and asks nobody: false says nothing.
func (f *Frontier) Knows(u decorum.URL) bool {
	h, place := f.familiar.of(u)
	return place.Load() == h
}
