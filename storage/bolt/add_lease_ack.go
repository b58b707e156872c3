package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
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
	s.leases.expire(now)
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
			if l, ok := s.leases.leaseNext(tx, origin.Queue, now, now.Add(ttl)); ok {
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

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if err := s.lockIfOpen(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.leases.renew(&l, now, now.Add(ttl))
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
		if err := s.leases.ack(&acks[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// MarkSent implements storage.Store.
func (s *Store) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	if err := s.lockForChange(ctx); err != nil {
		return err
	}
	defer s.trimUnlockAndCommitIfDue()
	return s.leases.markSent(&l, sent)
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
