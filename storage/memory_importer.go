package storage

import (
	"bytes"
	"context"
	"fmt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var _ Importer = (*Memory)(nil)

// Import implements Importer.
func (m *Memory) Import(ctx context.Context, parcels []Parcel) error {
	if err := CheckParcels(parcels); err != nil {
		return err
	}
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if !m.hasCapacityForImport(parcels) {
		return fmt.Errorf("import: %d URLs are kept in memory already: %w", len(m.seen), ErrFull)
	}
	for i := range parcels {
		m.take(&parcels[i])
	}
	return nil
}

// hasCapacityForImport reports whether the seen set has room for what is new in the parcels.
func (m *Memory) hasCapacityForImport(parcels []Parcel) bool {
	free := m.maxURLs - len(m.seen)
	fresh := make(map[seenKey]struct{})
	note := func(k seenKey) {
		if _, seen := m.seen[k]; !seen {
			fresh[k] = struct{}{}
		}
	}
	for i := range parcels {
		p := &parcels[i]
		for k := range p.URLs {
			if e := &p.URLs[k].Entry; e.For.IsZero() {
				note(keyOf(e))
			}
		}
		for _, f := range p.Seen {
			note(seenKey{p.Origin, f})
		}
	}
	return len(fresh) <= free
}

func (m *Memory) take(p *Parcel) {
	o := m.origin(p.Origin)
	if p.Host != nil {
		clock := schedule.Clock(*p.Host)
		clock.Memo = bytes.Clone(clock.Memo)
		o.Host.Set(clock)
		o.Origin.Hold, o.Dormant = p.Hold, p.Dormant
	}
	for _, k := range p.URLs {
		if k.For.IsZero() && !m.see(o, keyOf(&k.Entry)) {
			continue
		}
		m.place(o, k)
	}
	for _, f := range p.Seen {
		m.see(o, seenKey{p.Origin, f})
	}
	m.turns.Update(&o.Origin)
}

func (m *Memory) place(o *memoryOrigin, k StoredEntry) {
	e := k.Entry
	e.Context, e.Page = bytes.Clone(e.Context), clonePage(e.Page)
	switch {
	case k.In == InRest:
		m.seen[keyOf(&e)] = o.Queue.rest(e, k.At)
	case k.In == InParking:
		m.park(o, e)
	case k.At.IsZero():
		o.Queue.add(e)
	default:
		o.Queue.putOff(e, k.At)
	}
}
