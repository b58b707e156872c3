package memory

import (
	"context"
	"errors"
	"fmt"

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
	// A stale lease does not stop the other acks.
	var errs []error
	for i := range acks {
		a := &acks[i]
		l := m.findLease(&a.Lease)
		if l == nil {
			errs = append(errs, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStaleLease))
			continue
		}
		delete(m.leases, a.Lease.Token)
		m.endLeaseWithOutcome(l, a)
	}
	return errors.Join(errs...)
}

// endLeaseWithOutcome ends l, which the caller has removed from m.leases: it puts the URL where a.Outcome says
// and sets the state of the host.
func (m *Store) endLeaseWithOutcome(l *memoryLease, a *storage.Ack) {
	e := schedule.CloneEntry(a.Lease.Entry)
	e.RobotsFor, e.Sent = l.entry.RobotsFor, l.entry.Sent // the caller must not change these two
	switch a.Outcome {
	case storage.Requeue:
		l.origin.Queue.addToFront(e)
	case storage.RetryAt:
		l.origin.Queue.addDelayed(e, a.NotBefore)
	case storage.RevisitAt:
		if e.RobotsFor.IsZero() { // a redirect of a robots.txt is Done
			m.seenURLs[seenKeyOf(&e)] = l.origin.Queue.addRevisit(e, a.NotBefore)
		}
	case storage.Park:
		m.parkEntry(l.origin, e)
	}
	if a.HostState != nil {
		l.origin.Host.SetState(*a.HostState)
	}
	m.schedule.EndLease(l.Lease)
}

// MarkSent implements storage.Store.
func (m *Store) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	leased := m.findLease(&l)
	if leased == nil {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	leased.entry.Sent = sent
	return nil
}
