package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var _ storage.Importer = (*Store)(nil)

// Import implements storage.Importer. Each parcel is atomic.
func (s *Store) Import(ctx context.Context, dumps []storage.OriginDump) error {
	if err := storage.ValidateDumps(dumps); err != nil {
		return err
	}
	for i := range dumps {
		if err := s.lockForChange(ctx); err != nil {
			return err
		}
		err := s.file.view(func(tx *bbolt.Tx) error { return s.importOriginDump(tx, &dumps[i]) })
		s.trimUnlockAndCommitIfDue()
		if err != nil {
			return err
		}
	}
	return nil
}

// importOriginDump puts a parcel where it belongs.
func (s *Store) importOriginDump(tx *bbolt.Tx, p *storage.OriginDump) error {
	o, err := s.index.getOrCreate(tx, p.Origin)
	if err != nil {
		return err
	}
	if p.HostState != nil {
		o.host.SetState(schedule.HostState(*p.HostState))
		o.Origin.HeldUntil, o.Suspended = p.HeldUntil, p.Suspended
		s.journal.markOriginAndHostChanged(o)
	}
	c := tx.Bucket([]byte(bucketFingerprints)).Cursor()
	for i := range p.URLs {
		k := &p.URLs[i]
		if k.RobotsFor.IsZero() && !s.seen.addIfNew(c, o, fingerprintOfEntry(&k.Entry)) {
			continue
		}
		s.queues.putStored(o, k)
	}
	for _, f := range p.SeenURLFingerprints {
		s.seen.addIfNew(c, o, urlFingerprint(f))
	}
	s.index.schedule.UpdateOrigin(&o.Origin)
	return nil
}
