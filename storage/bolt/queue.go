package bolt

import (
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A storedURL is a URL in a lane.
type storedURL struct {
	lanePosition
	value []byte
}

func compareURLToPosition(i storedURL, p lanePosition) int { return i.compare(p) }

// A lane is one line of URLs. head is a copy of the first ones.
type lane struct {
	id           schedule.Lane
	count        int          // URLs that wait
	firstSortKey int64        // place.sortKey of the first of them
	lowerBound   lanePosition // none of them is before it
	head         []storedURL
	// cachedWeight is what head takes of Options.MaxCachedURLs: long URLs count for several.
	cachedWeight int
}

// insert adds a URL. If it belongs among those of head, it goes there too; head
// may grow up to twice the window.
func (l *lane) insert(p lanePosition, value []byte, prefetch int) {
	if l.count == 0 || p.sortKey < l.firstSortKey {
		l.firstSortKey = p.sortKey
	}
	if l.count == 0 || p.compare(l.lowerBound) < 0 {
		l.lowerBound = p
	}
	l.count++
	at, _ := slices.BinarySearchFunc(l.head, p, compareURLToPosition)
	if at == len(l.head) {
		return
	}
	l.head = slices.Insert(l.head, at, storedURL{p, slices.Clone(value)})
	l.cachedWeight += weightOfValue(value)
	switch {
	case len(l.head) > 2*prefetch:
		l.setHead(slices.Clone(l.head[:prefetch]))
	case isHeadTooHeavy(l.head, l.cachedWeight, 2*prefetch):
		l.setHead(slices.Clone(l.head[:max(2, len(l.head)/2)]))
	}
}

// setHead makes items the head.
func (l *lane) setHead(items []storedURL) {
	l.head, l.cachedWeight = items, 0
	for i := range items {
		l.cachedWeight += weightOfValue(items[i].value)
	}
}

// isHeadTooHeavy reports whether the items, of that weight, are as much as most of an
// ordinary length are, of up to 1 KiB each. There must be two: see ready.
func isHeadTooHeavy(items []storedURL, weight, maxItems int) bool {
	return len(items) >= 2 && weight >= 4*maxItems
}

// pop takes the first URL, which is at the head. A lane that is timed must
// have the next one there too, if there is one.
func (l *lane) pop() storedURL {
	i := l.head[0]
	l.head[0] = storedURL{}
	l.head = l.head[1:]
	l.cachedWeight -= weightOfValue(i.value)
	l.count--
	l.lowerBound = i.lanePosition
	if len(l.head) > 0 {
		l.firstSortKey = l.head[0].sortKey
	} else {
		l.head = nil
	}
	return i
}

// isHeadLoaded reports whether pop will do.
func (l *lane) isHeadLoaded() bool {
	want := 1
	if l.id.IsTimed() {
		want = 2
	}
	return len(l.head) >= min(want, l.count)
}

// A queue is the lanes of one origin that were ever used, in their order.
type queue struct {
	lanes       []lane
	alternation schedule.RevisitAlternation
	schedule.QueuedURLCounts
}

// getOrCreateLane returns the lane of that number, new if need be.
func (q *queue) getOrCreateLane(id schedule.Lane) *lane {
	at, found := slices.BinarySearchFunc(q.lanes, id, func(l lane, id schedule.Lane) int { return int(l.id) - int(id) })
	if !found {
		q.lanes = slices.Insert(q.lanes, at, lane{id: id})
	}
	return &q.lanes[at]
}

// isEmpty reports whether nothing waits, not even for its revisit.
func (q *queue) isEmpty() bool {
	n, _ := q.RevisitCountAndFirstDue()
	return q.Total == 0 && n == 0
}

// AwaitingRevisit implements schedule.OriginQueue.
func (q *queue) RevisitCountAndFirstDue() (n int, firstDue int64) {
	if last := len(q.lanes) - 1; last >= 0 && q.lanes[last].id == schedule.AwaitingRevisit && q.lanes[last].count > 0 {
		return q.lanes[last].count, q.lanes[last].firstSortKey
	}
	return 0, 0
}

// ReadyAt implements schedule.OriginQueue.
func (q *queue) ReadyAt(robotsHops bool) (at int64, ok bool) {
	for i := range q.lanes {
		l := &q.lanes[i]
		if l.count == 0 || l.id.IsRobotsHop() != robotsHops {
			continue
		}
		if !l.id.IsTimed() {
			return math.MinInt64, true
		}
		if !ok || l.firstSortKey < at {
			at, ok = l.firstSortKey, true
		}
	}
	return at, ok
}

// nextLane returns the lane whose turn it is; nil if there is none. Under a hold it
// is asked only when a hop is due, and hops go first.
func (q *queue) nextLane(now time.Time) *lane {
	var first, revisits *lane
	id := schedule.AwaitingRevisit
	for i := range q.lanes {
		l := &q.lanes[i]
		switch {
		case l.count == 0 || l.id.IsTimed() && l.firstSortKey > schedule.Nanos(now):
		case l.id == schedule.AwaitingRevisit:
			revisits = l
		case first == nil:
			first, id = l, l.id
		}
	}
	if q.alternation.ChooseRevisit(id, first != nil, revisits != nil) {
		return revisits
	}
	return first
}
