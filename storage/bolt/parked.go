package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// batchSize is how many URLs, or origins, one hold of the lock goes through.
const batchSize = 256

// UnparkMatchingURLs implements storage.Store. Each portion is atomic.
func (s *Store) UnparkMatchingURLs(ctx context.Context, name decorum.Origin, shouldUnpark func(storage.Entry) bool) (unparked int, err error) {
	from, end := laneSlot{parkedLane, firstPosition}, int64(-1)
	for more := true; more; {
		if err := s.lockForChange(ctx); err != nil {
			return unparked, err
		}
		err := s.file.view(func(tx *bbolt.Tx) (err error) {
			o, err := s.index.find(tx, name)
			if o == nil || o.parkedCount == 0 || err != nil {
				more = false
				return err
			}
			if end < 0 { // what is parked meanwhile was judged by who parks it
				end = o.lastSeq
			}
			var n int
			n, more = s.unparkBatch(tx, o, &from, end, shouldUnpark)
			unparked += n
			return nil
		})
		s.trimUnlockAndCommitIfDue()
		if err != nil {
			return unparked, err
		}
	}
	return unparked, nil
}

// unparkBatch judges some parked URLs of o from the slot on, which it moves, and
// reports whether there may be more before the end.
func (s *Store) unparkBatch(tx *bbolt.Tx, o *loadedOrigin, from *laneSlot, end int64, shouldUnpark func(storage.Entry) bool) (unparked int, more bool) {
	items, more := s.firstUnleasedURLsInLane(tx, o, *from, batchSize)
	for _, i := range items {
		if i.seq > end {
			return unparked, false
		}
		at := laneSlot{parkedLane, i.lanePosition}
		from.lanePosition = lanePosition{i.sortKey, i.seq + 1}
		e, err := parseEntry(i.value, o.number, o.name, at)
		if err != nil {
			s.removeParkedEntry(o, at)
			s.quarantineRecord(o, at, i.value, err)
			continue
		}
		if shouldUnpark(e) {
			s.removeParkedEntry(o, at)
			s.putEntryInLane(o, laneOfEntry(&e), rankOfEntry(&e), &e)
			unparked++
		}
	}
	s.index.schedule.UpdateOrigin(&o.Origin)
	return unparked, more
}

func (s *Store) removeParkedEntry(o *loadedOrigin, at laneSlot) {
	s.journal.deleteURL(o, at)
	o.parkedCount--
	s.parkedCount--
}

// OriginsWithParkedURLs implements storage.Store.
func (s *Store) OriginsWithParkedURLs(ctx context.Context) (origins []decorum.Origin, err error) {
	err = s.Origins(ctx, func(i storage.OriginInfo) bool {
		if i.ParkedURLs > 0 {
			origins = append(origins, i.Origin)
		}
		return true
	})
	return origins, err
}
