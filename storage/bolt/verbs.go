package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Add implements storage.Store.
func (s *Store) Add(ctx context.Context, entries []storage.Entry) (added int, err error) {
	for i := range entries {
		if err := entries[i].Check(); err != nil {
			return 0, fmt.Errorf("add: %w", err)
		}
	}
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	known, err := s.known(entries)
	if err != nil {
		return 0, err
	}
	for i := range entries {
		e := &entries[i]
		if known[i] {
			continue
		}
		o := s.origin(e.URL.Origin())
		if e.For.IsZero() {
			k := seenKey{o.number, fingerprint(e.URL.Path())}
			if _, twice := s.pending.seen[k]; twice {
				continue
			}
			s.pending.seen[k] = struct{}{}
			s.pending.size++
			o.seen++
			s.seen++
			added++
		}
		s.put(o, laneOf(e), rankOf(e), e)
		s.turns.Update(&o.Origin)
	}
	return added, nil
}

// known looks up which of the entries the seen set holds.
func (s *Store) known(entries []storage.Entry) ([]bool, error) {
	known := make([]bool, len(entries))
	err := s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketSeen)).Cursor()
		buf := make([]byte, 0, seenKeyLen)
		for i := range entries {
			o := s.origins[entries[i].URL.Origin()]
			if o == nil || !entries[i].For.IsZero() {
				continue
			}
			k := seenKey{o.number, fingerprint(entries[i].URL.Path())}
			if known[i] = s.unwritten(k); !known[i] {
				buf = k.appendTo(buf[:0])
				found, _ := c.Seek(buf)
				known[i] = bytes.Equal(found, buf)
			}
		}
		return nil
	})
	return known, err
}

// unwritten reports whether k is seen, and on its way to the file.
func (s *Store) unwritten(k seenKey) bool {
	if _, ok := s.pending.seen[k]; ok {
		return true
	}
	if s.flushing == nil {
		return false
	}
	_, ok := s.flushing.seen[k]
	return ok
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
	for len(leases) < max {
		turn := s.turns.Turn(now)
		if turn == nil {
			break
		}
		l, err := s.lease(turn.Queue, now, now.Add(ttl))
		if err != nil && len(leases) == 0 {
			return nil, storage.Next{}, err
		}
		if err != nil {
			break // it will be met again
		}
		leases = append(leases, l)
	}
	left, at := s.turns.Left()
	return leases, storage.Next{Left: storage.Left(left), At: at}, nil
}

// lease leases the next URL of o, whose turn it is.
func (s *Store) lease(o *origin, now, expires time.Time) (storage.Lease, error) {
	l := o.next(now)
	if l == nil {
		return storage.Lease{}, fmt.Errorf("lease: %v is due and has no URL due", o.name) // cannot be
	}
	if !l.ready() {
		if err := s.fill(o, l); err != nil {
			return storage.Lease{}, err
		}
	}
	e, err := parseEntry(l.head[0].value, o.name)
	if err != nil {
		return storage.Lease{}, s.damaged("%v", err)
	}
	s.cached--
	k := urlKey{o.number, l.lane, l.pop().place}
	o.count(l.lane, -1)
	o.out = append(o.out, k)
	s.token++
	s.leases[s.token] = &lease{s.turns.Begin(&o.Origin, s.token, now, expires), e, k}
	given := storage.Lease{Entry: e, Host: storage.Host(o.host.Clock), Token: s.token, Expires: expires}
	given.Context = bytes.Clone(e.Context) // its holder may write to it, and to its Page
	if e.Page != nil {
		page := *e.Page
		given.Page = &page
	}
	return given, nil
}

// expire gives back the URLs of leases that ran out.
func (s *Store) expire(now time.Time) {
	for {
		out := s.turns.Expired(now)
		if out == nil {
			return
		}
		l := s.leases[out.Token]
		s.pending.changedHost(out.Origin.Queue.host)
		s.settleLease(l, &l.entry, storage.Again, time.Time{})
		s.turns.Update(out.Origin)
	}
}

// settleLease takes a leased URL out of its place and puts it where the outcome says.
func (s *Store) settleLease(l *lease, e *storage.Entry, outcome storage.Outcome, at time.Time) {
	o := l.Origin.Queue
	delete(s.leases, l.Token)
	for i, k := range o.out {
		if k == l.key {
			o.out[i] = o.out[len(o.out)-1]
			o.out = o.out[:len(o.out)-1]
			break
		}
	}
	s.pending.deleteURL(l.key)
	s.pending.changedOrigin(o)
	switch outcome {
	case storage.Again:
		s.put(o, laneOf(e).Back(), 0, e)
	case storage.Later:
		s.put(o, laneOf(e).Later(), nanos(at), e)
	case storage.Rest:
		if !e.For.IsZero() {
			break
		}
		s.put(o, schedule.Resting, nanos(at), e)
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
	for i := range acks {
		if err := acks[i].Check(); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
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
		e.For = l.entry.For // what passed by the seen set stays a hop
		s.settleLease(l, &e, a.Outcome, a.At)
		if a.Host != nil {
			l.Origin.Host.Set(schedule.Clock(*a.Host))
			s.pending.changedHost(l.Origin.Queue.host)
		}
		s.turns.End(l.Lease)
	}
	return errors.Join(errs...)
}

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, name decorum.Origin, until time.Time, dormant bool) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	o := s.origin(name)
	o.Origin.Hold, o.Dormant = until, dormant
	s.pending.changedOrigin(o)
	s.turns.Update(&o.Origin)
	return nil
}

// Counts implements storage.Store.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	if err := s.lock(ctx); err != nil {
		return storage.Counts{}, err
	}
	defer s.mu.Unlock()
	return storage.Counts{
		Hosts:   s.turns.Hosts,
		Due:     s.turns.Due(),
		Queued:  s.turns.Queued,
		Leased:  s.turns.Leased(),
		Parked:  s.parked,
		Seen:    s.seen,
		Dormant: s.turns.Dormant,
		Resting: s.turns.Resting,
	}, nil
}
