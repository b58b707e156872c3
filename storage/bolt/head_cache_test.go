package bolt

import (
	"testing"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// The cache counts what the heads hold, and forgets the heads that were read first.
func TestHeadCache(t *testing.T) {
	c := headCache{opts: &Options{PrefetchCount: 64, MaxCachedURLs: 6}}
	for originsInMemory, want := range map[int]int{0: 6, 1: 3, 100: 2} {
		if got := c.prefetchCount(originsInMemory); got != want {
			t.Errorf("%d origins: %d URLs of a lane are kept, want %d", originsInMemory, got, want)
		}
	}
	items := func(n int) (list []storedURL) {
		for i := range n {
			list = append(list, storedURL{lanePosition{seq: int64(i)}, []byte("record")})
		}
		return list
	}
	var origins [3]*loadedOrigin
	for i := range origins {
		origins[i] = newTestOrigin(t, uint32(i+1), "https://a.example")
		l := origins[i].getOrCreateLane(schedule.LaneForClass(2, false))
		l.count = 3
		c.set(origins[i], l, items(3))
	}
	c.trim()
	if c.weight != 6 || len(c.origins) != 2 || origins[0].hasCachedHeads || !origins[1].hasCachedHeads {
		t.Errorf("after trim: weight %d, %d origins, the first has heads: %t", c.weight, len(c.origins), origins[0].hasCachedHeads)
	}
	l := &origins[1].lanes[0]
	c.pop(l)
	c.insert(l, lanePosition{seq: -1}, make([]byte, 512), 64)
	if want := l.cachedWeight + 3; c.weight != want || l.cachedWeight != 5 {
		t.Errorf("after pop and insert: weight %d, want %d; of the lane %d, want 5", c.weight, want, l.cachedWeight)
	}
	c.remove(origins[1])
	c.remove(origins[2])
	if c.weight != 0 || len(c.origins) != 0 {
		t.Errorf("after remove: weight %d, %d origins, want none", c.weight, len(c.origins))
	}
}
