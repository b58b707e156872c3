package memory

import (
	"context"
	"maps"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// parkEntry adds e to the parked URLs of o.
func (m *Store) parkEntry(o *memoryOrigin, e storage.Entry) {
	o.parkedEntries = append(o.parkedEntries, e)
	m.parkedCount++
}

// Hold implements storage.Store.
func (m *Store) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	origin := m.getOrCreateOrigin(o)
	origin.Origin.HeldUntil, origin.Suspended = until, suspended
	m.schedule.UpdateOrigin(&origin.Origin)
	return nil
}

// RescheduleByLastmod implements storage.Store.
func (m *Store) RescheduleByLastmod(ctx context.Context, now time.Time,
	lastmods []storage.SitemapLastmod) (rescheduled int, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for _, s := range lastmods {
		// The seen set leads to pages that await their revisit. Another URL may have the fingerprint.
		w := m.seenURLs[seenKey{s.URL.Origin(), storage.Fingerprint(s.URL)}]
		if w == nil || w.URL != s.URL {
			continue
		}
		o := m.origins[s.URL.Origin()]
		if o.Queue.rescheduleIfModified(w, s.Modified, now) {
			rescheduled++
			m.schedule.UpdateOrigin(&o.Origin)
		}
	}
	return rescheduled, nil
}

// UnparkMatchingURLs implements storage.Store.
func (m *Store) UnparkMatchingURLs(ctx context.Context, o decorum.Origin,
	shouldUnpark func(storage.Entry) bool) (unparked int, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	if !o.IsZero() {
		return m.unpark(m.origins[o], shouldUnpark), nil
	}
	for _, origin := range m.origins {
		unparked += m.unpark(origin, shouldUnpark)
	}
	return unparked, nil
}

// unpark is UnparkMatchingURLs for one origin, nil if the Store does not have it. The caller holds m.mu.
func (m *Store) unpark(origin *memoryOrigin, shouldUnpark func(storage.Entry) bool) (unparked int) {
	if origin == nil || len(origin.parkedEntries) == 0 {
		return 0
	}
	var stillParked []storage.Entry
	for _, e := range origin.parkedEntries {
		if shouldUnpark(e) {
			origin.Queue.addEntry(e)
			unparked++
		} else {
			stillParked = append(stillParked, e)
		}
	}
	origin.parkedEntries = stillParked
	m.parkedCount -= unparked
	m.schedule.UpdateOrigin(&origin.Origin)
	return unparked
}

// ForgetOriginURLs empties the queue of an origin and removes its URLs from the seen set, so that they
// can be added again. Leased URLs stay in the seen set. The clock of the host, the hold and the notes of
// the origin stay, too. The call looks at every entry of the seen set: it is for a Store that holds few
// URLs at a time.
func (m *Store) ForgetOriginURLs(ctx context.Context, o decorum.Origin) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	origin := m.origins[o]
	if origin == nil {
		return nil
	}
	m.parkedCount -= len(origin.parkedEntries)
	origin.Queue, origin.parkedEntries, origin.seenCount = &originQueue{}, nil, 0
	maps.DeleteFunc(m.seenURLs, func(k seenKey, _ *queuedEntry) bool { return k.origin == o })
	// The URLs of leases are still in use: add them to the seen set again.
	for _, l := range m.leases {
		if l.origin == origin && l.entry.RobotsFor.IsZero() {
			m.markSeen(origin, seenKeyOf(&l.entry))
		}
	}
	m.schedule.UpdateOrigin(&origin.Origin)
	return nil
}
