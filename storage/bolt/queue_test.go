package bolt

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A lane is filled in every order, and its head read now and then. What of it
// is at hand are its first ones, and not too many of them.
func TestLane(t *testing.T) {
	const window, n = 4, 100
	orders := map[string]func(i int) int64{
		"up":     func(i int) int64 { return int64(i) },
		"down":   func(i int) int64 { return int64(-i) },
		"random": func(i int) int64 { return int64(rand.IntN(n)) },
	}
	for name, at := range orders {
		t.Run(name, func(t *testing.T) {
			l := lane{lane: schedule.Resting}
			var all []place
			longest := 0
			for i := range n {
				p := place{at: at(i), seq: int64(i)}
				l.put(p, nil, window)
				all = append(all, p)
				slices.SortFunc(all, place.compare)
				if len(l.head) == 0 && i%10 == 5 {
					for _, p := range all[:window] {
						l.head = append(l.head, item{place: p})
					}
				}
				longest = max(longest, len(l.head))
				if len(l.head) > 2*window || !slices.EqualFunc(l.head, all[:len(l.head)], isAt) {
					t.Fatalf("head %v of %v", l.head, all)
				}
				if l.n != len(all) || l.first != all[0].at || l.low.compare(all[0]) > 0 {
					t.Fatalf("lane %+v of %v", l, all)
				}
			}
			if longest < window {
				t.Fatalf("head was never longer than %d", longest)
			}
			if l.pop().place != all[0] || l.n != n-1 || l.first != all[1].at || l.low != all[0] {
				t.Errorf("pop left %+v", l)
			}
		})
	}
}

func isAt(i item, p place) bool { return i.place == p }
