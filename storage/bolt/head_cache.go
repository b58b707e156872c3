package bolt

import "slices"

// A headCache counts the URLs that are kept at hand, the heads of lanes, and forgets some when
// there are too many. It requires the lock of the store.
type headCache struct {
	opts    *Options
	weight  int             // of the heads of all lanes
	origins []*loadedOrigin // that have heads, or had: those of the first are forgotten first
	dropped int             // origins that remove has dropped since origins was cleared of them
}

// prefetchCount returns how many URLs of a lane are kept at hand: fewer if many origins are in
// memory, which would push each other's out unused.
func (c *headCache) prefetchCount(originsInMemory int) int {
	return max(2, min(c.opts.PrefetchCount, c.opts.cachedURLLimit()/(originsInMemory+1)))
}

// insert adds a URL to a lane, and to its head if it belongs there.
func (c *headCache) insert(l *laneQueue, p lanePosition, value []byte, prefetch int) {
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
func (c *headCache) set(o *loadedOrigin, l *laneQueue, items []storedURL) {
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
func (c *headCache) remove(o *loadedOrigin) {
	if !o.hasCachedHeads {
		return
	}
	c.drop(o)
	if c.dropped++; c.dropped > len(c.origins)/2 {
		c.origins = slices.DeleteFunc(c.origins, func(o *loadedOrigin) bool { return !o.hasCachedHeads })
		c.dropped = 0
	}
}

// drop forgets the heads of o's lanes: one that is missed is read again.
func (c *headCache) drop(o *loadedOrigin) {
	o.hasCachedHeads = false
	for i := range o.lanes {
		c.clear(&o.lanes[i])
	}
}
