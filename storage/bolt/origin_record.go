package bolt

import (
	"encoding/binary"

	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// What else an origin may be.
const (
	isDormant = 1 << iota
	isRevisited
)

func appendOrigin(b []byte, o *origin) []byte {
	b = record.AppendString(b, o.name.String())
	b = binary.AppendUvarint(b, uint64(o.seq))
	b = record.AppendTime(b, o.Hold)
	b = append(b, 0)
	if o.Dormant {
		b[len(b)-1] |= isDormant
	}
	if o.turns.Revisited {
		b[len(b)-1] |= isRevisited
	}
	b = binary.AppendUvarint(b, uint64(o.seen))
	b = binary.AppendUvarint(b, uint64(o.parked))
	for i := range o.lanes {
		l := &o.lanes[i]
		if n, first := o.stored(l); n > 0 {
			b = append(b, byte(l.lane))
			b = binary.AppendUvarint(b, uint64(n))
			b = binary.AppendVarint(b, first)
		}
	}
	return b
}

func parseOrigin(b []byte, o *origin) error {
	r := record.Reader{B: b}
	o.name = r.Origin()
	o.state(&r)
	return r.End()
}

// state reads what the record of an origin says beside its name.
func (o *origin) state(r *record.Reader) {
	o.queue = queue{}
	o.seq = int64(r.Int())
	o.Hold = r.Time()
	flags := r.Byte()
	o.Dormant, o.turns.Revisited = flags&isDormant != 0, flags&isRevisited != 0
	o.seen = r.Int()
	o.parked = r.Int()
	for r.Err == nil && len(r.B) > 0 {
		id := schedule.Lane(r.Byte())
		if id >= schedule.Lanes || len(o.lanes) > 0 && id <= o.lanes[len(o.lanes)-1].lane {
			r.Fail()
			return
		}
		l := o.lane(id)
		l.n, l.first = r.Int(), r.Varint()
		l.low = firstPlace
		o.Count(id, l.n)
	}
}
