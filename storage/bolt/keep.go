package bolt

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// reviveWindow is how many parked URLs are read at a time.
const reviveWindow = 1024

// Recall implements storage.Store.
func (s *Store) Recall(ctx context.Context, now time.Time, sightings []storage.Sighting) (recalled int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	for _, g := range sightings {
		o := s.origins[g.URL.Origin()]
		if o == nil {
			continue
		}
		again, err := s.recall(o, g, now)
		if err != nil {
			return recalled, err
		}
		recalled += again
		s.turns.Update(&o.Origin)
	}
	return recalled, nil
}

// recall looks for the page among those of o that rest.
func (s *Store) recall(o *origin, g storage.Sighting, now time.Time) (int, error) {
	l := o.lane(schedule.Resting)
	items, err := s.scan(o, l, l.low, l.n)
	if err != nil {
		return 0, err
	}
	for _, i := range items {
		e, err := parseEntry(i.value, o.name)
		if err != nil {
			return 0, s.damaged("%v", err)
		}
		if e.URL != g.URL {
			continue
		}
		var page storage.Page
		if e.Page != nil {
			page = *e.Page
		}
		if !page.Visited.Before(g.Modified) {
			return 0, nil
		}
		page.Listed, e.Page = g.Modified, &page
		s.pending.deleteURL(urlKey{o.number, schedule.Resting, i.place})
		s.cached -= len(l.head)
		l.head = nil
		l.remove(i.place)
		s.put(o, schedule.Resting, min(i.at, nanos(now)), &e)
		return 1, nil
	}
	return 0, nil
}

// Revive implements storage.Store. What it changes is one change, and is in
// memory until it is written: as many URLs as are revived.
func (s *Store) Revive(ctx context.Context, name decorum.Origin, judge func(storage.Entry) bool) (revived int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	o := s.origins[name]
	if o == nil || o.parked.n == 0 {
		return 0, nil
	}
	chosen, err := s.judge(o, judge)
	if err != nil {
		return 0, err
	}
	for _, i := range chosen {
		e, err := parseEntry(i.value, o.name) // did not fail a moment ago
		if err != nil {
			return 0, err
		}
		s.pending.deleteURL(urlKey{o.number, parked, i.place})
		o.parked.remove(i.place)
		s.parked--
		s.put(o, laneOf(&e), rankOf(&e), &e)
	}
	s.turns.Update(&o.Origin)
	return len(chosen), nil
}

// Parked implements storage.Store.
func (s *Store) Parked(ctx context.Context) (origins []decorum.Origin, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, o := range s.all {
		if o.parked.n > 0 {
			origins = append(origins, o.name)
		}
	}
	return origins, nil
}

// judge returns the parked URLs of o for which judge returns true.
func (s *Store) judge(o *origin, judge func(storage.Entry) bool) (chosen []item, err error) {
	for from := firstPlace; ; {
		items, err := s.scan(o, &o.parked, from, reviveWindow)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			e, err := parseEntry(i.value, o.name)
			if err != nil {
				return nil, s.damaged("%v", err)
			}
			if judge(e) {
				chosen = append(chosen, i)
			}
		}
		if len(items) < reviveWindow {
			return chosen, nil
		}
		from = items[len(items)-1].place
		from.seq++
	}
}

// Note implements storage.Store.
func (s *Store) Note(ctx context.Context, name decorum.Origin, key string) (value []byte, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	o := s.origins[name]
	if o == nil {
		return nil, nil
	}
	k := noteKey{o.number, key}
	if v, ok := s.pending.notes[k]; ok {
		return bytes.Clone(v), nil
	}
	if s.flushing != nil {
		if v, ok := s.flushing.notes[k]; ok {
			return bytes.Clone(v), nil
		}
	}
	err = s.view(func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket([]byte(bucketNotes)).Get(k.appendTo(nil)))
		return nil
	})
	return value, err
}

// SetNote implements storage.Store.
func (s *Store) SetNote(ctx context.Context, name decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNote {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, name, len(value), storage.MaxNote)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	k := noteKey{s.origin(name).number, key}
	s.pending.notes[k] = bytes.Clone(value)
	s.pending.size += 1 + len(value)/256 // about as much work as so many URLs
	return nil
}
