package bolt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Origins implements storage.Inspector. It yields the origins in the order in which the store was
// given them, and reads batchSize of them at a time.
func (s *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	return forEachOrigin(ctx, s.engine, yield, func(tx *bbolt.Tx, number uint32) (storage.OriginInfo, bool, error) {
		info, err := s.engine.index.info(tx, number)
		return info, !info.Origin.IsZero(), err
	})
}

// Origin implements storage.Inspector. It does not load an origin that is in the file only.
func (s *Store) Origin(ctx context.Context, name decorum.Origin) (info storage.OriginInfo, found bool, err error) {
	if err := s.engine.lockIfOpen(ctx); err != nil {
		return info, false, err
	}
	defer s.engine.mu.Unlock()
	if o := s.engine.index.origins[name]; o != nil {
		return o.info(), true, nil
	}
	err = s.engine.file.view(func(tx *bbolt.Tx) (err error) {
		info, found, err = s.engine.index.infoByName(tx, name)
		return err
	})
	return info, found, err
}

// NextURLDue implements storage.NextDueReporter. It knows nothing of a host that is not in memory.
func (s *Store) NextURLDue(ctx context.Context, host string) (due time.Time, known bool) {
	if err := s.engine.lockIfOpen(ctx); err != nil {
		return time.Time{}, false
	}
	defer s.engine.mu.Unlock()
	h := s.engine.index.hosts[host]
	if h == nil || s.engine.index.schedule.EvictedHostByNumber(h.number) != nil {
		return time.Time{}, false
	}
	return h.NextURLDue(), true
}

// OriginURLsInState implements storage.Inspector. It yields leased URLs first, since they return to
// the head of the queue if their leases expire.
func (s *Store) OriginURLsInState(
	ctx context.Context, name decorum.Origin, state storage.EntryState, yield func(storage.Entry, time.Time) bool,
) error {
	// A state is a range of lanes: n lanes from first on.
	first, n := schedule.LaneID(0), schedule.AwaitingRevisit
	switch state {
	case storage.StateAwaitingRevisit:
		first, n = schedule.AwaitingRevisit, 1
	case storage.StateParked:
		first, n = parkedLane, 1
	case storage.StateQueued:
		if err := s.engine.lockIfOpen(ctx); err != nil {
			return err
		}
		leased := s.leases.leasedEntriesOfOrigin(name)
		s.engine.mu.Unlock()
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

// forEachEntryInLane yields the URLs of one lane, batchSize at a time, and reports whether yield always
// returned true. It reports damaged records and skips them: Lease quarantines them.
func (s *Store) forEachEntryInLane(
	ctx context.Context, name decorum.Origin, lane schedule.LaneID, yield func(storage.Entry, time.Time) bool,
) (more bool, err error) {
	for from := (laneSlot{lane, firstPosition}); ; {
		var number uint32
		var items []storedURL
		more = false // stays so if the store does not have the origin
		err := s.engine.viewOrigin(ctx, name, func(tx *bbolt.Tx, o *residentOrigin) {
			number = o.number
			items, more = s.queues.listUnleased(tx, o, from, batchSize)
		})
		if err != nil {
			return false, err
		}
		for _, i := range items {
			e, err := parseEntry(i.value, number, name, laneSlot{lane, i.urlQueuePosition})
			if err != nil {
				place := fmt.Sprintf("url %d %v", number, laneSlot{lane, i.urlQueuePosition})
				s.engine.lockAndReportDamage(place, "%v: the URL is skipped", err)
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
		from.urlQueuePosition = items[len(items)-1].urlQueuePosition
		from.seq++
	}
}

// HasSeen implements storage.Inspector.
func (s *Store) HasSeen(ctx context.Context, u decorum.URL) (known bool, err error) {
	p := fingerprintOfURL(u)
	err = s.engine.viewOrigin(ctx, u.Origin(), func(tx *bbolt.Tx, o *residentOrigin) {
		known, _ = s.seen.has(tx.Bucket([]byte(bucketFingerprints)).Cursor(), o, p)
	})
	return known, err
}

// SeenURLFingerprints implements storage.Inspector.
func (s *Store) SeenURLFingerprints(
	ctx context.Context, name decorum.Origin, yield func(fingerprint uint64) bool,
) error {
	// Copy the fingerprints that are not checkpointed, and yield them first.
	var pending sortedSliceSet[urlFingerprint]
	err := s.engine.viewOrigin(ctx, name, func(_ *bbolt.Tx, o *residentOrigin) {
		for _, layer := range o.pendingLayers() {
			for p := range layer.seenURLFingerprints.all {
				pending.put(p)
			}
		}
	})
	if err != nil {
		return err
	}
	for p := range pending.all {
		if !yield(uint64(p)) {
			return nil
		}
	}
	// Then yield those of the file, also the readable ones of damaged values.
	return s.engine.forEachValueOfOrigin(ctx, name, bucketFingerprints, func(key, value []byte, err error) bool {
		if err != nil {
			s.engine.lockAndReportDamage("prints "+string(key),
				"a part of the seen set of %v: only its readable fingerprints are listed", name)
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

// ReadHostNames returns the hosts in the store at path whose names begin with prefix, in the order of their
// names, at most limit. It is for hints to users: it changes nothing, and waits at most 0.1 s for a process
// that has the store open. A missing store is an error.
func ReadHostNames(path, prefix string, limit int) (names []string, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 { // bbolt would write to an empty file
		return nil, err
	}
	err = catchFault(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 100 * time.Millisecond, ReadOnly: true})
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bbolt.Tx) error {
			// Hosts that a checkpoint wrote, and then those that only the log has.
			if bucket := tx.Bucket([]byte(bucketNames)); bucket != nil {
				keyPrefix, cursor := hostNameKey(prefix), bucket.Cursor()
				key, _ := cursor.Seek(keyPrefix)
				for ; bytes.HasPrefix(key, keyPrefix) && len(names) < limit; key, _ = cursor.Next() {
					names = append(names, string(key[len(hostNameKey("")):]))
				}
			}
			logged, err := readLoggedHostNames(tx, prefix)
			names = append(names, logged...)
			return err
		})
	})
	if err != nil {
		return nil, explainOpenError(path, err)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(limit, len(names))], nil
}

// readLoggedHostNames returns the hosts with prefix of which the log has an origin.
func readLoggedHostNames(tx *bbolt.Tx, prefix string) (names []string, err error) {
	bucket := tx.Bucket([]byte(bucketLog))
	if bucket == nil {
		return nil, nil
	}
	log := &replayedLogState{make(map[uint32]*residentOrigin), make(map[uint32][]byte), make(map[uint32]bool)}
	err = bucket.ForEach(func(key, segment []byte) error {
		segment, err := verifyAndTrimChecksum(key, segment)
		if err == nil {
			_, err = replaySegment(segment, log)
		}
		return err
	})
	for _, o := range log.origins {
		if host := o.name.Host(); strings.HasPrefix(host, prefix) {
			names = append(names, host)
		}
	}
	return names, err
}
