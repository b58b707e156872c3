package bolt

import (
	"encoding/binary"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A residentHost is a host in memory.
type residentHost struct {
	schedule.Host[*residentOrigin]
	name               string
	number             uint32 // number of its first origin
	originsInMemory    int    // how many of its origins are in memory
	hasUnloggedChanges bool   // the clock has changed since the last write
	uncheckpointed     bool   // the clock has changed since the last checkpoint
}

// A residentOrigin is an origin in memory. It is its own schedule.OriginURLQueue. It stays in memory
// while it has URLs to lease, has changes that are not checkpointed, or was used recently.
type residentOrigin struct {
	schedule.Origin[*residentOrigin]
	originQueue
	name                 decorum.Origin
	host                 *residentHost
	pendingChanges       *originChanges // changes since the last checkpoint; nil: none
	checkpointingChanges *originChanges // changes in a batch that is being written; nil: none
	leasedSlots          []laneSlot     // slots of leased URLs: in the file, but not in the lanes
	lastSeq              int64          // last sequence number of a URL
	seenCount            int            // fingerprints in the seen set
	parkedCount          int            // parked URLs

	number             uint32 // begins the origin's keys in the file
	hasUnloggedChanges bool   // the record has changed since the last write
	isNew              bool   // may be missing in the bucket names
	hasCachedHeads     bool   // is in headCache.origins
}

// isFullyCheckpointed reports whether the file has all state of o in its final place.
func (o *residentOrigin) isFullyCheckpointed() bool {
	return o.pendingChanges == nil && o.checkpointingChanges == nil && !o.hasUnloggedChanges && len(o.leasedSlots) == 0
}

// storedCountAndFirstKey returns the number of URLs in a lane for the origin's record, and the lowest
// sort key. It includes leased URLs, which stay in the file until their ack.
func (o *residentOrigin) storedCountAndFirstKey(l *laneQueue) (n int, firstSortKey int64) {
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

// info describes o.
func (o *residentOrigin) info() storage.OriginInfo {
	awaitingRevisit, _ := o.RevisitCountAndFirstDue()
	return storage.OriginInfo{
		Origin: o.name, HostState: o.host.HostState, HeldUntil: o.Origin.HeldUntil, Suspended: o.Suspended,
		QueuedURLs: o.Total, LeasedURLs: len(o.leasedSlots), AwaitingRevisit: awaitingRevisit,
		ParkedURLs: o.parkedCount, SeenURLs: o.seenCount, NextDue: o.NextDue(),
	}
}

// Flags in an origin's record.
const (
	flagSuspended = 1 << iota
	flagLastWasRevisit
)

// appendOriginRecord appends the record of o: its name, hold, flags and counts, and for each lane with
// URLs its number, count and lowest sort key.
func appendOriginRecord(b []byte, o *residentOrigin) []byte {
	b = binaryrecord.AppendString(b, o.name.String())
	b = binary.AppendUvarint(b, uint64(o.lastSeq))
	b = binaryrecord.AppendTime(b, o.HeldUntil)
	b = append(b, 0)
	if o.Suspended {
		b[len(b)-1] |= flagSuspended
	}
	if o.revisitAlternation.LastWasRevisit {
		b[len(b)-1] |= flagLastWasRevisit
	}
	b = binary.AppendUvarint(b, uint64(o.seenCount))
	b = binary.AppendUvarint(b, uint64(o.parkedCount))
	// Leased URLs count as queued, since they are when the record is read again.
	for i := range o.lanes {
		l := &o.lanes[i]
		if n, first := o.storedCountAndFirstKey(l); n > 0 {
			b = append(b, byte(l.id))
			b = binary.AppendUvarint(b, uint64(n))
			b = binary.AppendVarint(b, first)
		}
	}
	return b
}

// parseOriginRecord sets the fields of o that appendOriginRecord wrote. The host is not one of them.
func parseOriginRecord(b []byte, o *residentOrigin) error {
	r := &binaryrecord.Reader{RemainingData: b}
	o.name = record.ReadOrigin(r)
	o.originQueue = originQueue{}
	o.lastSeq = int64(r.Int())
	o.HeldUntil = r.Time()
	flags := r.Byte()
	o.Suspended, o.revisitAlternation.LastWasRevisit = flags&flagSuspended != 0, flags&flagLastWasRevisit != 0
	o.seenCount = r.Int()
	o.parkedCount = r.Int()
	for r.Err == nil && len(r.RemainingData) > 0 {
		id := schedule.LaneID(r.Byte())
		// The lanes must be valid and in order, each once.
		if id >= schedule.NumLanes || len(o.lanes) > 0 && id <= o.lanes[len(o.lanes)-1].id {
			r.MarkDamaged()
			break
		}
		l := o.getOrCreateLane(id)
		l.count, l.firstSortKey = r.Int(), r.Varint()
		l.lowerBound = firstPosition
		o.AddURLs(id, l.count)
	}
	return r.CheckFullyRead()
}
