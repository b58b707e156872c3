package bolt

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// maxRecentOrigins is how many origins stay in memory only because they were read; it is at
// most Options.MaxHostsInMemory.
const maxRecentOrigins = 4096

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

// findOrigin returns the state of an origin; nil if it was never met.
func (s *Store) findOrigin(tx *bbolt.Tx, name decorum.Origin) (*loadedOrigin, error) {
	if o := s.origins[name]; o != nil {
		return o, nil
	}
	number, err := s.originNumber(tx, name)
	if number == nil || err != nil {
		return nil, err
	}
	o, err := s.readOrigin(tx, number)
	if err != nil {
		return nil, err
	}
	if o.name != name {
		return nil, s.damage.errorf("origin %v has the number of %v", name, o.name)
	}
	if err := s.loadHostAndAttachOrigin(tx, o); err != nil {
		return nil, err
	}
	s.keepRecentOrigin(o)
	return o, nil
}

// originNumber returns the number of an origin in the file, as in keys; nil if the file
// lacks the origin.
func (s *Store) originNumber(tx *bbolt.Tx, name decorum.Origin) ([]byte, error) {
	number, err := openChecksummedBucket(tx, bucketNames).get(originNameKey(name.String()))
	if err == nil && number != nil && len(number) != 4 {
		err = record.ErrDamaged
	}
	if err != nil {
		return nil, s.damage.errorf("number of origin %v: %v", name, err)
	}
	return number, nil
}

// readOrigin returns an origin as it is in the file, and without its host.
func (s *Store) readOrigin(tx *bbolt.Tx, number []byte) (*loadedOrigin, error) {
	value, err := openChecksummedBucket(tx, bucketOrigins).get(number)
	if err != nil {
		return nil, s.damage.errorf("origin %x: %v", number, err)
	}
	if len(number) != 4 || value == nil {
		return nil, s.damage.errorf("origin %x is missing", number)
	}
	o := &loadedOrigin{number: binary.BigEndian.Uint32(number)}
	if err := parseOriginRecord(value, o); err != nil {
		return nil, s.damage.errorf("origin %x: %v", number, err)
	}
	return o, nil
}

// getOrCreateOrigin returns the state of an origin, new if it was never met.
func (s *Store) getOrCreateOrigin(tx *bbolt.Tx, name decorum.Origin) (*loadedOrigin, error) {
	o, err := s.findOrigin(tx, name)
	if o != nil || err != nil {
		return o, err
	}
	// name may be a part of a long URL, which it would keep in memory.
	name, _ = record.ParseOriginName(strings.Clone(name.String()))
	o = &loadedOrigin{name: name, number: s.lastOriginNumber + 1, isNew: true}
	if err := s.loadHostAndAttachOrigin(tx, o); err != nil {
		return nil, err
	}
	s.lastOriginNumber = o.number
	s.journal.markChanged(o)
	return o, nil
}

// loadHostAndAttachOrigin takes an origin into memory, and its host. If the host is idle, its other
// origins come with it.
func (s *Store) loadHostAndAttachOrigin(tx *bbolt.Tx, o *loadedOrigin) error {
	if h := s.hosts[o.name.Host()]; h != nil {
		s.attachOrigin(o, h)
		return nil
	}
	h := &loadedHost{name: o.name.Host()}
	if err := s.readHost(tx, h, o.number); err != nil {
		return err
	}
	evicted := s.schedule.EvictedHostByNumber(h.number)
	if evicted == nil {
		s.hosts[h.name] = h
		s.attachOrigin(o, h)
		return nil
	}
	return s.restoreHost(tx, h, evicted, o)
}

// attachOrigin makes o an origin of a host that is in memory.
func (s *Store) attachOrigin(o *loadedOrigin, h *loadedHost) {
	h.originsInMemory++
	o.host, o.Host, o.Queue = h, &h.Host, o
	s.origins[o.name] = o
	s.originsByNumber[o.number] = o
}

// readHost reads number and clock of a host. first is the number of one of its
// origins: it is the host's if that has none. After an unclean stop the end of
// the last visit may be what was lost: then it rests.
func (s *Store) readHost(tx *bbolt.Tx, h *loadedHost, first uint32) error {
	h.number = first
	number, err := openChecksummedBucket(tx, bucketNames).get(hostNameKey(h.name))
	if err != nil || number != nil && len(number) != 4 {
		return s.damage.errorf("host %q: number %x", h.name, number)
	}
	if number != nil {
		h.number = binary.BigEndian.Uint32(number)
	}
	h.PostponeUntil(s.minDue)
	value, err := openChecksummedBucket(tx, bucketHosts).get(numberKey(h.number))
	if err != nil {
		return s.damage.errorf("host %q: %v", h.name, err)
	}
	if value != nil {
		state, err := record.ParseHostState(value)
		if err != nil {
			return s.damage.errorf("host %q: %v", h.name, err)
		}
		s.restoreHostState(h, state)
	}
	return nil
}

// restoreHostState sets the clock of a host as it was when the store was opened, or before.
func (s *Store) restoreHostState(h *loadedHost, state schedule.HostState) {
	h.SetState(state)
	if !s.openedAfterCrashAt.IsZero() {
		h.PostponeUntil(s.openedAfterCrashAt.Add(h.LostVisitDelay))
	}
}

// keepRecentOrigin keeps an origin for a while, though it may hold nothing.
func (s *Store) keepRecentOrigin(o *loadedOrigin) {
	s.recentOrigins = append(s.recentOrigins, o)
	for len(s.recentOrigins) > min(maxRecentOrigins, s.opts.hostLimit()) {
		s.forgetOrEvictOrigin(s.recentOrigins[0])
		s.recentOrigins = s.recentOrigins[1:]
	}
}

// forgetOrEvictOrigin forgets an origin that holds nothing, and its host with the last of
// its origins: they are in the file. One that holds something it evicts, where
// there are many hosts.
func (s *Store) forgetOrEvictOrigin(o *loadedOrigin) {
	if s.originsByNumber[o.number] != o || !o.isFullyCheckpointed() {
		return
	}
	if o.isEmpty() {
		s.detachOrigin(o)
	}
	if o.host.originsInMemory > 0 && len(s.hosts) > s.opts.hostLimit() {
		s.evictHostIfClean(o.host)
	}
}

// isFullyCheckpointed reports whether the file holds all state of o in its place.
func (o *loadedOrigin) isFullyCheckpointed() bool {
	return o.pendingChanges == nil && o.checkpointingChanges == nil && !o.hasUnloggedChanges && len(o.leasedSlots) == 0
}

// detachOrigin removes o from memory, and its host with the last of its origins.
func (s *Store) detachOrigin(o *loadedOrigin) {
	delete(s.origins, o.name)
	delete(s.originsByNumber, o.number)
	if o.host.originsInMemory--; o.host.originsInMemory == 0 {
		delete(s.hosts, o.host.name)
	}
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
	s.heads.insert(l, p, s.entryBuf, s.heads.prefetchCount(len(s.origins)))
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
	items, _ := s.firstUnleasedURLsInLane(tx, o, laneSlot{l.id, l.lowerBound}, s.heads.prefetchCount(len(s.origins)))
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
