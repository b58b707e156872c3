package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// portion is how many URLs, or origins, one hold of the lock goes through.
const portion = 256

// Revive implements storage.Store. Each portion is atomic.
func (s *Store) Revive(ctx context.Context, name decorum.Origin, shouldUnpark func(storage.Entry) bool) (revived int, err error) {
	from, end := slot{parked, firstPlace}, int64(-1)
	for more := true; more; {
		if err := s.begin(ctx); err != nil {
			return revived, err
		}
		err := s.view(func(tx *bbolt.Tx) (err error) {
			o, err := s.find(tx, name)
			if o == nil || o.parked == 0 || err != nil {
				more = false
				return err
			}
			if end < 0 { // what is parked meanwhile was judged by who parks it
				end = o.seq
			}
			var n int
			n, more = s.revive(tx, o, &from, end, shouldUnpark)
			revived += n
			return nil
		})
		s.end()
		if err != nil {
			return revived, err
		}
	}
	return revived, nil
}

// revive judges some parked URLs of o from the slot on, which it moves, and
// reports whether there may be more before the end.
func (s *Store) revive(tx *bbolt.Tx, o *origin, from *slot, end int64, shouldUnpark func(storage.Entry) bool) (revived int, more bool) {
	items, more := s.scan(tx, o, *from, portion)
	for _, i := range items {
		if i.seq > end {
			return revived, false
		}
		at := slot{parked, i.place}
		from.place = place{i.at, i.seq + 1}
		e, err := parseEntry(i.value, o.number, o.name, at)
		if err != nil {
			s.unpark(o, at)
			s.setAside(o, at, i.value, err)
			continue
		}
		if shouldUnpark(e) {
			s.unpark(o, at)
			s.put(o, laneOf(&e), rankOf(&e), &e)
			revived++
		}
	}
	s.turns.Update(&o.Origin)
	return revived, more
}

func (s *Store) unpark(o *origin, at slot) {
	s.clearSlot(o, at)
	o.parked--
	s.parked--
}

// Parked implements storage.Store.
func (s *Store) Parked(ctx context.Context) (origins []decorum.Origin, err error) {
	err = s.Origins(ctx, func(i storage.OriginInfo) bool {
		if i.Parked > 0 {
			origins = append(origins, i.Origin)
		}
		return true
	})
	return origins, err
}
