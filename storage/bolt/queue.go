package bolt

import (
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// An item is a URL in a lane.
type item struct {
	place
	value []byte
}

func byPlace(i item, p place) int { return i.compare(p) }

// A lane is one line of URLs. head is a copy of the first ones.
type lane struct {
	lane  schedule.Lane
	n     int   // URLs that wait
	first int64 // place.at of the first of them
	low   place // none of them is before it
	head  []item
	// weight is what head takes of Options.Cached: long URLs count for several.
	weight int
}

// put adds a URL. If it belongs among those of head, it goes there too; head
// may grow up to twice the window.
func (l *lane) put(p place, value []byte, window int) {
	if l.n == 0 || p.at < l.first {
		l.first = p.at
	}
	if l.n == 0 || p.compare(l.low) < 0 {
		l.low = p
	}
	l.n++
	at, _ := slices.BinarySearchFunc(l.head, p, byPlace)
	if at == len(l.head) {
		return
	}
	l.head = slices.Insert(l.head, at, item{p, slices.Clone(value)})
	l.weight += sizeOf(value)
	switch {
	case len(l.head) > 2*window:
		l.setHead(slices.Clone(l.head[:window]))
	case isHeavy(l.head, l.weight, 2*window):
		l.setHead(slices.Clone(l.head[:max(2, len(l.head)/2)]))
	}
}

// setHead makes items the head.
func (l *lane) setHead(items []item) {
	l.head, l.weight = items, 0
	for i := range items {
		l.weight += sizeOf(items[i].value)
	}
}

// isHeavy reports whether the items, of that weight, are as much as most of an
// ordinary length are, of up to 1 KiB each. There must be two: see ready.
func isHeavy(items []item, weight, maxItems int) bool {
	return len(items) >= 2 && weight >= 4*maxItems
}

// pop takes the first URL, which is at the head. A lane that is timed must
// have the next one there too, if there is one.
func (l *lane) pop() item {
	i := l.head[0]
	l.head[0] = item{}
	l.head = l.head[1:]
	l.weight -= sizeOf(i.value)
	l.n--
	l.low = i.place
	if len(l.head) > 0 {
		l.first = l.head[0].at
	} else {
		l.head = nil
	}
	return i
}

// ready reports whether pop will do.
func (l *lane) ready() bool {
	want := 1
	if l.lane.Timed() {
		want = 2
	}
	return len(l.head) >= min(want, l.n)
}

// A queue is the lanes of one origin that were ever used, in their order.
type queue struct {
	lanes []lane
	turns schedule.Turns
	schedule.Tally
}

// lane returns the lane of that number, new if need be.
func (q *queue) lane(id schedule.Lane) *lane {
	at, found := slices.BinarySearchFunc(q.lanes, id, func(l lane, id schedule.Lane) int { return int(l.lane) - int(id) })
	if !found {
		q.lanes = slices.Insert(q.lanes, at, lane{lane: id})
	}
	return &q.lanes[at]
}

// isEmpty reports whether nothing waits, not even for its revisit.
func (q *queue) isEmpty() bool {
	n, _ := q.Resting()
	return q.All == 0 && n == 0
}

// Resting implements schedule.Queue.
func (q *queue) Resting() (n int, first int64) {
	if last := len(q.lanes) - 1; last >= 0 && q.lanes[last].lane == schedule.Resting && q.lanes[last].n > 0 {
		return q.lanes[last].n, q.lanes[last].first
	}
	return 0, 0
}

// Ready implements schedule.Queue.
func (q *queue) Ready(hops bool) (at int64, ok bool) {
	for i := range q.lanes {
		l := &q.lanes[i]
		if l.n == 0 || l.lane.IsHop() != hops {
			continue
		}
		if !l.lane.Timed() {
			return math.MinInt64, true
		}
		if !ok || l.first < at {
			at, ok = l.first, true
		}
	}
	return at, ok
}

// next returns the lane whose turn it is; nil if there is none. Under a hold it
// is asked only when a hop is due, and hops go first.
func (q *queue) next(now time.Time) *lane {
	var first, rest *lane
	id := schedule.Resting
	for i := range q.lanes {
		l := &q.lanes[i]
		switch {
		case l.n == 0 || l.lane.Timed() && l.first > schedule.Nanos(now):
		case l.lane == schedule.Resting:
			rest = l
		case first == nil:
			first, id = l, l.lane
		}
	}
	if q.turns.Rest(id, first != nil, rest != nil) {
		return rest
	}
	return first
}
