package bolt

import (
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

type loadedHost struct {
	schedule.Host[*loadedOrigin]
	name               string
	number             uint32 // that of its first origin
	originsInMemory    int    // in memory
	hasUnloggedChanges bool   // changed since the last write
	uncheckpointed     bool   // changed since it was folded
}

// A loadedOrigin is its own schedule.OriginURLQueue. It is in memory while it has something
// to hand out, is changed and not folded, or was just looked at.
type loadedOrigin struct {
	schedule.Origin[*loadedOrigin]
	originQueue
	name                 decorum.Origin
	host                 *loadedHost
	pendingChanges       *originChanges // since the last fold; nil if there are none
	checkpointingChanges *originChanges // that are being folded
	leasedSlots          []laneSlot     // leased: in the file, but not in the lanes
	lastSeq              int64          // the last one given
	seenCount            int
	parkedCount          int

	number             uint32
	hasUnloggedChanges bool // changed since the last write
	isNew              bool // perhaps not in the bucket names yet
	hasCachedHeads     bool // is among headCache.origins
}

// isFullyCheckpointed reports whether the file holds all state of o in its place.
func (o *loadedOrigin) isFullyCheckpointed() bool {
	return o.pendingChanges == nil && o.checkpointingChanges == nil && !o.hasUnloggedChanges && len(o.leasedSlots) == 0
}

// putEntryInLane puts e into a lane of o.
func (s *Store) putEntryInLane(o *loadedOrigin, id schedule.LaneID, at int64, e *storage.Entry) {
	o.lastSeq++
	p := lanePosition{sortKey: at, seq: o.lastSeq}
	if id.IsLIFO() {
		p.seq = -o.lastSeq
	}
	s.journal.putURL(o, laneSlot{id, p}, s.encodeEntry(o, laneSlot{id, p}, e))
	switch id {
	case parkedLane:
		o.parkedCount++
		s.parkedCount++
		return
	case schedule.AwaitingRevisit:
		s.journal.setRevisitPosition(o, fingerprintOfEntry(e), p)
	}
	l := o.getOrCreateLane(id)
	s.heads.insert(l, p, s.entryBuf, s.heads.prefetchCount(len(s.index.origins)))
	o.AddURLs(id, 1)
}

// encodeEntry returns the record of an entry of o with its checksum, as the file holds it
// in a slot. It is valid until the next call.
func (s *Store) encodeEntry(o *loadedOrigin, at laneSlot, e *storage.Entry) []byte {
	s.entryBuf = appendChecksum(record.AppendEntry(s.entryBuf[:0], e), appendURLKey(s.keyBuf[:0], o.number, at))
	return s.entryBuf
}

// parseEntry reads the record of a slot of an origin. It returns an error if the record
// was changed.
func parseEntry(checksummed []byte, number uint32, name decorum.Origin, at laneSlot) (storage.Entry, error) {
	var key [urlKeyLen]byte
	value, err := verifyAndTrimChecksum(appendURLKey(key[:0], number, at), checksummed)
	if err != nil {
		return storage.Entry{}, fmt.Errorf("a URL of %v: %w", name, err)
	}
	return record.ParseEntry(value, name)
}

// storedCountAndFirstKey returns how many URLs of the lane are in the file, or will be, and
// the time of the first: the leased ones are there too.
func (o *loadedOrigin) storedCountAndFirstKey(l *laneQueue) (n int, firstSortKey int64) {
	n, firstSortKey = l.count, l.firstSortKey
	for _, k := range o.leasedSlots {
		if k.lane != l.id {
			continue
		}
		if n == 0 || k.sortKey < firstSortKey {
			firstSortKey = k.sortKey
		}
		n++
	}
	return n, firstSortKey
}

// loadQueueHead reads the head of a lane. What was counted and is not there is not
// waited for any longer.
func (s *Store) loadQueueHead(tx *bbolt.Tx, o *loadedOrigin, l *laneQueue) {
	items, _ := s.firstUnleasedURLsInLane(tx, o, laneSlot{l.id, l.lowerBound}, s.heads.prefetchCount(len(s.index.origins)))
	s.heads.set(o, l, items)
	if l.isHeadLoaded() {
		return
	}
	s.damage.onDamaged(s.damage.errorf("queue of %v: %d URLs are counted, %d found", o.name, l.count, len(l.headURLs)))
	o.AddURLs(l.id, len(l.headURLs)-l.count)
	l.count = len(l.headURLs)
	s.journal.markChanged(o)
}

// firstUnleasedURLsInLane returns the first URLs of a lane from the place on that are not leased,
// at most max, fewer where they are long, and whether there may be more.
func (s *Store) firstUnleasedURLsInLane(tx *bbolt.Tx, o *loadedOrigin, from laneSlot, max int) (items []storedURL, more bool) {
	weight := 0
	s.forEachSlotInLane(tx, o, from, func(c slotChange) bool {
		if !slices.Contains(o.leasedSlots, c.laneSlot) {
			items = append(items, storedURL{c.lanePosition, slices.Clone(c.value)})
			weight += changeWeight(c.value)
		}
		more = len(items) == max || isHeadTooHeavy(items, weight, max)
		return !more
	})
	return items, more
}

func (o *loadedOrigin) info() storage.OriginInfo {
	awaitingRevisit, _ := o.RevisitCountAndFirstDue()
	nextDue, _ := o.NextDue()
	return storage.OriginInfo{
		Origin: o.name, HostState: storage.HostState(o.host.HostState), HeldUntil: o.Origin.HeldUntil, Suspended: o.Suspended,
		QueuedURLs: o.Total, LeasedURLs: len(o.leasedSlots), AwaitingRevisit: awaitingRevisit, ParkedURLs: o.parkedCount, SeenURLs: o.seenCount, NextDue: nextDue,
	}
}
