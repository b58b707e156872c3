package memory

import (
	"context"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var (
	_ storage.Inspector       = (*Store)(nil)
	_ storage.OriginLister    = (*Store)(nil)
	_ storage.NextDueReporter = (*Store)(nil)
)

// NextURLDue implements storage.NextDueReporter.
func (m *Store) NextURLDue(ctx context.Context, host string) (due time.Time, known bool) {
	if err := m.lockIfOpen(ctx); err != nil {
		return time.Time{}, false
	}
	defer m.mu.Unlock()
	if h := m.hosts[host]; h != nil {
		due = h.NextURLDue()
	}
	return due, true
}

// Origins implements storage.Inspector.
func (m *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	leased := leaseCountsByOrigin(m.leases)
	for name, o := range m.origins {
		if !name.IsZero() && !yield(o.info(name, leased[o])) { // the zero Origin has only the crawl's notes
			return nil
		}
	}
	return nil
}

// OriginNames implements storage.OriginLister.
func (m *Store) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return m.Origins(ctx, func(o storage.OriginInfo) bool { return yield(o.Origin) })
}

// Origin implements storage.Inspector.
func (m *Store) Origin(ctx context.Context, name decorum.Origin) (info storage.OriginInfo, ok bool, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return storage.OriginInfo{}, false, err
	}
	defer m.mu.Unlock()
	o := m.origins[name]
	if o == nil || name.IsZero() {
		return storage.OriginInfo{}, false, nil
	}
	return o.info(name, leaseCountsByOrigin(m.leases)[o]), true, nil
}

// leaseCountsByOrigin returns the number of leases of each origin.
func leaseCountsByOrigin(leases map[uint64]*memoryLease) map[*memoryOrigin]int {
	leased := make(map[*memoryOrigin]int)
	for _, l := range leases {
		leased[l.origin]++
	}
	return leased
}

// info describes o. name is its name, leased the number of its leases.
func (o *memoryOrigin) info(name decorum.Origin, leased int) storage.OriginInfo {
	awaitingRevisit, _ := o.Queue.RevisitCountAndFirstDue()
	return storage.OriginInfo{
		Origin: name, HostState: o.Host.HostState, HeldUntil: o.HeldUntil, Suspended: o.Suspended,
		QueuedURLs: o.Queue.Total, LeasedURLs: leased, AwaitingRevisit: awaitingRevisit,
		ParkedURLs: len(o.parkedEntries), SeenURLs: o.seenCount, NextDue: o.NextDue(),
	}
}

// OriginURLsInState implements storage.Inspector. It yields leased URLs first, since they return to the
// head of the queue if their leases expire.
func (m *Store) OriginURLsInState(ctx context.Context, name decorum.Origin, state storage.EntryState,
	yield func(storage.Entry, time.Time) bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	o := m.origins[name]
	if o == nil {
		return nil
	}
	for _, l := range m.originEntriesInState(o, state) {
		if !yield(l.Entry, l.NotBefore) {
			return nil
		}
	}
	return nil
}

// originEntriesInState returns the URLs of o in a state, leased ones first, the others in the order of
// their leases.
func (m *Store) originEntriesInState(o *memoryOrigin, s storage.EntryState) (all []storage.StoredEntry) {
	switch s {
	case storage.StateParked:
		for _, e := range o.parkedEntries {
			all = append(all, storage.StoredEntry{Entry: e})
		}
	case storage.StateAwaitingRevisit:
		all = o.Queue.laneEntries(schedule.AwaitingRevisit)
	case storage.StateQueued:
		// All lanes before AwaitingRevisit are queued.
		for _, l := range m.leases {
			if l.origin == o {
				all = append(all, storage.StoredEntry{Entry: l.entry})
			}
		}
		for lane := range schedule.AwaitingRevisit {
			all = append(all, o.Queue.laneEntries(lane)...)
		}
	}
	return all
}

// laneEntries returns the URLs in a lane, in the order in which they would be leased.
func (q *originQueue) laneEntries(lane schedule.LaneID) (all []storage.StoredEntry) {
	for _, w := range slices.SortedFunc(slices.Values(q.lanes[lane]), (*queuedEntry).compare) {
		l := storage.StoredEntry{Entry: w.Entry}
		if lane.IsTimed() {
			l.NotBefore = time.Unix(0, w.sortKey).UTC()
		}
		all = append(all, l)
	}
	return all
}

// HasSeen implements storage.Inspector.
func (m *Store) HasSeen(ctx context.Context, u decorum.URL) (bool, error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	_, known := m.seenURLs[seenKey{u.Origin(), storage.Fingerprint(u)}]
	return known, nil
}

// SeenURLFingerprints implements storage.Inspector.
func (m *Store) SeenURLFingerprints(ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for k := range m.seenURLs {
		if k.origin == o && !yield(k.fingerprint) {
			return nil
		}
	}
	return nil
}

// OriginNotes implements storage.Inspector.
func (m *Store) OriginNotes(ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	o := m.origins[name]
	if o == nil {
		return nil
	}
	for key, value := range o.notes {
		if !yield(key, value) {
			return nil
		}
	}
	return nil
}
