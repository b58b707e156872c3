// Package recent provides a bounded map of recently used entries: for caches of what a store can
// return again, and for facts that newer ones may displace. Do not use it for an entry that must
// stay while it is in use, or that expires at a certain time. crawler, collyfetch, httpfetch,
// frontier, the ledger and the API use it. Begin with Map.
//
// The package starts no goroutine and has no lock.
package recent

// A Map holds recently used entries in two generations. When the newer generation is full it
// becomes the older one, and the previous older one is dropped. A Map of a given size therefore
// holds the last size entries that were used, and at most twice as many. All calls on one Map must
// pass the same size, at least 1. The zero Map is empty. A Map is not safe for concurrent use.
type Map[K comparable, V any] struct {
	newer, older map[K]V // no key is in both
}

// Peek returns the value of key, and false if the Map does not hold it. It does not count as a use.
func (m *Map[K, V]) Peek(key K) (v V, ok bool) {
	if v, ok = m.newer[key]; !ok {
		v, ok = m.older[key]
	}
	return v, ok
}

// Get returns the value of key, and false if the Map does not hold it. It counts as a use.
func (m *Map[K, V]) Get(key K, size int) (v V, ok bool) {
	if v, ok = m.newer[key]; ok {
		return v, true
	}
	if v, ok = m.older[key]; ok {
		m.Put(key, v, size)
	}
	return v, ok
}

// Put sets the value of key. It counts as a use.
func (m *Map[K, V]) Put(key K, v V, size int) {
	if _, exists := m.newer[key]; m.newer == nil || len(m.newer) >= size && !exists {
		m.newer, m.older = make(map[K]V), m.newer
	}
	m.newer[key] = v
	delete(m.older, key)
}

// Delete removes key.
func (m *Map[K, V]) Delete(key K) {
	delete(m.newer, key)
	delete(m.older, key)
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.newer) + len(m.older) }
