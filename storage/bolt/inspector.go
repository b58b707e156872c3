package bolt

import (
	"bytes"
	"context"
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
	return forEachOrigin(ctx, s, yield, func(tx *bbolt.Tx, number uint32) (storage.OriginInfo, bool, error) {
		info, err := s.index.info(tx, number)
		return info, !info.Origin.IsZero(), err
	})
}

// OriginNames implements storage.OriginLister, a portion at a time as Origins does.
func (s *Store) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return forEachOrigin(ctx, s, yield, func(tx *bbolt.Tx, number uint32) (decorum.Origin, bool, error) {
		name, err := s.index.name(tx, number)
		return name, !name.IsZero(), err
	})
}

// forEachOrigin calls yield with what read returns for each origin, until yield returns
// false. read reports false for the origin without a name, which holds the crawl's own
// notes. The store is locked while a portion is read, and free while yield runs.
func forEachOrigin[T any](
	ctx context.Context, s *Store, yield func(T) bool, read func(tx *bbolt.Tx, number uint32) (T, bool, error),
) error {
	found := make([]T, 0, batchSize)
	for number, more := uint32(1), true; more; number += batchSize {
		found = found[:0]
		if err := s.lockIfOpen(ctx); err != nil {
			return err
		}
		err := s.file.view(func(tx *bbolt.Tx) error {
			end := min(s.index.lastOriginNumber, number+batchSize-1)
			more = end < s.index.lastOriginNumber
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

// Origin implements storage.Inspector. What is not in memory stays where it is.
func (s *Store) Origin(ctx context.Context, name decorum.Origin) (info storage.OriginInfo, found bool, err error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return info, false, err
	}
	defer s.mu.Unlock()
	if o := s.index.origins[name]; o != nil {
		return o.info(), true, nil
	}
	err = s.file.view(func(tx *bbolt.Tx) (err error) {
		info, found, err = s.index.infoByName(tx, name)
		return err
	})
	return info, found, err
}

// OriginURLsInState implements storage.Inspector. Leased URLs come first: there they go if
// their leases run out.
func (s *Store) OriginURLsInState(ctx context.Context, name decorum.Origin, state storage.EntryState, yield func(storage.Entry, time.Time) bool) error {
	first, n := schedule.LaneID(0), schedule.AwaitingRevisit
	switch state {
	case storage.StateAwaitingRevisit:
		first, n = schedule.AwaitingRevisit, 1
	case storage.StateParked:
		first, n = parkedLane, 1
	case storage.StateQueued:
		if err := s.lockIfOpen(ctx); err != nil {
			return err
		}
		leased := s.leases.entriesOf(name)
		s.mu.Unlock()
		for _, e := range leased {
			if !yield(e, time.Time{}) {
				return nil
			}
		}
	}
	for i := range n {
		if more, err := s.forEachEntryInLane(ctx, name, first+i, yield); !more || err != nil {
			return err
		}
	}
	return nil
}

// forEachEntryInLane tells of the URLs that wait in one lane. Records that make no sense
// are passed by: Lease sets them aside.
func (s *Store) forEachEntryInLane(ctx context.Context, name decorum.Origin, lane schedule.LaneID, yield func(storage.Entry, time.Time) bool) (more bool, err error) {
	for from := (laneSlot{lane, firstPosition}); ; {
		number, items, more, err := s.readLanePage(ctx, name, from)
		if err != nil {
			return false, err
		}
		for _, i := range items {
			e, err := parseEntry(i.value, number, name, laneSlot{lane, i.lanePosition})
			if err != nil {
				s.lockAndReportDamage(fmt.Sprintf("url %d %v", number, laneSlot{lane, i.lanePosition}), "%v: it is passed by", err)
				continue
			}
			var at time.Time
			if lane.IsTimed() && lane < schedule.NumLanes {
				at = time.Unix(0, i.sortKey).UTC()
			}
			if !yield(e, at) {
				return false, nil
			}
		}
		if !more {
			return true, nil
		}
		from.lanePosition = items[len(items)-1].lanePosition
		from.seq++
	}
}

// readLanePage returns the first URLs of a lane from the slot on, with the number of their
// origin, and whether there may be more.
func (s *Store) readLanePage(
	ctx context.Context, name decorum.Origin, from laneSlot,
) (number uint32, items []storedURL, more bool, err error) {
	err = s.viewOrigin(ctx, name, func(tx *bbolt.Tx, o *loadedOrigin) {
		number = o.number
		items, more = s.queues.firstUnleased(tx, o, from, batchSize)
	})
	return number, items, more, err
}

// viewOrigin calls see with an origin, if it was ever met.
func (s *Store) viewOrigin(ctx context.Context, name decorum.Origin, do func(*bbolt.Tx, *loadedOrigin)) error {
	if err := s.lockIfOpen(ctx); err != nil {
		return err
	}
	defer s.trimUnlockAndCommitIfDue()
	return s.viewOriginLocked(name, do)
}

// viewOriginLocked is look for who holds the lock.
func (s *Store) viewOriginLocked(name decorum.Origin, do func(*bbolt.Tx, *loadedOrigin)) error {
	return s.file.view(func(tx *bbolt.Tx) error {
		o, err := s.index.find(tx, name)
		if o != nil && err == nil {
			do(tx, o)
		}
		return err
	})
}

// HasSeen implements storage.Inspector.
func (s *Store) HasSeen(ctx context.Context, u decorum.URL) (known bool, err error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return false, err
	}
	defer s.trimUnlockAndCommitIfDue()
	p := fingerprintOfURL(u)
	err = s.viewOriginLocked(u.Origin(), func(tx *bbolt.Tx, o *loadedOrigin) {
		known, _ = s.seen.has(tx.Bucket([]byte(bucketFingerprints)).Cursor(), o, p)
	})
	return known, err
}

// SeenURLFingerprints implements storage.Inspector. First come those that are not folded.
func (s *Store) SeenURLFingerprints(ctx context.Context, name decorum.Origin, yield func(fingerprint uint64) bool) error {
	var pending sortedSliceSet[urlFingerprint]
	err := s.viewOrigin(ctx, name, func(_ *bbolt.Tx, o *loadedOrigin) {
		for _, layer := range o.pendingLayers() {
			for c := layer.seenURLFingerprints.cursorFrom(0); ; c.advance() {
				p, ok := c.peek()
				if !ok {
					break
				}
				pending.put(p)
			}
		}
	})
	if err != nil {
		return err
	}
	for c := pending.cursorFrom(0); ; c.advance() {
		p, ok := c.peek()
		if !ok {
			break
		}
		if !yield(uint64(p)) {
			return nil
		}
	}
	return s.forEachValueOfOrigin(ctx, name, bucketFingerprints, func(key, value []byte, err error) bool {
		if err != nil {
			s.lockAndReportDamage("prints "+string(key), "a part of the seen set of %v: what is left of it is listed", name)
			value = mergeFingerprints(nil, salvageFingerprints(value))
		}
		for i := range len(value) / fingerprintLen {
			p := fingerprintAt(value, i)
			if _, isPending := pending.get(p); !isPending && !yield(uint64(p)) {
				return false
			}
		}
		return true
	})
}

// OriginNotes implements storage.Inspector. First come those that are not folded.
func (s *Store) OriginNotes(ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool) error {
	pending := make(map[string][]byte)
	err := s.viewOrigin(ctx, name, func(_ *bbolt.Tx, o *loadedOrigin) {
		for _, layer := range slices.Backward(o.pendingLayers()) {
			maps.Copy(pending, layer.notes)
		}
	})
	if err != nil {
		return err
	}
	for key, value := range pending {
		if value != nil && !yield(key, bytes.Clone(value)) {
			return nil
		}
	}
	var damage error
	err = s.forEachValueOfOrigin(ctx, name, bucketNotes, func(key, value []byte, err error) bool {
		key = key[4:]
		if _, isPending := pending[string(key)]; isPending {
			return true
		}
		if err != nil {
			damage = s.damage.errorf("note %q of %v: %v", key, name, err)
			return false
		}
		return yield(string(key), value)
	})
	return errors.Join(err, damage)
}

// forEachValueOfOrigin calls yield with the values that a bucket of the file holds of an origin,
// one at a time, since they may be large. It yields a damaged value as it is, with an
// error.
func (s *Store) forEachValueOfOrigin(
	ctx context.Context, name decorum.Origin, bucket string, yield func(key, value []byte, err error) bool,
) error {
	for from := []byte(nil); ; {
		var key, value []byte
		err := s.viewOrigin(ctx, name, func(tx *bbolt.Tx, o *loadedOrigin) {
			prefix := numberKey(o.number)
			k, v := tx.Bucket([]byte(bucket)).Cursor().Seek(append(prefix, from...))
			if bytes.HasPrefix(k, prefix[:4]) {
				key, value = bytes.Clone(k), bytes.Clone(v)
			}
		})
		if err != nil || key == nil {
			return err
		}
		checked, damage := verifyAndTrimChecksum(key, value)
		if damage == nil {
			value = checked
		}
		if !yield(key, value, damage) {
			return nil
		}
		from = append(key[4:], 0) // the smallest key after this one
	}
}
