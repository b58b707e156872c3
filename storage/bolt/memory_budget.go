package bolt

import "sync/atomic"

// A Share is memory for one store that several divide: each that is open has
// an equal part of Options.Held, Options.Cached and Options.Hosts, and never less
// than 4,096. The zero value is ready; a Share must not be copied.
type Share struct{ stores atomic.Int64 }

// minShare keeps a store from writing every change by itself because a great
// many others are open: of changes it is less than a MiB.
const minShare = 4096

// join counts a store in, until it calls leave. A store without a Share has
// everything for itself.
func (s *Share) join() (leave func()) {
	if s == nil {
		return func() {}
	}
	s.stores.Add(1)
	return func() { s.stores.Add(-1) }
}

// of returns a store's part of most.
func (s *Share) of(total int) int {
	if s == nil {
		return total
	}
	return max(total/int(max(1, s.stores.Load())), min(total, minShare))
}

// maxBufferedChanges is how many changes the store may hold: see Options.Held.
func (s *Store) maxBufferedChanges() int { return s.opts.Share.of(s.opts.Held) }

// maxCachedWeight is how many URLs the store may keep at hand: see Options.Cached.
func (s *Store) maxCachedWeight() int { return s.opts.Share.of(s.opts.Cached) }
