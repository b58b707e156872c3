package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Ack implements Store.
func (m *Memory) Ack(ctx context.Context, acks []Ack) error {
	if err := CheckAcks(acks); err != nil {
		return err
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	var errs []error
	for i := range acks {
		a := &acks[i]
		l := m.leases[a.Lease.Token]
		if l == nil || l.entry.URL != a.Lease.URL {
			errs = append(errs, fmt.Errorf("ack %v: %w", a.Lease.URL, ErrStale))
			continue
		}
		delete(m.leases, a.Lease.Token)
		m.end(l, a)
	}
	return errors.Join(errs...)
}

// end ends the lease as a says.
func (m *Memory) end(l *memoryLease, a *Ack) {
	e := a.Lease.Entry
	e.For, e.Sent = l.entry.For, l.entry.Sent // what passed by the seen set stays a hop
	e.Context, e.Page = bytes.Clone(e.Context), clonePage(e.Page)
	switch a.Outcome {
	case Again:
		l.origin.Queue.giveBack(e)
	case Later:
		l.origin.Queue.putOff(e, a.At)
	case Rest:
		if !e.For.IsZero() {
			break
		}
		m.seen[keyOf(&e)] = l.origin.Queue.rest(e, a.At)
	case Parked:
		m.park(l.origin, e)
	}
	if a.Host != nil {
		l.origin.Host.Set(schedule.Clock(*a.Host))
	}
	m.turns.End(l.Lease)
}

func (m *Memory) park(o *memoryOrigin, e Entry) {
	o.parked = append(o.parked, e)
	m.parked++
}

// Mark implements Store.
func (m *Memory) Mark(ctx context.Context, l Lease, sent bool) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	out := m.leases[l.Token]
	if out == nil || out.entry.URL != l.URL {
		return fmt.Errorf("mark %v: %w", l.URL, ErrStale)
	}
	out.entry.Sent = sent
	return nil
}

// Hold implements Store.
func (m *Memory) Hold(ctx context.Context, o decorum.Origin, until time.Time, dormant bool) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	origin := m.origin(o)
	origin.Origin.Hold, origin.Dormant = until, dormant
	m.turns.Update(&origin.Origin)
	return nil
}

// Recall implements Store.
func (m *Memory) Recall(ctx context.Context, now time.Time, sightings []Sighting) (recalled int, err error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for _, s := range sightings {
		w := m.seen[seenKey{s.URL.Origin(), Fingerprint(s.URL)}]
		if w == nil || w.URL != s.URL {
			continue
		}
		o := m.origins[s.URL.Origin()]
		if o.Queue.recall(w, s.Modified, now) {
			recalled++
			m.turns.Update(&o.Origin)
		}
	}
	return recalled, nil
}

// Revive implements Store.
func (m *Memory) Revive(ctx context.Context, o decorum.Origin, shouldUnpark func(Entry) bool) (revived int, err error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	origin := m.origins[o]
	if origin == nil {
		return 0, nil
	}
	var stillParked []Entry
	for _, e := range origin.parked {
		if shouldUnpark(e) {
			origin.Queue.add(e)
			revived++
		} else {
			stillParked = append(stillParked, e)
		}
	}
	origin.parked = stillParked
	m.parked -= revived
	m.turns.Update(&origin.Origin)
	return revived, nil
}

// Parked implements Store.
func (m *Memory) Parked(ctx context.Context) (origins []decorum.Origin, err error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for name, o := range m.origins {
		if len(o.parked) > 0 {
			origins = append(origins, name)
		}
	}
	return origins, nil
}

// ReadNote implements Store.
func (m *Memory) ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	origin := m.origins[o]
	if origin == nil {
		return nil, nil
	}
	return bytes.Clone(origin.notes[key]), nil
}

// SetNote implements Store.
func (m *Memory) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if len(value) > MaxNote {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, o, len(value), MaxNote)
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	origin := m.origin(o)
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
