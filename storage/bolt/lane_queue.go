package bolt

import (
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A storedURL is a URL in a lane.
type storedURL struct {
	urlQueuePosition
	value []byte
}

func compareURLToPosition(i storedURL, p urlQueuePosition) int { return i.compare(p) }

// A laneQueue is one line of URLs. head is a copy of the first ones.
type laneQueue struct {
	id           schedule.LaneID
	count        int              // URLs that wait
	firstSortKey int64            // place.sortKey of the first of them
	lowerBound   urlQueuePosition // none of them is before it
	headURLs     []storedURL
	// cachedWeight is what head takes of Options.MaxCachedURLs: long URLs count for several.
	cachedWeight int
}

// insert adds a URL. If it belongs among those of head, it goes there too; head
// may grow up to twice the window.
func (l *laneQueue) insert(p urlQueuePosition, value []byte, prefetch int) {
	if l.count == 0 || p.sortKey < l.firstSortKey {
		l.firstSortKey = p.sortKey
	}
	if l.count == 0 || p.compare(l.lowerBound) < 0 {
		l.lowerBound = p
	}
	l.count++
	at, _ := slices.BinarySearchFunc(l.headURLs, p, compareURLToPosition)
	if at == len(l.headURLs) {
		return
	}
	l.headURLs = slices.Insert(l.headURLs, at, storedURL{p, slices.Clone(value)})
	l.cachedWeight += changeWeight(value)
	switch {
	case len(l.headURLs) > 2*prefetch:
		l.setHeadURLs(slices.Clone(l.headURLs[:prefetch]))
	case isHeadTooHeavy(l.headURLs, l.cachedWeight, 2*prefetch):
		l.setHeadURLs(slices.Clone(l.headURLs[:max(2, len(l.headURLs)/2)]))
	}
}

// setHeadURLs makes items the head.
func (l *laneQueue) setHeadURLs(items []storedURL) {
	l.headURLs, l.cachedWeight = items, 0
	for i := range items {
		l.cachedWeight += changeWeight(items[i].value)
	}
}

// isHeadTooHeavy reports whether the items, of that weight, are as much as most of an
// ordinary length are, of up to 1 KiB each. There must be two: see ready.
func isHeadTooHeavy(items []storedURL, weight, maxItems int) bool {
	return len(items) >= 2 && weight >= 4*maxItems
}

// pop takes the first URL, which is at the head. A lane that is timed must
// have the next one there too, if there is one.
func (l *laneQueue) pop() storedURL {
	i := l.headURLs[0]
	l.headURLs[0] = storedURL{}
	l.headURLs = l.headURLs[1:]
	l.cachedWeight -= changeWeight(i.value)
	l.count--
	l.lowerBound = i.urlQueuePosition
	if len(l.headURLs) > 0 {
		l.firstSortKey = l.headURLs[0].sortKey
	} else {
		l.headURLs = nil
	}
	return i
}

// isHeadLoaded reports whether pop will do.
func (l *laneQueue) isHeadLoaded() bool {
	want := 1
	if l.id.IsTimed() {
		want = 2
	}
	return len(l.headURLs) >= min(want, l.count)
}

// An originQueue is the lanes of one origin that were ever used, in their order.
type originQueue struct {
	lanes              []laneQueue
	revisitAlternation schedule.RevisitAlternation
	schedule.QueuedURLCounts
}

// getOrCreateLane returns the lane of that number, new if need be.
func (q *originQueue) getOrCreateLane(id schedule.LaneID) *laneQueue {
	at, found := slices.BinarySearchFunc(q.lanes, id, func(l laneQueue, id schedule.LaneID) int { return int(l.id) - int(id) })
	if !found {
		q.lanes = slices.Insert(q.lanes, at, laneQueue{id: id})
	}
	return &q.lanes[at]
}

// isEmpty reports whether nothing waits, not even for its revisit.
func (q *originQueue) isEmpty() bool {
	n, _ := q.RevisitCountAndFirstDue()
	return q.Total == 0 && n == 0
}

// RevisitCountAndFirstDue implements schedule.OriginURLQueue.
func (q *originQueue) RevisitCountAndFirstDue() (n int, firstDue int64) {
	if last := len(q.lanes) - 1; last >= 0 && q.lanes[last].id == schedule.AwaitingRevisit && q.lanes[last].count > 0 {
		return q.lanes[last].count, q.lanes[last].firstSortKey
	}
	return 0, 0
}

// ReadyAt implements schedule.OriginURLQueue.
func (q *originQueue) ReadyAt(robotsHops bool) (at int64, ok bool) {
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
func (q *originQueue) nextLane(now time.Time) *laneQueue {
	var first, revisits *laneQueue
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
	if q.revisitAlternation.ChooseRevisit(id, first != nil, revisits != nil) {
		return revisits
	}
	return first
}

// A headCache counts the URLs that are kept at hand, the heads of lanes, and forgets some when
// there are too many. It requires the lock of the store.
type headCache struct {
	opts    *Options
	weight  int               // of the heads of all lanes
	origins []*residentOrigin // that have heads, or had: those of the first are forgotten first
	dropped int               // origins that remove has dropped since origins was cleared of them
}

// prefetchCount returns how many URLs of a lane are kept at hand: fewer if many origins are in
// memory, which would push each other's out unused.
func (c *headCache) prefetchCount(originsInMemory int) int {
	return max(2, min(c.opts.PrefetchCount, c.opts.cachedURLLimit()/(originsInMemory+1)))
}

// insert adds a URL to a lane, and to its head if it belongs there.
func (c *headCache) insert(l *laneQueue, p urlQueuePosition, value []byte, prefetch int) {
	c.weight -= l.cachedWeight
	l.insert(p, value, prefetch)
	c.weight += l.cachedWeight
}

// pop takes the first URL of a lane, which is at the head.
func (c *headCache) pop(l *laneQueue) storedURL {
	first := l.pop()
	c.weight -= changeWeight(first.value)
	return first
}

// set makes items the head of a lane of o.
func (c *headCache) set(o *residentOrigin, l *laneQueue, items []storedURL) {
	c.weight -= l.cachedWeight
	l.setHeadURLs(items)
	c.weight += l.cachedWeight
	if !o.hasCachedHeads {
		o.hasCachedHeads = true
		c.origins = append(c.origins, o)
	}
}

// clear forgets the head of a lane.
func (c *headCache) clear(l *laneQueue) {
	c.weight -= l.cachedWeight
	l.setHeadURLs(nil)
}

// trim forgets the heads that were read first while there are too many.
func (c *headCache) trim() {
	for maxWeight := c.opts.cachedURLLimit(); c.weight > maxWeight || len(c.origins) > maxWeight; {
		c.drop(c.origins[0])
		c.origins = c.origins[1:]
	}
}

// remove forgets o, which becomes idle: the cache would keep it in memory.
func (c *headCache) remove(o *residentOrigin) {
	if !o.hasCachedHeads {
		return
	}
	c.drop(o)
	if c.dropped++; c.dropped > len(c.origins)/2 {
		c.origins = slices.DeleteFunc(c.origins, func(o *residentOrigin) bool { return !o.hasCachedHeads })
		c.dropped = 0
	}
}

// drop forgets the heads of o's lanes: one that is missed is read again.
func (c *headCache) drop(o *residentOrigin) {
	o.hasCachedHeads = false
	for i := range o.lanes {
		c.clear(&o.lanes[i])
	}
}
