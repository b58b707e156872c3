package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var _ storage.Importer = (*Store)(nil)

// Import implements storage.Importer. Each parcel is atomic.
func (s *Store) Import(ctx context.Context, parcels []storage.Parcel) error {
	if err := storage.CheckParcels(parcels); err != nil {
		return err
	}
	for i := range parcels {
		if err := s.begin(ctx); err != nil {
			return err
		}
		err := s.view(func(tx *bbolt.Tx) error { return s.unpack(tx, &parcels[i]) })
		s.end()
		if err != nil {
			return err
		}
	}
	return nil
}

// unpack puts a parcel where it belongs.
func (s *Store) unpack(tx *bbolt.Tx, p *storage.Parcel) error {
	o, err := s.meet(tx, p.Origin)
	if err != nil {
		return err
	}
	if p.Host != nil {
		o.host.Set(schedule.Clock(*p.Host))
		o.Origin.Hold, o.Dormant = p.Hold, p.Dormant
		s.touchHost(o)
	}
	c := tx.Bucket([]byte(bucketPrints)).Cursor()
	for i := range p.URLs {
		k := &p.URLs[i]
		if k.For.IsZero() && !s.seeNew(c, o, printOfEntry(&k.Entry)) {
			continue
		}
		s.place(o, k)
	}
	for _, f := range p.Seen {
		s.seeNew(c, o, print(f))
	}
	s.turns.Update(&o.Origin)
	return nil
}

// seeNew puts a fingerprint into the seen set; false if it was there.
func (s *Store) seeNew(c *bbolt.Cursor, o *origin, p print) bool {
	if seen, _ := s.isSeen(c, o, p); seen {
		return false
	}
	s.see(o, p)
	return true
}

// place puts a URL into the lane of its state.
func (s *Store) place(o *origin, k *storage.StoredEntry) {
	switch {
	case k.In == storage.InRest:
		s.put(o, schedule.Resting, schedule.Nanos(k.At), &k.Entry)
	case k.In == storage.InParking:
		s.put(o, parked, 0, &k.Entry)
	case k.At.IsZero():
		s.put(o, laneOf(&k.Entry), rankOf(&k.Entry), &k.Entry)
	default:
		s.put(o, laneOf(&k.Entry).Later(), schedule.Nanos(k.At), &k.Entry)
	}
}
