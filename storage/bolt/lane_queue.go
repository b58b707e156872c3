package bolt

import (
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A storedURL is a URL in a lane, as the file has it.
type storedURL struct {
	urlQueuePosition
	value []byte // encoded entry with its checksum
}

func compareURLToPosition(i storedURL, p urlQueuePosition) int { return i.compare(p) }

// A laneQueue is one lane of an origin. Its URLs are in the file and the journal; headURLs is a copy of
// the first ones.
type laneQueue struct {
	id           schedule.LaneID
	count        int              // URLs in the lane, without leased ones
	firstSortKey int64            // sort key of the first URL
	lowerBound   urlQueuePosition // all URLs of the lane are at or after it
	headURLs     []storedURL      // the first URLs of the lane, in order; empty until loadHead reads them
	cachedWeight int              // weight of headURLs, see changeWeight
}

// insert counts a URL at p, and adds it to headURLs if its position is before the last of them.
// headURLs may grow to twice prefetch.
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
	// Cut a head that has become too long or too heavy: the rest is read again when it is needed.
	switch {
	case len(l.headURLs) > 2*prefetch:
		l.setHeadURLs(slices.Clone(l.headURLs[:prefetch]))
	case isHeadTooHeavy(l.headURLs, l.cachedWeight, 2*prefetch):
		l.setHeadURLs(slices.Clone(l.headURLs[:max(2, len(l.headURLs)/2)]))
	}
}

// setHeadURLs sets headURLs and its weight.
func (l *laneQueue) setHeadURLs(items []storedURL) {
	l.headURLs, l.cachedWeight = items, 0
	for i := range items {
		l.cachedWeight += changeWeight(items[i].value)
	}
}

// isHeadTooHeavy reports whether items weigh as much as maxItems items of 1 KiB each. A head of fewer
// than two items is never too heavy, since pop may need two: see isHeadLoaded.
func isHeadTooHeavy(items []storedURL, weight, maxItems int) bool {
	return len(items) >= 2 && weight >= 4*maxItems
}

// pop removes the first URL of the lane and returns it. It requires isHeadLoaded.
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

// isHeadLoaded reports whether pop may be called: headURLs has the first URL and, in a timed lane, the
// second one, whose time becomes firstSortKey.
func (l *laneQueue) isHeadLoaded() bool {
	want := 1
	if l.id.IsTimed() {
		want = 2
	}
	return len(l.headURLs) >= min(want, l.count)
}

// An originQueue has the lanes of one origin that were ever used.
type originQueue struct {
	lanes              []laneQueue // in the order of their numbers
	revisitAlternation schedule.RevisitAlternation
	schedule.QueuedURLCounts
}

// getOrCreateLane returns the lane with a number, which it creates if the origin does not have it.
func (q *originQueue) getOrCreateLane(id schedule.LaneID) *laneQueue {
	at, found := slices.BinarySearchFunc(q.lanes, id, func(l laneQueue, id schedule.LaneID) int {
		return int(l.id) - int(id)
	})
	if !found {
		q.lanes = slices.Insert(q.lanes, at, laneQueue{id: id})
	}
	return &q.lanes[at]
}

// isEmpty reports whether the origin has no URL to lease, now or later.
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

// nextLane returns the lane whose first URL is to be leased next, nil if no URL is due. During a hold
// of the origin it is called only if a redirect of its robots.txt is due, which goes first.
func (q *originQueue) nextLane(now time.Time) *laneQueue {
	// Find the lowest lane with a due URL, and whether a revisit is due.
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

// A headCache limits the URLs in the heads of all lanes to Options.MaxCachedURLs. Its methods require
// engine.mu.
type headCache struct {
	opts    *Options
	weight  int               // weight of the heads of all lanes
	origins []*residentOrigin // origins that have heads, or had; trim drops those of the first one first
	dropped int               // origins in the field origins whose heads remove has dropped
}

// prefetchCount returns how many URLs of a lane are read at a time. It is lower if many origins are in
// memory, because they would push each other's heads out before their use.
func (c *headCache) prefetchCount(originsInMemory int) int {
	return max(2, min(c.opts.PrefetchCount, c.opts.cachedURLLimit()/(originsInMemory+1)))
}

// insert is laneQueue.insert, with the weight counted.
func (c *headCache) insert(l *laneQueue, p urlQueuePosition, value []byte, prefetch int) {
	c.weight -= l.cachedWeight
	l.insert(p, value, prefetch)
	c.weight += l.cachedWeight
}

// pop is laneQueue.pop, with the weight counted.
func (c *headCache) pop(l *laneQueue) storedURL {
	first := l.pop()
	c.weight -= changeWeight(first.value)
	return first
}

// set makes items the head of a lane l of o.
func (c *headCache) set(o *residentOrigin, l *laneQueue, items []storedURL) {
	c.weight -= l.cachedWeight
	l.setHeadURLs(items)
	c.weight += l.cachedWeight
	if !o.hasCachedHeads {
		o.hasCachedHeads = true
		c.origins = append(c.origins, o)
	}
}

// clear drops the head of a lane.
func (c *headCache) clear(l *laneQueue) {
	c.weight -= l.cachedWeight
	l.setHeadURLs(nil)
}

// trim drops the heads of the origins that were read first, until the rest is within the limit.
func (c *headCache) trim() {
	for maxWeight := c.opts.cachedURLLimit(); c.weight > maxWeight || len(c.origins) > maxWeight; {
		c.drop(c.origins[0])
		c.origins = c.origins[1:]
	}
}

// remove drops the heads of o, whose host is evicted. It also removes dropped origins from c.origins
// now and then, since an entry there keeps its origin in memory.
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

// drop drops the heads of all lanes of o. They are read again when they are needed.
func (c *headCache) drop(o *residentOrigin) {
	o.hasCachedHeads = false
	for i := range o.lanes {
		c.clear(&o.lanes[i])
	}
}
