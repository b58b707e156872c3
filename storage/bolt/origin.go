package bolt

import (
	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
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

func (o *loadedOrigin) info() storage.OriginInfo {
	awaitingRevisit, _ := o.RevisitCountAndFirstDue()
	nextDue, _ := o.NextDue()
	return storage.OriginInfo{
		Origin: o.name, HostState: storage.HostState(o.host.HostState), HeldUntil: o.Origin.HeldUntil, Suspended: o.Suspended,
		QueuedURLs: o.Total, LeasedURLs: len(o.leasedSlots), AwaitingRevisit: awaitingRevisit, ParkedURLs: o.parkedCount, SeenURLs: o.seenCount, NextDue: nextDue,
	}
}
