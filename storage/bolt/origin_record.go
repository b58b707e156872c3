package bolt

import (
	"encoding/binary"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// What else an origin may be.
const (
	flagSuspended = 1 << iota
	flagLastWasRevisit
)

func appendOriginRecord(b []byte, o *loadedOrigin) []byte {
	b = record.AppendString(b, o.name.String())
	b = binary.AppendUvarint(b, uint64(o.lastSeq))
	b = record.AppendTime(b, o.HeldUntil)
	b = append(b, 0)
	if o.Suspended {
		b[len(b)-1] |= flagSuspended
	}
	if o.revisitAlternation.LastWasRevisit {
		b[len(b)-1] |= flagLastWasRevisit
	}
	b = binary.AppendUvarint(b, uint64(o.seenCount))
	b = binary.AppendUvarint(b, uint64(o.parkedCount))
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

func parseOriginRecord(b []byte, o *loadedOrigin) error {
	r := record.FieldReader{RemainingData: b}
	o.name = r.Origin()
	o.originQueue = originQueue{}
	o.lastSeq = int64(r.Int())
	o.HeldUntil = r.Time()
	flags := r.Byte()
	o.Suspended, o.revisitAlternation.LastWasRevisit = flags&flagSuspended != 0, flags&flagLastWasRevisit != 0
	o.seenCount = r.Int()
	o.parkedCount = r.Int()
	for r.Err == nil && len(r.RemainingData) > 0 {
		id := schedule.LaneID(r.Byte())
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
