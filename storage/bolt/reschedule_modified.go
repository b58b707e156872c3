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

// Recall implements storage.Store.
func (s *Store) Recall(ctx context.Context, now time.Time, sightings []storage.Sighting) (recalled int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	err = s.view(func(tx *bbolt.Tx) error {
		for _, g := range sightings {
			o, err := s.find(tx, g.URL.Origin())
			if err != nil {
				return err
			}
			if o != nil && s.recall(tx, o, g, now) {
				s.turns.Update(&o.Origin)
				recalled++
			}
		}
		return nil
	})
	return recalled, err
}

// recall brings the revisit of a page forward, if it rests and was modified.
func (s *Store) recall(tx *bbolt.Tx, o *origin, g storage.Sighting, now time.Time) bool {
	p := printOf(g.URL)
	at, ok := s.resting(tx, o, p)
	if !ok || slices.Contains(o.out, at) {
		return false
	}
	value := s.get(tx, o, at)
	e, err := parseEntry(value, o.number, o.name, at)
	if err != nil || e.URL != g.URL { // if it is damaged, Lease will say so
		return false
	}
	var page storage.Page
	if e.Page != nil {
		page = *e.Page
	}
	if !page.Visited.Before(g.Modified) {
		return false
	}
	page.Listed, e.Page = g.Modified, &page
	s.clearSlot(o, at)
	l := o.lane(schedule.Resting)
	s.cached -= l.weight
	l.setHead(nil)
	l.n--
	s.put(o, schedule.Resting, min(at.at, schedule.Nanos(now)), &e)
	return true
}

// resting returns where the page of the fingerprint rests.
func (s *Store) resting(tx *bbolt.Tx, o *origin, p print) (at slot, ok bool) {
	for _, c := range o.layers() {
		if where, known := c.rests[p]; known {
			return slot{schedule.Resting, where}, where != nowhere
		}
	}
	key, err := bucketOf(tx, bucketResting).get(appendPrintKey(nil, o.number, p))
	if err != nil {
		s.reportOnce(fmt.Sprintf("resting %d %d", o.number, p),
			"where a page of %v rests: a sitemap's date does not bring its revisit forward", o.name)
		return at, false
	}
	_, at, ok = parseURLKey(key)
	return at, ok
}
