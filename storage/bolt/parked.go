package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

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
			n, more = s.queues.unparkBatch(tx, o, &from, end, shouldUnpark)
			unparked += n
			s.index.schedule.UpdateOrigin(&o.Origin)
			return nil
		})
		s.trimUnlockAndCommitIfDue()
		if err != nil {
			return unparked, err
		}
	}
	return unparked, nil
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
