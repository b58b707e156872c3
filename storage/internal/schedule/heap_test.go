package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

type testItem struct {
	value int
	index int32
}

func (n *testItem) PrecedesInHeap(m *testItem) bool { return n.value < m.value }
func (n *testItem) HeapIndexPtr() *int32            { return &n.index }

// TestHeap: after random pushes, moves and removals the first item of the heap is the smallest.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h IndexedHeap[*testItem]
	var present, removed []*testItem
	for range 100 {
		removed = append(removed, new(testItem))
	}
	for range 20_000 {
		switch i := r.IntN(3); {
		case i == 0 && len(removed) > 0:
			n := removed[len(removed)-1]
			removed, present = removed[:len(removed)-1], append(present, n)
			n.value = r.IntN(50)
			h.PushOrMove(n)
		case i == 1 && len(present) > 0:
			n := present[r.IntN(len(present))]
			n.value = r.IntN(50)
			h.PushOrMove(n)
		case len(present) > 0:
			k := r.IntN(len(present))
			h.Remove(present[k])
			h.Remove(present[k]) // removing it again does nothing
			removed, present = append(removed, present[k]), slices.Delete(present, k, k+1)
		}
		if len(h) != len(present) {
			t.Fatalf("%d in the heap, want %d", len(h), len(present))
		}
		if len(present) == 0 {
			continue
		}
		smallest := slices.MinFunc(present, func(a, b *testItem) int { return a.value - b.value })
		if h[0].value != smallest.value {
			t.Fatalf("first is %d, want %d", h[0].value, smallest.value)
		}
	}
}

// TestLanes: the numbers of lanes are in the order in which their URLs are leased.
func TestLanes(t *testing.T) {
	u, err := decorum.ParseURL("https://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	hop := LaneOf(&storage.Entry{URL: u, RobotsFor: u.Origin(), PriorityClass: storage.ClassLate})
	normal := LaneOf(&storage.Entry{URL: u, PriorityClass: storage.ClassNormal})
	late := LaneOf(&storage.Entry{URL: u, PriorityClass: storage.ClassLate})
	order := []LaneID{
		hop.ReturnedLane(), hop.DelayedLane(), hop,
		late.ReturnedLane(), normal.DelayedLane(), normal, late.DelayedLane(), late,
	}
	if !slices.IsSorted(order) || len(slices.Compact(slices.Clone(order))) != len(order) || order[7] >= NumLanes {
		t.Errorf("lanes %v, want increasing numbers below %d", order, NumLanes)
	}
	for i, l := range order {
		if timed := i == 1 || i == 4 || i == 6; l.IsTimed() != timed {
			t.Errorf("lane %d: timed %t", l, l.IsTimed())
		}
		if l.IsRobotsHop() != (i < 3) {
			t.Errorf("lane %d: robots hop %t", l, l.IsRobotsHop())
		}
		if l.IsLIFO() != (i == 0 || i == 3) {
			t.Errorf("lane %d: LIFO %t", l, l.IsLIFO())
		}
	}
	if LaneOf(&storage.Entry{URL: u, PriorityClass: 200}) != late {
		t.Error("an invalid class is not in the lane of ClassLate")
	}
}
