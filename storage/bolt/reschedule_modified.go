package bolt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
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
			if o != nil && s.rescheduleIfModified(tx, o, g, now) {
				s.index.schedule.UpdateOrigin(&o.Origin)
				rescheduled++
			}
		}
		return nil
	})
	return rescheduled, err
}

// rescheduleIfModified brings the revisit of a page forward, if it rests and was modified.
func (s *Store) rescheduleIfModified(tx *bbolt.Tx, o *loadedOrigin, g storage.SitemapLastmod, now time.Time) bool {
	p := fingerprintOfURL(g.URL)
	at, ok := s.findRevisitSlot(tx, o, p)
	if !ok || slices.Contains(o.leasedSlots, at) {
		return false
	}
	value := s.getQueuedURL(tx, o, at)
	e, err := parseEntry(value, o.number, o.name, at)
	if err != nil || e.URL != g.URL { // if it is damaged, Lease will say so
		return false
	}
	var history storage.VisitHistorySummary
	if e.VisitHistorySummary != nil {
		history = *e.VisitHistorySummary
	}
	if !history.VisitedAt.Before(g.Modified) {
		return false
	}
	history.SitemapLastmod, e.VisitHistorySummary = g.Modified, &history
	s.journal.deleteURL(o, at)
	l := o.getOrCreateLane(schedule.AwaitingRevisit)
	s.heads.clear(l)
	l.count--
	s.putEntryInLane(o, schedule.AwaitingRevisit, min(at.sortKey, schedule.Nanos(now)), &e)
	return true
}

// findRevisitSlot returns where the page of the fingerprint rests.
func (s *Store) findRevisitSlot(tx *bbolt.Tx, o *loadedOrigin, p urlFingerprint) (at laneSlot, ok bool) {
	for _, c := range o.pendingLayers() {
		if pos, known := c.revisitPositions[p]; known {
			return laneSlot{schedule.AwaitingRevisit, pos}, pos != noLanePosition
		}
	}
	key, err := openChecksummedBucket(tx, bucketRevisits).get(appendFingerprintKey(nil, o.number, p))
	if err != nil {
		s.damage.reportOnce(fmt.Sprintf("resting %d %d", o.number, p),
			"where a page of %v rests: a sitemap's date does not bring its revisit forward", o.name)
		return at, false
	}
	_, at, ok = parseURLKey(key)
	return at, ok
}
