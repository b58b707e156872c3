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
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.Fate, error) {
	if err := storage.CheckEntries(entries); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	fates := make([]storage.Fate, len(entries))
	err := s.view(func(tx *bbolt.Tx) (err error) {
		c := tx.Bucket([]byte(bucketPrints)).Cursor()
		for i := range entries {
			if fates[i], err = s.add(tx, c, &entries[i], maxPerOrigin); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fates, nil
}

// add queues e, unless c finds it among the seen ones or there are most of its
// origin.
func (s *Store) add(tx *bbolt.Tx, c *bbolt.Cursor, e *storage.Entry, maxPerOrigin int) (storage.Fate, error) {
	if known, err := s.isKnownOnDisk(tx, c, e); known || err != nil {
		return storage.Known, err
	}
	o, err := s.meet(tx, e.URL.Origin())
	if err != nil {
		return 0, err
	}
	if e.For.IsZero() {
		p := printOfEntry(e)
		seen, sure := s.isSeen(c, o, p)
		if seen || !sure && !e.Request.IsSafe() { // the request may have been sent
			return storage.Known, nil
		}
		if maxPerOrigin > 0 && o.seen >= maxPerOrigin {
			return storage.Over, nil
		}
		s.see(o, p)
	}
	s.put(o, laneOf(e), rankOf(e), e)
	s.turns.Update(&o.Origin)
	return storage.Added, nil
}

// isKnownOnDisk reports whether e is known and its origin is only on disk. Most links
// lead to known pages: these do not bring an idle host into memory.
func (s *Store) isKnownOnDisk(tx *bbolt.Tx, c *bbolt.Cursor, e *storage.Entry) (bool, error) {
	name := e.URL.Origin()
	if !e.For.IsZero() || s.origins[name] != nil {
		return false, nil
	}
	number, err := s.numberOf(tx, name)
	if number == nil || err != nil {
		return false, err
	}
	seen, sure := s.isSeenOnDisk(c, binary.BigEndian.Uint32(number), name, printOfEntry(e))
	return seen || !sure && !e.Request.IsSafe(), nil
}

// see puts a fingerprint into the seen set.
func (s *Store) see(o *origin, p print) {
	s.touch(o).see(p)
	s.redo.see(o.number, p)
	o.seen++
	s.seen++
}

func laneOf(e *storage.Entry) schedule.Lane {
	return schedule.LaneOf(uint8(e.Class), e.For == e.URL.Origin())
}

// rankOf returns the rank of a new URL in its lane. Hops know none.
func rankOf(e *storage.Entry) int64 {
	if laneOf(e).IsHop() {
		return 0
	}
	return int64(e.Rank)
}

// Lease implements storage.Store.
func (s *Store) Lease(ctx context.Context, now time.Time, ttl time.Duration, max int) ([]storage.Lease, storage.Next, error) {
	if err := s.lock(ctx); err != nil {
		return nil, storage.Next{}, err
	}
	defer s.end()
	if s.failed != nil {
		return nil, storage.Next{}, s.failed
	}
	s.turns.Advance(now)
	s.expire(now)
	var leases []storage.Lease
	err := s.view(func(tx *bbolt.Tx) error {
		if err := s.wakeNext(tx); err != nil {
			return err
		}
		for len(leases) < max {
			turn := s.turns.Turn(now)
			if turn == nil {
				break
			}
			if l, ok := s.lease(tx, turn.Queue, now, now.Add(ttl)); ok {
				leases = append(leases, l)
			}
			if err := s.wakeNext(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && len(leases) == 0 {
		return nil, storage.Next{}, err
	}
	left, at := s.turns.Left() // an error will be met again
	return leases, storage.Next{Left: storage.Left(left), At: at}, nil
}

// lease leases the next URL of o, whose turn it is; false if there is none that
// makes sense, which is set aside.
func (s *Store) lease(tx *bbolt.Tx, o *origin, now, expires time.Time) (storage.Lease, bool) {
	revisited := o.turns.Revisited
	l := o.next(now)
	if revisited != o.turns.Revisited {
		s.touch(o)
	}
	if !l.ready() {
		s.fill(tx, o, l)
	}
	if l.n == 0 { // fewer than were counted
		s.turns.Update(&o.Origin)
		return storage.Lease{}, false
	}
	i := l.pop()
	s.cached -= sizeOf(i.value)
	at := slot{l.lane, i.place}
	o.Count(l.lane, -1)
	e, err := parseEntry(i.value, o.number, o.name, at)
	if err != nil {
		s.setAside(o, at, i.value, err)
		s.turns.Update(&o.Origin)
		return storage.Lease{}, false
	}
	o.out = append(o.out, at)
	s.token++
	s.leases[s.token] = &lease{s.turns.Begin(&o.Origin, s.token, now, expires), e, at}
	given := storage.Lease{Entry: e, Host: storage.Host(o.host.Clock), Token: s.token, Expires: expires}
	given.Context = bytes.Clone(e.Context) // its holder may write to them
	if e.Page != nil {
		page := *e.Page
		given.Page = &page
	}
	return given, true
}

// setAside moves a record that makes no sense out of the way.
func (s *Store) setAside(o *origin, at slot, value []byte, why error) {
	s.clearSlot(o, at)
	o.seq++
	aside := slot{damaged, place{seq: o.seq}}
	s.putSlot(o, aside, withSum(appendURLKey(s.key[:0], o.number, aside), value))
	s.opts.Damaged(fmt.Errorf("%s: one URL is set aside: %w", s.path, why))
}

// expire gives back the URLs of leases that ran out.
func (s *Store) expire(now time.Time) {
	for {
		out := s.turns.Expired(now)
		if out == nil {
			return
		}
		l := s.leases[out.Token]
		s.touchHost(out.Origin.Queue)
		s.settleLease(l, &l.entry, storage.Again, time.Time{})
		s.turns.Update(out.Origin)
	}
}

// settleLease takes a leased URL out of its place and puts it where the outcome says.
func (s *Store) settleLease(l *lease, e *storage.Entry, outcome storage.Outcome, at time.Time) {
	o := l.Origin.Queue
	delete(s.leases, l.Token)
	if i := slices.Index(o.out, l.slot); i >= 0 {
		o.out[i] = o.out[len(o.out)-1]
		o.out = o.out[:len(o.out)-1]
	}
	if len(o.out) == 0 {
		o.out = nil
	}
	s.clearSlot(o, l.slot)
	if l.slot.lane == schedule.Resting {
		s.rest(o, printOfEntry(e), nowhere)
	}
	switch outcome {
	case storage.Again:
		s.put(o, laneOf(e).Back(), 0, e)
	case storage.Later:
		s.put(o, laneOf(e).Later(), schedule.Nanos(at), e)
	case storage.Rest:
		if e.For.IsZero() { // else it is a hop, and done
			s.put(o, schedule.Resting, schedule.Nanos(at), e)
		}
	case storage.Parked:
		s.put(o, parked, 0, e)
	}
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	out := s.leases[l.Token]
	if out == nil || out.entry.URL != l.URL || !out.Expires.After(now) {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStale)
	}
	s.turns.Advance(now)
	s.turns.Renew(out.Lease, now.Add(ttl))
	return nil
}

// Ack implements storage.Store.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.CheckAcks(acks); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	var errs []error
	for i := range acks {
		a := &acks[i]
		l := s.leases[a.Lease.Token]
		if l == nil || l.entry.URL != a.Lease.URL {
			errs = append(errs, fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStale))
			continue
		}
		e := a.Lease.Entry
		e.For, e.Sent = l.entry.For, l.entry.Sent // what passed by the seen set stays a hop
		s.settleLease(l, &e, a.Outcome, a.At)
		if a.Host != nil {
			l.Origin.Host.Set(schedule.Clock(*a.Host))
			s.touchHost(l.Origin.Queue)
		}
		s.turns.End(l.Lease)
	}
	return errors.Join(errs...)
}

// Mark implements storage.Store.
func (s *Store) Mark(ctx context.Context, given storage.Lease, sent bool) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	l := s.leases[given.Token]
	if l == nil || l.entry.URL != given.URL {
		return fmt.Errorf("mark %v: %w", given.URL, storage.ErrStale)
	}
	l.entry.Sent = sent
	s.putSlot(l.Origin.Queue, l.slot, s.sealEntry(l.Origin.Queue, l.slot, &l.entry))
	return nil
}

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, name decorum.Origin, until time.Time, dormant bool) error {
	return s.alter(ctx, name, func(o *origin) {
		o.Origin.Hold, o.Dormant = until, dormant
		s.touch(o)
		s.turns.Update(&o.Origin)
	})
}

// alter makes a change to an origin, new if need be.
func (s *Store) alter(ctx context.Context, name decorum.Origin, change func(*origin)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return s.view(func(tx *bbolt.Tx) error {
		o, err := s.meet(tx, name)
		if err == nil {
			change(o)
		}
		return err
	})
}
