package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An originCache caches the states of origins. It evicts one before it adds one beyond maxOrigins,
// unless all entries are locked or their robots.txt is being fetched. An evicted state is still in the
// notes.
type originCache struct {
	maxOrigins int // set before the first use

	mu      sync.RWMutex // guards entries
	entries map[decorum.Origin]*originEntry
}

// An originEntry is the data of one origin in an originCache.
type originEntry struct {
	state atomic.Pointer[originState] // nil: the notes have not been read; stored with mu held, loaded without

	// mu guards inFlightFetch, evicted and stores to state. It is also held while the notes of the
	// origin are changed, and while state is compiled from them.
	mu            sync.Mutex
	inFlightFetch fetchLease
	evicted       bool // the entry was removed from originCache.entries: get the entry again
}

// A fetchLease is the right to make the current request for a robots.txt, which one caller has at a
// time (FETCH-31). It expires, so that a worker that died does not block the origin forever.
type fetchLease struct {
	id            uint64 // the Clearance.fetchID of its holder; 0: no caller has the lease
	expiresAt     time.Time
	redirectCount int // see Clearance
}

// isActive reports whether a caller has the lease at the time now.
func (c fetchLease) isActive(now time.Time) bool { return c.id != 0 && now.Before(c.expiresAt) }

// entryIfCached returns the entry of the origin, nil if it is not cached.
func (m *originCache) entryIfCached(o decorum.Origin) *originEntry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.entries[o]
}

// stateIfCached returns the state of the origin, nil if it is not cached.
func (m *originCache) stateIfCached(o decorum.Origin) *originState {
	if e := m.entryIfCached(o); e != nil {
		return e.state.Load()
	}
	return nil
}

// getOrCreateLocked returns the entry of the origin with its mu locked; the caller unlocks it.
func (m *originCache) getOrCreateLocked(o decorum.Origin, now time.Time) *originEntry {
	for {
		e := m.getOrCreate(o, now)
		e.mu.Lock()
		if !e.evicted {
			return e
		}
		e.mu.Unlock()
	}
}

// getOrCreate returns the entry of the origin. It evicts another entry if the cache is full.
func (m *originCache) getOrCreate(o decorum.Origin, now time.Time) *originEntry {
	e := m.entryIfCached(o)
	if e != nil {
		return e
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[o]; e != nil {
		return e
	}
	if len(m.entries) >= m.maxOrigins {
		m.evictOne(now)
	}
	e = new(originEntry)
	m.entries[o] = e
	return e
}

// evictOne removes an arbitrary entry that is not in use, if there is one. The choice does not matter,
// because restoring an entry costs one read of a note. The caller holds m.mu. TryLock keeps evictOne
// from waiting for the I/O of another goroutine.
func (m *originCache) evictOne(now time.Time) {
	for o, e := range m.entries {
		if !e.mu.TryLock() {
			continue
		}
		e.evicted = !e.inFlightFetch.isActive(now)
		evicted := e.evicted
		e.mu.Unlock()
		if evicted {
			delete(m.entries, o)
			return
		}
	}
}

// releaseFetchLease ends the fetch lease of c, unless it has expired and another Clearance has it.
func (m *originCache) releaseFetchLease(c Clearance) {
	e := m.entryIfCached(c.origin)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inFlightFetch.id == c.fetchID {
		e.inFlightFetch = fetchLease{}
	}
}
