package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var _ storage.Importer = (*Store)(nil)

// Import implements storage.Importer.
func (m *Store) Import(ctx context.Context, dumps []storage.OriginDump) error {
	if err := storage.ValidateDumps(dumps); err != nil {
		return err
	}
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if !m.hasCapacityForImport(dumps) {
		return fmt.Errorf("import: %d URLs are kept in memory already: %w", len(m.seenURLs), storage.ErrFull)
	}
	for i := range dumps {
		m.importOrigin(&dumps[i])
	}
	return nil
}

// hasCapacityForImport reports whether the seen set stays within MaxURLs if the dumps are added. It
// counts each new entry and fingerprint once.
func (m *Store) hasCapacityForImport(dumps []storage.OriginDump) bool {
	free := m.maxURLs - len(m.seenURLs)
	newKeys := make(map[seenKey]struct{})
	addKey := func(k seenKey) {
		if _, seen := m.seenURLs[k]; !seen {
			newKeys[k] = struct{}{}
		}
	}
	for i := range dumps {
		p := &dumps[i]
		for k := range p.URLs {
			if e := &p.URLs[k].Entry; e.RobotsFor.IsZero() {
				addKey(seenKeyOf(e))
			}
		}
		for _, f := range p.SeenURLFingerprints {
			addKey(seenKey{p.Origin, f})
		}
	}
	return len(newKeys) <= free
}

// importOrigin adds a dump: the clock and the hold, then the URLs that the seen set does not have, then
// the fingerprints.
func (m *Store) importOrigin(p *storage.OriginDump) {
	o := m.getOrCreateOrigin(p.Origin)
	if p.HostState != nil {
		host := *p.HostState
		host.EncodedStats = bytes.Clone(host.EncodedStats)
		o.Host.SetState(host)
		o.Origin.HeldUntil, o.Suspended = p.HeldUntil, p.Suspended
	}
	for _, k := range p.URLs {
		if k.RobotsFor.IsZero() && !m.markSeen(o, seenKeyOf(&k.Entry)) {
			continue
		}
		m.importEntry(o, k)
	}
	for _, f := range p.SeenURLFingerprints {
		m.markSeen(o, seenKey{p.Origin, f})
	}
	m.schedule.UpdateOrigin(&o.Origin)
}

// importEntry puts k into the queue of its state.
func (m *Store) importEntry(o *memoryOrigin, k storage.StoredEntry) {
	e := schedule.CloneEntry(k.Entry)
	switch {
	case k.State == storage.StateAwaitingRevisit:
		m.seenURLs[seenKeyOf(&e)] = o.Queue.addRevisit(e, k.NotBefore)
	case k.State == storage.StateParked:
		m.parkEntry(o, e)
	case k.NotBefore.IsZero():
		o.Queue.addEntry(e)
	default:
		o.Queue.addDelayed(e, k.NotBefore)
	}
}
