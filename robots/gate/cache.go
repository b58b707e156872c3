package gate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An originCache holds the origins in play, at most limit of them but for those
// whose lookup is under way. What it forgets is in the notes.
type originCache struct {
	maxOrigins int

	mu      sync.RWMutex // guards entries
	entries map[decorum.Origin]*originEntry
}

// An originEntry is what a Gate holds in memory of one origin.
type originEntry struct {
	state atomic.Pointer[originState] // nil: the notes have not been read; stored with mu held, loaded without

	// mu guards the fields below, and the notes of the origin while the state is worked out
	// from them or they are changed.
	mu            sync.Mutex
	inFlightFetch fetchLease
	evicted       bool // the entry is no longer in originCache.entries: look the origin up again
}

// A fetchLease is the right to make the current visit of a lookup (FETCH-31). It
// runs out, so that a worker that died does not close the origin for ever.
type fetchLease struct {
	id            uint64 // 0: nobody has it
	expiresAt     time.Time
	redirectCount int
}

func (c fetchLease) isActive(now time.Time) bool { return c.id != 0 && now.Before(c.expiresAt) }

// entryIfCached returns the origin's entry, nil if it is not in memory.
func (m *originCache) entryIfCached(o decorum.Origin) *originEntry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.entries[o]
}

// stateIfCached returns the origin's state, nil if it is not in memory.
func (m *originCache) stateIfCached(o decorum.Origin) *originState {
	if e := m.entryIfCached(o); e != nil {
		return e.state.Load()
	}
	return nil
}

// getOrCreateLocked returns the origin's entry, locked.
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

// evictOne drops an entry that nobody is using: any will do, for it costs one
// reading of a note to have it back. m.mu is held; TryLock keeps it from
// waiting for somebody's I/O.
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

// releaseFetchLease ends the fetch lease that c was made for, if c still has it.
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
