package bolt

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A lane is filled in every order. What of it is at hand are its first ones,
// and not too many of them; what is not written is all there.
func TestLane(t *testing.T) {
	const window, n = 4, 100
	orders := map[string]func(i int) int64{
		"up":     func(i int) int64 { return int64(i) },
		"down":   func(i int) int64 { return int64(-i) },
		"random": func(i int) int64 { return int64(rand.IntN(n)) },
	}
	for name, at := range orders {
		t.Run(name, func(t *testing.T) {
			var l lane
			var all []place
			for i := range n {
				p := place{at: at(i), seq: int64(i)}
				l.put(item{place: p, batch: uint64(i)}, window)
				all = append(all, p)
				slices.SortFunc(all, place.compare)
				if len(l.head) > 2*window || !slices.EqualFunc(l.head, all[:len(l.head)], isAt) {
					t.Fatalf("head %v of %v", l.head, all)
				}
				if l.n != len(all) || l.first != all[0].at || l.low.compare(all[0]) > 0 || !slices.EqualFunc(l.fresh, all, isAt) {
					t.Fatalf("lane %+v of %v", l, all)
				}
			}
			if l.pop().place != all[0] || l.n != n-1 || len(l.fresh) != n-1 {
				t.Errorf("pop left %d, and %d of them not written", l.n, len(l.fresh))
			}
			l.written(n - 2)
			if len(l.fresh) > 1 {
				t.Errorf("%d are kept as not written, want those of the last batch", len(l.fresh))
			}
		})
	}
}

func isAt(i item, p place) bool { return i.place == p }
