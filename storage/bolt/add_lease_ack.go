package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Add implements storage.Store.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	if err := s.lockForChange(ctx); err != nil {
		return nil, err
	}
	defer s.trimUnlockAndCommitIfDue()
	results := make([]storage.AddOutcome, len(entries))
	err := s.file.view(func(tx *bbolt.Tx) (err error) {
		c := tx.Bucket([]byte(bucketFingerprints)).Cursor()
		for i := range entries {
			if results[i], err = s.addEntryIfNew(tx, c, &entries[i], maxPerOrigin); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// addEntryIfNew queues e, unless c finds it among the seen ones or there are most of its
// origin.
func (s *Store) addEntryIfNew(tx *bbolt.Tx, c *bbolt.Cursor, e *storage.Entry, maxPerOrigin int) (storage.AddOutcome, error) {
	if known, err := s.isDuplicateOfUnloadedOrigin(tx, c, e); known || err != nil {
		return storage.Duplicate, err
	}
	o, err := s.index.getOrCreate(tx, e.URL.Origin())
	if err != nil {
		return 0, err
	}
	if e.RobotsFor.IsZero() {
		p := fingerprintOfEntry(e)
		seen, certain := s.seen.has(c, o, p)
		if seen || !certain && !e.Request.IsSafe() { // the request may have been sent
			return storage.Duplicate, nil
		}
		if maxPerOrigin > 0 && o.seenCount >= maxPerOrigin {
			return storage.OverLimit, nil
		}
		s.seen.add(o, p)
	}
	s.queues.put(o, laneOfEntry(e), rankOfEntry(e), e)
	s.index.schedule.UpdateOrigin(&o.Origin)
	return storage.Added, nil
}

// isDuplicateOfUnloadedOrigin reports whether e is known and its origin is only on disk. Most links
// lead to known pages: these do not bring an idle host into memory.
func (s *Store) isDuplicateOfUnloadedOrigin(tx *bbolt.Tx, c *bbolt.Cursor, e *storage.Entry) (bool, error) {
	name := e.URL.Origin()
	if !e.RobotsFor.IsZero() || s.index.origins[name] != nil {
		return false, nil
	}
	number, err := s.index.number(tx, name)
	if number == nil || err != nil {
		return false, err
	}
	seen, certain := s.seen.hasOnDisk(c, binary.BigEndian.Uint32(number), name, fingerprintOfEntry(e))
	return seen || !certain && !e.Request.IsSafe(), nil
}

// Lease implements storage.Store.
func (s *Store) Lease(ctx context.Context, now time.Time, ttl time.Duration, max int) ([]storage.Lease, storage.Wait, error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return nil, storage.Wait{}, err
	}
	defer s.trimUnlockAndCommitIfDue()
	if s.status.err != nil {
		return nil, storage.Wait{}, s.status.err
	}
	s.index.schedule.Advance(now)
	s.expireLeases(now)
	var leases []storage.Lease
	err := s.file.view(func(tx *bbolt.Tx) error {
		if err := s.index.reloadDueEvictedHosts(tx); err != nil {
			return err
		}
		for len(leases) < max {
			origin := s.index.schedule.NextOrigin(now)
			if origin == nil {
				break
			}
			if l, ok := s.leaseNextOfOrigin(tx, origin.Queue, now, now.Add(ttl)); ok {
				leases = append(leases, l)
			}
			if err := s.index.reloadDueEvictedHosts(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && len(leases) == 0 {
		return nil, storage.Wait{}, err
	}
	remaining, until := s.index.schedule.RemainingWorkKindAndTime() // an error will be met again
	return leases, storage.Wait{RemainingWorkKind: storage.RemainingWorkKind(remaining), Until: until}, nil
}

// leaseNextOfOrigin leases the next URL of o, whose turn it is; false if there is none that
// makes sense, which is set aside.
func (s *Store) leaseNextOfOrigin(tx *bbolt.Tx, o *loadedOrigin, now, expires time.Time) (storage.Lease, bool) {
	revisited := o.revisitAlternation.LastWasRevisit
	l := o.nextLane(now)
	if revisited != o.revisitAlternation.LastWasRevisit {
		s.journal.markChanged(o)
	}
	if !l.isHeadLoaded() {
		s.queues.loadHead(tx, o, l)
	}
	if l.count == 0 { // fewer than were counted
		s.index.schedule.UpdateOrigin(&o.Origin)
		return storage.Lease{}, false
	}
	i := s.heads.pop(l)
	at := laneSlot{l.id, i.lanePosition}
	o.AddURLs(l.id, -1)
	e, err := parseEntry(i.value, o.number, o.name, at)
	if err != nil {
		s.queues.quarantine(o, at, i.value, err)
		s.index.schedule.UpdateOrigin(&o.Origin)
		return storage.Lease{}, false
	}
	o.leasedSlots = append(o.leasedSlots, at)
	s.lastLeaseToken++
	s.leases[s.lastLeaseToken] = &lease{s.index.schedule.BeginLease(&o.Origin, s.lastLeaseToken, now, expires), e, at}
	leased := storage.Lease{Entry: e, HostState: storage.HostState(o.host.HostState), Token: s.lastLeaseToken, Expires: expires}
	leased.CallbackData = bytes.Clone(e.CallbackData) // its holder may write to them
	if e.VisitHistorySummary != nil {
		history := *e.VisitHistorySummary
		leased.VisitHistorySummary = &history
	}
	return leased, true
}

// expireLeases gives back the URLs of leases that ran out.
func (s *Store) expireLeases(now time.Time) {
	for {
		expired := s.index.schedule.ExpireNext(now)
		if expired == nil {
			return
		}
		l := s.leases[expired.Token]
		s.journal.markOriginAndHostChanged(expired.Origin.Queue)
		s.endLeaseWithOutcome(l, &l.entry, storage.Requeue, time.Time{})
		s.index.schedule.UpdateOrigin(expired.Origin)
	}
}

// endLeaseWithOutcome takes a leased URL out of its place and puts it where the outcome says.
func (s *Store) endLeaseWithOutcome(l *lease, e *storage.Entry, outcome storage.AckOutcome, at time.Time) {
	o := l.Origin.Queue
	delete(s.leases, l.Token)
	if i := slices.Index(o.leasedSlots, l.laneSlot); i >= 0 {
		o.leasedSlots[i] = o.leasedSlots[len(o.leasedSlots)-1]
		o.leasedSlots = o.leasedSlots[:len(o.leasedSlots)-1]
	}
	if len(o.leasedSlots) == 0 {
		o.leasedSlots = nil
	}
	s.journal.deleteURL(o, l.laneSlot)
	if l.laneSlot.lane == schedule.AwaitingRevisit {
		s.journal.setRevisitPosition(o, fingerprintOfEntry(e), noLanePosition)
	}
	switch outcome {
	case storage.Requeue:
		s.queues.put(o, laneOfEntry(e).ReturnedLane(), 0, e)
	case storage.RetryAt:
		s.queues.put(o, laneOfEntry(e).DelayedLane(), schedule.Nanos(at), e)
	case storage.RevisitAt:
		if e.RobotsFor.IsZero() { // else it is a hop, and done
			s.queues.put(o, schedule.AwaitingRevisit, schedule.Nanos(at), e)
		}
	case storage.Park:
		s.queues.put(o, parkedLane, 0, e)
	}
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if err := s.lockIfOpen(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	leased := s.leases[l.Token]
	if leased == nil || leased.entry.URL != l.URL || !leased.Expires.After(now) {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStaleLease)
	}
	s.index.schedule.Advance(now)
	s.index.schedule.RenewLease(leased.Lease, now.Add(ttl))
	return nil
}

// Ack implements storage.Store.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.ValidateAcks(acks); err != nil {
		return err
	}
	if err := s.lockForChange(ctx); err != nil {
		return err
	}
	defer s.trimUnlockAndCommitIfDue()
	var errs []error
	for i := range acks {
		a := &acks[i]
		l := s.leases[a.Lease.Token]
		if l == nil || l.entry.URL != a.Lease.URL {
			errs = append(errs, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStaleLease))
			continue
		}
		e := a.Lease.Entry
		e.RobotsFor, e.Sent = l.entry.RobotsFor, l.entry.Sent // what passed by the seen set stays a hop
		s.endLeaseWithOutcome(l, &e, a.Outcome, a.NotBefore)
		if a.HostState != nil {
			l.Origin.Host.SetState(schedule.HostState(*a.HostState))
			s.journal.markOriginAndHostChanged(l.Origin.Queue)
		}
		s.index.schedule.EndLease(l.Lease)
	}
	return errors.Join(errs...)
}

// MarkSent implements storage.Store.
func (s *Store) MarkSent(ctx context.Context, leased storage.Lease, sent bool) error {
	if err := s.lockForChange(ctx); err != nil {
		return err
	}
	defer s.trimUnlockAndCommitIfDue()
	l := s.leases[leased.Token]
	if l == nil || l.entry.URL != leased.URL {
		return fmt.Errorf("mark %v: %w", leased.URL, storage.ErrStaleLease)
	}
	l.entry.Sent = sent
	s.journal.putURL(l.Origin.Queue, l.laneSlot, s.queues.encode(l.Origin.Queue, l.laneSlot, &l.entry))
	return nil
}

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, name decorum.Origin, until time.Time, suspended bool) error {
	return s.lockStoreAndChangeOrigin(ctx, name, func(o *loadedOrigin) {
		o.Origin.HeldUntil, o.Suspended = until, suspended
		s.journal.markChanged(o)
		s.index.schedule.UpdateOrigin(&o.Origin)
	})
}

// lockStoreAndChangeOrigin makes a change to an origin, new if need be.
func (s *Store) lockStoreAndChangeOrigin(ctx context.Context, name decorum.Origin, change func(*loadedOrigin)) error {
	if err := s.lockForChange(ctx); err != nil {
		return err
	}
	defer s.trimUnlockAndCommitIfDue()
	return s.file.view(func(tx *bbolt.Tx) error {
		o, err := s.index.getOrCreate(tx, name)
		if err == nil {
			change(o)
		}
		return err
	})
}
