package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type number struct {
	value int
	at    int32
}

func (n *number) before(m *number) bool { return n.value < m.value }
func (n *number) place() *int32         { return &n.at }

// The heap is compared with a slice that is searched, through random puts,
// moves and takes.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h heap[*number]
	var all, out []*number
	for range 100 {
		out = append(out, new(number))
	}
	for range 20_000 {
		switch i := r.IntN(3); {
		case i == 0 && len(out) > 0:
			n := out[len(out)-1]
			out, all = out[:len(out)-1], append(all, n)
			n.value = r.IntN(50)
			h.put(n)
		case i == 1 && len(all) > 0:
			n := all[r.IntN(len(all))]
			n.value = r.IntN(50)
			h.put(n)
		case len(all) > 0:
			k := r.IntN(len(all))
			h.take(all[k])
			h.take(all[k]) // what is in no heap stays out
			out, all = append(out, all[k]), slices.Delete(all, k, k+1)
		}
		if len(h) != len(all) {
			t.Fatalf("%d in the heap, want %d", len(h), len(all))
		}
		if len(all) == 0 {
			continue
		}
		smallest := slices.MinFunc(all, func(a, b *number) int { return a.value - b.value })
		if h[0].value != smallest.value {
			t.Fatalf("first is %d, want %d", h[0].value, smallest.value)
		}
	}
}

// The lowest lane goes first.
func TestLanes(t *testing.T) {
	const usual, late = 2, 3
	order := []Lane{
		LaneOf(late, true).Back(), LaneOf(late, true).Later(), LaneOf(late, true),
		LaneOf(late, false).Back(), LaneOf(usual, false).Later(), LaneOf(usual, false),
		LaneOf(late, false).Later(), LaneOf(late, false),
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) || order[7] >= Lanes {
		t.Errorf("lanes %v, want them to go up, below %d", order, Lanes)
	}
	for i, l := range order {
		if timed := i == 1 || i == 4 || i == 6; l.Timed() != timed {
			t.Errorf("lane %d: timed %t", l, l.Timed())
		}
		if l.IsHop() != (i < 3) {
			t.Errorf("lane %d: hop %t", l, l.IsHop())
		}
		if l.Stacked() != (i == 0 || i == 3) {
			t.Errorf("lane %d: stacked %t", l, l.Stacked())
		}
	}
	if LaneOf(200, false) != LaneOf(late, false) {
		t.Error("a class that is none has a lane of its own")
	}
}
