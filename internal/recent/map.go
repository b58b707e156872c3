// Package recent remembers what was used lately, in a bounded map: caches of what can be read again
// from a store, and facts that may be forgotten when many newer ones have come. It is no place for an
// entry that must stay while somebody uses it, nor for one that ends at a time of its own. The crawler,
// collyfetch, httpfetch, frontier, the ledger and the API keep their caches in it. Begin with Map.
//
// The package starts no goroutine and has no lock.
package recent

// A Map holds the entries that were used last in two generations. When the newer one is full it becomes
// the older one, which is dropped. So a Map of a given size holds the last size entries that were used,
// and at most twice as many. All calls on one Map give the same size, which is at least 1. The zero
// value is an empty Map. Its methods must not be called at the same time.
type Map[K comparable, V any] struct {
	newer, older map[K]V // no key is in both
}

// Peek returns the value of a key, and false if the Map has none. It is no use of the entry.
func (m *Map[K, V]) Peek(key K) (v V, ok bool) {
	if v, ok = m.newer[key]; !ok {
		v, ok = m.older[key]
	}
	return v, ok
}

// Get returns the value of a key, and false if the Map has none. It is a use of the entry.
func (m *Map[K, V]) Get(key K, size int) (v V, ok bool) {
	if v, ok = m.newer[key]; ok {
		return v, true
	}
	if v, ok = m.older[key]; ok {
		m.Put(key, v, size)
	}
	return v, ok
}

// Put sets the value of a key. It is a use of the entry.
func (m *Map[K, V]) Put(key K, v V, size int) {
	if _, exists := m.newer[key]; m.newer == nil || len(m.newer) >= size && !exists {
		m.newer, m.older = make(map[K]V), m.newer
	}
	m.newer[key] = v
	delete(m.older, key)
}

// Delete removes the entry of a key, if there is one.
func (m *Map[K, V]) Delete(key K) {
	delete(m.newer, key)
	delete(m.older, key)
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.newer) + len(m.older) }
