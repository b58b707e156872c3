package bolt

import (
	"context"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// RescheduleByLastmod implements storage.Store.
func (s *Store) RescheduleByLastmod(ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod) (rescheduled int, err error) {
	if err := s.lockForChange(ctx); err != nil {
		return 0, err
	}
	defer s.trimUnlockAndCommitIfDue()
	err = s.file.view(func(tx *bbolt.Tx) error {
		for _, g := range lastmods {
			o, err := s.index.find(tx, g.URL.Origin())
			if err != nil {
				return err
			}
			if o != nil && s.queues.rescheduleIfModified(tx, o, g, now) {
				s.index.schedule.UpdateOrigin(&o.Origin)
				rescheduled++
			}
		}
		return nil
	})
	return rescheduled, err
}
