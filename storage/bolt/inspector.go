package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Origins implements storage.Inspector. It goes by the order in which the
// origins were met, a portion at a time.
func (s *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	return eachOrigin(ctx, s, yield, func(tx *bbolt.Tx, number uint32) (storage.OriginInfo, bool, error) {
		info, err := s.info(tx, number)
		return info, !info.Origin.IsZero(), err
	})
}

// OriginNames implements storage.OriginLister, a portion at a time as Origins does.
func (s *Store) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return eachOrigin(ctx, s, yield, func(tx *bbolt.Tx, number uint32) (decorum.Origin, bool, error) {
		if o := s.numbers[number]; o != nil {
			return o.name, !o.name.IsZero(), nil
		}
		o, err := s.read(tx, numberKey(number))
		if err != nil {
			return decorum.Origin{}, false, err
		}
		return o.name, !o.name.IsZero(), nil
	})
}

// eachOrigin calls yield with what read returns for each origin, until yield returns
// false. read reports false for the origin without a name, which holds the crawl's own
// notes. The store is locked while a portion is read, and free while yield runs.
func eachOrigin[T any](
	ctx context.Context, s *Store, yield func(T) bool, read func(tx *bbolt.Tx, number uint32) (T, bool, error),
) error {
	found := make([]T, 0, portion)
	for number, more := uint32(1), true; more; number += portion {
		found = found[:0]
		if err := s.lock(ctx); err != nil {
			return err
		}
		err := s.view(func(tx *bbolt.Tx) error {
			end := min(s.last, number+portion-1)
			more = end < s.last
			for n := number; n <= end; n++ {
				one, ok, err := read(tx, n)
				if err != nil {
					return err
				}
				if ok {
					found = append(found, one)
				}
			}
			return nil
		})
		s.mu.Unlock()
		if err != nil {
			return err
		}
		for _, one := range found {
			if !yield(one) {
				return nil
			}
		}
	}
	return nil
}

// info tells of an origin, in memory or in the file.
func (s *Store) info(tx *bbolt.Tx, number uint32) (storage.OriginInfo, error) {
	o := s.numbers[number]
	if o != nil {
		return o.info(), nil
	}
	o, err := s.read(tx, numberKey(number))
	if err != nil {
		return storage.OriginInfo{}, err
	}
	h := s.hosts[o.name.Host()]
	if h == nil {
		h = &host{name: o.name.Host()}
		if err := s.readHost(tx, h, number); err != nil {
			return storage.OriginInfo{}, err
		}
	}
	o.host, o.Host, o.Queue = h, &h.Host, o
	info := o.info()
	if since, idle := s.idleSince(h, number); idle {
		info.Next, _ = schedule.NextOf(&o.Origin, since)
	}
	return info, nil
}

func (o *origin) info() storage.OriginInfo {
	resting, _ := o.Resting()
	next, _ := o.Next()
	return storage.OriginInfo{
		Origin: o.name, Host: storage.Host(o.host.Clock), Hold: o.Origin.Hold, Dormant: o.Dormant,
		Queued: o.All, Leased: len(o.out), Resting: resting, Parked: o.parked, Seen: o.seen, Next: next,
	}
}

// Origin implements storage.Inspector. What is not in memory stays where it is.
func (s *Store) Origin(ctx context.Context, name decorum.Origin) (info storage.OriginInfo, met bool, err error) {
	if err := s.lock(ctx); err != nil {
		return info, false, err
	}
	defer s.mu.Unlock()
	if o := s.origins[name]; o != nil {
		return o.info(), true, nil
	}
	err = s.view(func(tx *bbolt.Tx) error {
		number, err := s.numberOf(tx, name)
		if err != nil || number == nil {
			return err
		}
		if info, err = s.info(tx, binary.BigEndian.Uint32(number)); err != nil {
			return err
		}
		if met = info.Origin == name; !met {
			return s.damaged("origin %v has the number of %v", name, info.Origin)
		}
		return nil
	})
	return info, met, err
}

// URLs implements storage.Inspector. Leased URLs come first: there they go if
// their leases run out.
func (s *Store) URLs(ctx context.Context, name decorum.Origin, in storage.State, yield func(storage.Entry, time.Time) bool) error {
	first, n := schedule.Lane(0), schedule.Resting
	switch in {
	case storage.InRest:
		first, n = schedule.Resting, 1
	case storage.InParking:
		first, n = parked, 1
	case storage.InQueue:
		out, err := s.leased(ctx, name)
		if err != nil {
			return err
		}
		for _, e := range out {
			if !yield(e, time.Time{}) {
				return nil
			}
		}
	}
	for i := range n {
		if more, err := s.tellLane(ctx, name, first+i, yield); !more || err != nil {
			return err
		}
	}
	return nil
}

// leased returns the URLs of an origin that are out.
func (s *Store) leased(ctx context.Context, name decorum.Origin) (out []storage.Entry, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if l.Origin.Queue.name == name {
			out = append(out, l.entry)
		}
	}
	return out, nil
}

