package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var _ storage.Inspector = (*Store)(nil)

// inspectWindow is how many URLs, fingerprints or notes are read at a time.
// The store is not locked while they are told.
const inspectWindow = 1024

// Origins implements storage.Inspector.
func (s *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	for i := 0; ; i++ {
		if err := s.lock(ctx); err != nil {
			return err
		}
		if i == len(s.all) {
			s.mu.Unlock()
			return nil
		}
		info := s.all[i].info()
		s.mu.Unlock()
		if !info.Origin.IsZero() && !yield(info) { // which is the crawl's own, for notes
			return nil
		}
	}
}

// Origin implements storage.Inspector.
func (s *Store) Origin(ctx context.Context, name decorum.Origin) (storage.OriginInfo, bool, error) {
	if err := s.lock(ctx); err != nil {
		return storage.OriginInfo{}, false, err
	}
	defer s.mu.Unlock()
	o := s.origins[name]
	if o == nil {
		return storage.OriginInfo{}, false, nil
	}
	return o.info(), true, nil
}

func (o *origin) info() storage.OriginInfo {
	queued, _ := o.Len()
	resting, _ := o.Resting()
	next, _ := o.Next()
	return storage.OriginInfo{
		Origin: o.name, Host: storage.Host(o.host.Clock), Hold: o.Hold, Dormant: o.Dormant,
		Queued: queued, Leased: len(o.out), Resting: resting, Parked: o.parked.n, Seen: o.seen, Next: next,
	}
}

// URLs implements storage.Inspector. Leased URLs come first: there they go if
// their leases run out.
func (s *Store) URLs(ctx context.Context, name decorum.Origin, in storage.State, yield func(storage.Entry, time.Time) bool) error {
	lanes := []schedule.Lane{parked}
	switch in {
	case storage.InRest:
		lanes = []schedule.Lane{schedule.Resting}
	case storage.InQueue:
		lanes = nil
		for id := range schedule.Resting {
			lanes = append(lanes, id)
		}
		more, err := s.tellLeased(ctx, name, yield)
		if !more || err != nil {
			return err
		}
	}
	for _, id := range lanes {
		if more, err := s.tellLane(ctx, name, id, yield); !more || err != nil {
			return err
		}
	}
	return nil
}

// tellLeased tells of the URLs of the origin that are out.
func (s *Store) tellLeased(ctx context.Context, name decorum.Origin, yield func(storage.Entry, time.Time) bool) (more bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	var out []storage.Entry
	for _, l := range s.leases {
		if l.Origin.Queue.name == name {
			out = append(out, l.entry)
		}
	}
	s.mu.Unlock()
	for _, e := range out {
		if !yield(e, time.Time{}) {
			return false, nil
		}
	}
	return true, nil
}

// tellLane tells of the URLs that wait in one lane.
func (s *Store) tellLane(ctx context.Context, name decorum.Origin, id schedule.Lane, yield func(storage.Entry, time.Time) bool) (more bool, err error) {
	for from := firstPlace; ; {
		items, err := s.page(ctx, name, id, from)
		if err != nil {
			return false, err
		}
		for _, i := range items {
			e, err := parseEntry(i.value, name)
			if err != nil {
				return false, s.damaged("%v", err)
			}
			var at time.Time
			if id.Timed() {
				at = time.Unix(0, i.at).UTC()
			}
			if !yield(e, at) {
				return false, nil
			}
		}
		if len(items) < inspectWindow {
			return true, nil
		}
		from = items[len(items)-1].place
		from.seq++
	}
}

// page returns the first URLs of a lane from the place on.
func (s *Store) page(ctx context.Context, name decorum.Origin, id schedule.Lane, from place) ([]item, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	o := s.origins[name]
	switch {
	case o == nil:
		return nil, nil
	case id == parked:
		return s.scan(o, &o.parked, from, inspectWindow)
	}
	for i := range o.lanes {
		if o.lanes[i].lane == id {
			return s.scan(o, &o.lanes[i], from, inspectWindow)
		}
	}
	return nil, nil
}

// Known implements storage.Inspector.
func (s *Store) Known(ctx context.Context, u decorum.URL) (bool, error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	known, err := s.known([]storage.Entry{{URL: u}})
	return known[0], err
}

// Seen implements storage.Inspector. What is not written yet is written first:
// then all is in the file.
func (s *Store) Seen(ctx context.Context, name decorum.Origin, yield func(fingerprint uint64) bool) error {
	return s.tellFile(ctx, name, bucketSeen, inspectWindow, func(key, _ []byte) bool {
		return yield(binary.BigEndian.Uint64(key))
	})
}

// Notes implements storage.Inspector. They are large: it reads one at a time.
func (s *Store) Notes(ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool) error {
	return s.tellFile(ctx, name, bucketNotes, 1, func(key, value []byte) bool {
		return yield(string(key), value)
	})
}

// A pair is a key of an origin without the origin's number, and its value.
type pair struct{ key, value []byte }

// tellFile tells what a bucket of the file holds of an origin.
func (s *Store) tellFile(ctx context.Context, name decorum.Origin, bucket string, window int, yield func(key, value []byte) bool) error {
	if err := s.Flush(ctx); err != nil {
		return err
	}
	for from := []byte(nil); ; {
		pairs, err := s.pairs(ctx, name, bucket, from, window)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if !yield(p.key, p.value) {
				return nil
			}
		}
		if len(pairs) < window {
			return nil
		}
		from = append(pairs[len(pairs)-1].key, 0) // the next key there can be
	}
}

// pairs reads what a bucket holds of an origin, from a key on.
func (s *Store) pairs(ctx context.Context, name decorum.Origin, bucket string, from []byte, max int) (pairs []pair, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	o := s.origins[name]
	if o == nil {
		return nil, nil
	}
	err = s.view(func(tx *bbolt.Tx) error {
		own := binary.BigEndian.AppendUint32(nil, o.number)
		c := tx.Bucket([]byte(bucket)).Cursor()
		for key, value := c.Seek(slices.Concat(own, from)); len(pairs) < max; key, value = c.Next() {
			rest, ours := bytes.CutPrefix(key, own)
			if !ours || bucket == bucketSeen && len(rest) != 8 {
				return nil
			}
			pairs = append(pairs, pair{bytes.Clone(rest), bytes.Clone(value)})
		}
		return nil
	})
	return pairs, err
}
