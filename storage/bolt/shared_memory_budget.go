package bolt

import "sync/atomic"

// A SharedMemoryBudget is memory for one store that several divide: each that is open has
// an equal part of Options.MaxBufferedChanges, Options.MaxCachedURLs and Options.MaxHostsInMemory, and never less
// than 4,096. The zero value is ready; a SharedMemoryBudget must not be copied.
type SharedMemoryBudget struct{ openStoreCount atomic.Int64 }

// minShare keeps a store from writing every change by itself because a great
// many others are open: of changes it is less than a MiB.
const minShare = 4096

// addStore counts a store in, until it calls leave. A store without a SharedMemoryBudget has
// everything for itself.
func (s *SharedMemoryBudget) addStore() (removeStore func()) {
	if s == nil {
		return func() {}
	}
	s.openStoreCount.Add(1)
	return func() { s.openStoreCount.Add(-1) }
}

// storeShareOf returns a store's part of most.
func (s *SharedMemoryBudget) storeShareOf(total int) int {
	if s == nil {
		return total
	}
	return max(total/int(max(1, s.openStoreCount.Load())), min(total, minShare))
}