// tellLane tells of the URLs that wait in one lane. Records that make no sense
// are passed by: Lease sets them aside.
func (s *Store) tellLane(ctx context.Context, name decorum.Origin, lane schedule.Lane, yield func(storage.Entry, time.Time) bool) (more bool, err error) {
	for from := (slot{lane, firstPlace}); ; {
		number, items, more, err := s.page(ctx, name, from)
		if err != nil {
			return false, err
		}
		for _, i := range items {
			e, err := parseEntry(i.value, number, name, slot{lane, i.place})
			if err != nil {
				s.reportDamaged(fmt.Sprintf("url %d %v", number, slot{lane, i.place}), "%v: it is passed by", err)
				continue
			}
			var at time.Time
			if lane.Timed() && lane < schedule.Lanes {
				at = time.Unix(0, i.at).UTC()
			}
			if !yield(e, at) {
				return false, nil
			}
		}
		if !more {
			return true, nil
		}
		from.place = items[len(items)-1].place
		from.seq++
	}
}

// page returns the first URLs of a lane from the slot on, with the number of their
// origin, and whether there may be more.
func (s *Store) page(
	ctx context.Context, name decorum.Origin, from slot,
) (number uint32, items []item, more bool, err error) {
	err = s.look(ctx, name, func(tx *bbolt.Tx, o *origin) {
		number = o.number
		items, more = s.scan(tx, o, from, portion)
	})
	return number, items, more, err
}

// look calls see with an origin, if it was ever met.
func (s *Store) look(ctx context.Context, name decorum.Origin, see func(*bbolt.Tx, *origin)) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.end()
	return s.lookAt(name, see)
}

// lookAt is look for who holds the lock.
func (s *Store) lookAt(name decorum.Origin, see func(*bbolt.Tx, *origin)) error {
	return s.view(func(tx *bbolt.Tx) error {
		o, err := s.find(tx, name)
		if o != nil && err == nil {
			see(tx, o)
		}
		return err
	})
}

// Known implements storage.Inspector.
func (s *Store) Known(ctx context.Context, u decorum.URL) (known bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.end()
	p := printOf(u)
	err = s.lookAt(u.Origin(), func(tx *bbolt.Tx, o *origin) {
		known, _ = s.isSeen(tx.Bucket([]byte(bucketPrints)).Cursor(), o, p)
	})
	return known, err
}

// Seen implements storage.Inspector. First come those that are not folded.
func (s *Store) Seen(ctx context.Context, name decorum.Origin, yield func(fingerprint uint64) bool) error {
	var fresh run[print]
	err := s.look(ctx, name, func(_ *bbolt.Tx, o *origin) {
		for _, layer := range o.layers() {
			for c := layer.seen.seek(0); ; c.next() {
				p, ok := c.peek()
				if !ok {
					break
				}
				fresh.put(p)
			}
		}
	})
	if err != nil {
		return err
	}
	for c := fresh.seek(0); ; c.next() {
		p, ok := c.peek()
		if !ok {
			break
		}
		if !yield(uint64(p)) {
			return nil
		}
	}
	return s.tellFile(ctx, name, bucketPrints, func(key, value []byte, err error) bool {
		if err != nil {
			s.reportDamaged("prints "+string(key), "a part of the seen set of %v: what is left of it is listed", name)
			value = mergePrints(nil, printsLeft(value))
		}
		for i := range len(value) / printLen {
			p := printOfValue(value, i)
			if _, isPending := fresh.get(p); !isPending && !yield(uint64(p)) {
				return false
			}
		}
		return true
	})
}

// Notes implements storage.Inspector. First come those that are not folded.
func (s *Store) Notes(ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool) error {
	fresh := make(map[string][]byte)
	err := s.look(ctx, name, func(_ *bbolt.Tx, o *origin) {
		for _, layer := range slices.Backward(o.layers()) {
			maps.Copy(fresh, layer.notes)
		}
	})
	if err != nil {
		return err
	}
	for key, value := range fresh {
		if value != nil && !yield(key, bytes.Clone(value)) {
			return nil
		}
	}
	var damage error
	err = s.tellFile(ctx, name, bucketNotes, func(key, value []byte, err error) bool {
		key = key[4:]
		if _, isPending := fresh[string(key)]; isPending {
			return true
		}
		if err != nil {
			damage = s.damaged("note %q of %v: %v", key, name, err)
			return false
		}
		return yield(string(key), value)
	})
	return errors.Join(err, damage)
}

// tellFile calls yield with the values that a bucket of the file holds of an origin,
// one at a time, since they may be large. It yields a damaged value as it is, with an
// error.
func (s *Store) tellFile(
	ctx context.Context, name decorum.Origin, bucket string, yield func(key, value []byte, err error) bool,
) error {
	for from := []byte(nil); ; {
		var key, value []byte
		err := s.look(ctx, name, func(tx *bbolt.Tx, o *origin) {
			own := numberKey(o.number)
			k, v := tx.Bucket([]byte(bucket)).Cursor().Seek(append(own, from...))
			if bytes.HasPrefix(k, own[:4]) {
				key, value = bytes.Clone(k), bytes.Clone(v)
			}
		})
		if err != nil || key == nil {
			return err
		}
		checked, damage := checkSum(key, value)
		if damage == nil {
			value = checked
		}
		if !yield(key, value, damage) {
			return nil
		}
		from = append(key[4:], 0) // the smallest key after this one
	}
}
