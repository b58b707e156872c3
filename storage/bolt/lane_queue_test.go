package bolt

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// TestLane: whatever the order in which URLs are inserted, the head of a lane has the first URLs of the
// lane, and at most twice prefetch.
func TestLane(t *testing.T) {
	const prefetch, n = 4, 100
	orders := map[string]func(i int) int64{
		"up":     func(i int) int64 { return int64(i) },
		"down":   func(i int) int64 { return int64(-i) },
		"random": func(i int) int64 { return int64(rand.IntN(n)) },
	}
	for name, at := range orders {
		t.Run(name, func(t *testing.T) {
			l := laneQueue{id: schedule.AwaitingRevisit}
			var all []urlQueuePosition
			longest := 0
			for i := range n {
				p := urlQueuePosition{sortKey: at(i), seq: int64(i)}
				l.insert(p, nil, prefetch)
				all = append(all, p)
				slices.SortFunc(all, urlQueuePosition.compare)
				if len(l.headURLs) == 0 && i%10 == 5 {
					for _, p := range all[:prefetch] {
						l.headURLs = append(l.headURLs, storedURL{urlQueuePosition: p})
					}
				}
				longest = max(longest, len(l.headURLs))
				if len(l.headURLs) > 2*prefetch || !slices.EqualFunc(l.headURLs, all[:len(l.headURLs)], hasPosition) {
					t.Fatalf("head %v of %v", l.headURLs, all)
				}
				if l.count != len(all) || l.firstSortKey != all[0].sortKey || l.lowerBound.compare(all[0]) > 0 {
					t.Fatalf("lane %+v of %v", l, all)
				}
			}
			if longest < prefetch {
				t.Fatalf("head was never longer than %d", longest)
			}
			if l.pop().urlQueuePosition != all[0] || l.count != n-1 ||
				l.firstSortKey != all[1].sortKey || l.lowerBound != all[0] {
				t.Errorf("pop left %+v", l)
			}
		})
	}
}

func hasPosition(i storedURL, p urlQueuePosition) bool { return i.urlQueuePosition == p }

// TestLongRequestsAreNotAllCached: MaxCachedURLs limits the bytes of the cached URLs, too.
func TestLongRequestsAreNotAllCached(t *testing.T) {
	const cached = 1 << 12 // 1 MiB, at 256 bytes each
	s := openStore(t, t.TempDir(), Options{MaxCachedURLs: cached, noSync: true})
	defer s.Close()
	now, body := time.Now(), make([]byte, 100<<10)
	for i := range 300 {
		e := newEntry(t, "https://h%d.example/%d", i%20, i)
		e.Request = &storage.NonGETRequest{Method: "POST", Body: body}
		addEntries(t, s, e)
	}
	for range 200 {
		for _, l := range mustLease(t, s, now, 5) {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Requeue}}))
		}
		s.engine.mu.Lock()
		bytes := 0
		for _, o := range s.engine.index.origins {
			for _, l := range o.lanes {
				for _, i := range l.headURLs {
					bytes += len(i.value)
				}
			}
		}
		s.engine.mu.Unlock()
		if bytes > 256*cached {
			t.Fatalf("%d bytes are cached, the limit is about %d", bytes, 256*cached)
		}
	}
}

// TestHeadCache: the cache counts the weight of the heads, and drops the heads that were read first.
func TestHeadCache(t *testing.T) {
	c := headCache{opts: &Options{PrefetchCount: 64, MaxCachedURLs: 6}}
	for originsInMemory, want := range map[int]int{0: 6, 1: 3, 100: 2} {
		if got := c.prefetchCount(originsInMemory); got != want {
			t.Errorf("%d origins: %d URLs of a lane are kept, want %d", originsInMemory, got, want)
		}
	}
	items := func(n int) (list []storedURL) {
		for i := range n {
			list = append(list, storedURL{urlQueuePosition{seq: int64(i)}, []byte("record")})
		}
		return list
	}
	var origins [3]*residentOrigin
	e := newEntry(t, "https://a.example/")
	for i := range origins {
		origins[i] = newTestOrigin(t, uint32(i+1), "https://a.example")
		l := origins[i].getOrCreateLane(schedule.LaneOf(&e))
		l.count = 3
		c.set(origins[i], l, items(3))
	}
	c.trim()
	if c.weight != 6 || len(c.origins) != 2 || origins[0].hasCachedHeads || !origins[1].hasCachedHeads {
		t.Errorf("after trim: weight %d, %d origins, the first has heads: %t", c.weight,
			len(c.origins), origins[0].hasCachedHeads)
	}
	l := &origins[1].lanes[0]
	c.pop(l)
	c.insert(l, urlQueuePosition{seq: -1}, make([]byte, 512), 64)
	if want := l.cachedWeight + 3; c.weight != want || l.cachedWeight != 5 {
		t.Errorf("after pop and insert: weight %d, want %d; of the lane %d, want 5", c.weight, want, l.cachedWeight)
	}
	c.remove(origins[1])
	c.remove(origins[2])
	if c.weight != 0 || len(c.origins) != 0 {
		t.Errorf("after remove: weight %d, %d origins, want none", c.weight, len(c.origins))
	}
}
