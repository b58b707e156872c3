package bolt

import (
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// firstPlace comes before all places.
var firstPlace = place{math.MinInt64, math.MinInt64}

// An item is a URL in a lane, as it is or will be in the file.
type item struct {
	place
	batch uint64 // that writes it
	value []byte
}

func byPlace(i item, p place) int { return i.compare(p) }

// A lane is one line of URLs. What is not written yet is in fresh, in order;
// the rest is in the file. head is a copy of the first ones of both together.
type lane struct {
	lane  schedule.Lane
	n     int   // URLs that wait
	first int64 // place.at of the first of them
	low   place // none of them is before it
	head  []item
	fresh []item
}

// put adds a URL. head may grow up to twice the window, if it is the first
// ones or all there are.
func (l *lane) put(i item, window int) {
	if l.n == 0 || i.at < l.first {
		l.first = i.at
	}
	if l.n == 0 || i.compare(l.low) < 0 {
		l.low = i.place
	}
	l.fresh = insert(l.fresh, i)
	all := len(l.head) == l.n
	l.n++
	switch at, _ := slices.BinarySearchFunc(l.head, i.place, byPlace); {
	case at < len(l.head):
		l.head = slices.Insert(l.head, at, i)
		if len(l.head) > 2*window {
			l.head = slices.Clone(l.head[:window])
		}
	case all && len(l.head) < window:
		l.head = append(l.head, i)
	}
}

func insert(items []item, i item) []item {
	if n := len(items); n == 0 || items[n-1].compare(i.place) < 0 {
		return append(items, i)
	}
	at, _ := slices.BinarySearchFunc(items, i.place, byPlace)
	return slices.Insert(items, at, i)
}

// pop takes the first URL, which is at the head. A lane that is timed must
// have the next one there too, if there is one.
func (l *lane) pop() item {
	i := l.head[0]
	l.head[0] = item{}
	l.head = l.head[1:]
	l.n--
	l.low = i.place
	if len(l.head) > 0 {
		l.first = l.head[0].at
	}
	if len(l.fresh) > 0 && l.fresh[0].place == i.place {
		l.fresh[0] = item{}
		l.fresh = l.fresh[1:]
	}
	return i
}

// written forgets what the batch has brought to the file.
func (l *lane) written(batch uint64) {
	l.fresh = slices.DeleteFunc(l.fresh, func(i item) bool { return i.batch <= batch })
	if len(l.fresh) == 0 {
		l.fresh = nil
	}
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
	all   int // without resting pages
	hops  int
}

// lane returns the lane of that number, new if need be.
func (q *queue) lane(id schedule.Lane) *lane {
	at, found := slices.BinarySearchFunc(q.lanes, id, func(l lane, id schedule.Lane) int { return int(l.lane) - int(id) })
	if !found {
		q.lanes = slices.Insert(q.lanes, at, lane{lane: id})
	}
	return &q.lanes[at]
}

func (q *queue) count(id schedule.Lane, n int) {
	if id == schedule.Resting {
		return
	}
	q.all += n
	if id.IsHop() {
		q.hops += n
	}
}

// Len implements schedule.Queue.
func (q *queue) Len() (all, hops int) { return q.all, q.hops }

// Resting implements schedule.Queue.
func (q *queue) Resting() (n int, first time.Time) {
	if last := len(q.lanes) - 1; last >= 0 && q.lanes[last].lane == schedule.Resting && q.lanes[last].n > 0 {
		return q.lanes[last].n, time.Unix(0, q.lanes[last].first)
	}
	return 0, first
}

// Ready implements schedule.Queue.
func (q *queue) Ready(hops bool) (at time.Time, ok bool) {
	for i := range q.lanes {
		l := &q.lanes[i]
		if l.n == 0 || l.lane.IsHop() != hops {
			continue
		}
		if !l.lane.Timed() {
			return time.Time{}, true
		}
		if first := time.Unix(0, l.first); !ok || first.Before(at) {
			at, ok = first, true
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
		case l.n == 0 || l.lane.Timed() && l.first > nanos(now):
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

// remove takes a URL out that is not at the head.
func (l *lane) remove(p place) {
	l.n--
	if at, ok := slices.BinarySearchFunc(l.fresh, p, byPlace); ok {
		l.fresh = slices.Delete(l.fresh, at, at+1)
	}
}
