package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Ack implements storage.Store.
func (m *Store) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.ValidateAcks(acks); err != nil {
		return err
	}
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	var errs []error
	for i := range acks {
		a := &acks[i]
		l := m.leases[a.Lease.Token]
		if l == nil || l.entry.URL != a.Lease.URL {
			errs = append(errs, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStaleLease))
			continue
		}
		delete(m.leases, a.Lease.Token)
		m.endLeaseWithOutcome(l, a)
	}
	return errors.Join(errs...)
}

// endLeaseWithOutcome ends the lease as a says.
func (m *Store) endLeaseWithOutcome(l *memoryLease, a *storage.Ack) {
	e := a.Lease.Entry
	e.RobotsFor, e.Sent = l.entry.RobotsFor, l.entry.Sent // what passed by the seen set stays a hop
	e.CallbackData, e.VisitHistorySummary = bytes.Clone(e.CallbackData), cloneVisitHistorySummary(e.VisitHistorySummary)
	switch a.Outcome {
	case storage.Requeue:
		l.origin.Queue.addToFront(e)
	case storage.RetryAt:
		l.origin.Queue.addDelayed(e, a.NotBefore)
	case storage.RevisitAt:
		if !e.RobotsFor.IsZero() {
			break
		}
		m.seenURLs[seenKeyOf(&e)] = l.origin.Queue.addRevisit(e, a.NotBefore)
	case storage.Park:
		m.parkEntry(l.origin, e)
	}
	if a.HostState != nil {
		l.origin.Host.SetState(schedule.HostState(*a.HostState))
	}
	m.schedule.EndLease(l.Lease)
}

func (m *Store) parkEntry(o *memoryOrigin, e storage.Entry) {
	o.parkedEntries = append(o.parkedEntries, e)
	m.parkedCount++
}

// MarkSent implements storage.Store.
func (m *Store) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	leased := m.leases[l.Token]
	if leased == nil || leased.entry.URL != l.URL {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	leased.entry.Sent = sent
	return nil
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
func (m *Store) RescheduleByLastmod(ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod) (rescheduled int, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for _, s := range lastmods {
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
func (m *Store) UnparkMatchingURLs(ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool) (unparked int, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	origin := m.origins[o]
	if origin == nil {
		return 0, nil
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
	return unparked, nil
}

// OriginsWithParkedURLs implements storage.Store.
func (m *Store) OriginsWithParkedURLs(ctx context.Context) (origins []decorum.Origin, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for name, o := range m.origins {
		if len(o.parkedEntries) > 0 {
			origins = append(origins, name)
		}
	}
	return origins, nil
}

// ReadNote implements storage.Store.
func (m *Store) ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	origin := m.origins[o]
	if origin == nil {
		return nil, nil
	}
	return bytes.Clone(origin.notes[key]), nil
}

// SetNote implements storage.Store.
func (m *Store) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, o, len(value), storage.MaxNoteBytes)
	}
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	origin := m.getOrCreateOrigin(o)
	if value == nil {
		delete(origin.notes, key)
		return nil
	}
	if origin.notes == nil {
		origin.notes = make(map[string][]byte)
	}
	origin.notes[key] = bytes.Clone(value)
	return nil
}
