package forecast

import (
	"container/heap"
	"time"
)

// A hostHeap is hosts, the one that has been due longest first. It is a heap.
type hostHeap []*hostState

// Len is part of heap.Interface.
func (q hostHeap) Len() int { return len(q) }

// Less is part of heap.Interface.
func (q hostHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap is part of heap.Interface.
func (q hostHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].heapIndex, q[j].heapIndex = i, j
}

// Push is part of heap.Interface.
func (q *hostHeap) Push(x any) {
	g := x.(*hostState)
	g.heapIndex = len(*q)
	*q = append(*q, g)
}

// Pop is part of heap.Interface.
func (q *hostHeap) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	*q = (*q)[:last]
	return g
}

// Lanes are when each of so many that work side by side is free, the first that
// is free in front. It is a heap.
type slotFreeTimeHeap []time.Time

// nextFree returns when one is free.
func (l slotFreeTimeHeap) nextFree() time.Time { return l[0] }

// occupyNextFreeUntil occupies the first that is free, until then.
func (l slotFreeTimeHeap) occupyNextFreeUntil(until time.Time) {
	l[0] = until
	heap.Fix(&l, 0)
}

// Len is part of heap.Interface.
func (l slotFreeTimeHeap) Len() int { return len(l) }

// Less is part of heap.Interface.
func (l slotFreeTimeHeap) Less(i, j int) bool { return l[i].Before(l[j]) }

// Swap is part of heap.Interface.
func (l slotFreeTimeHeap) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push is part of heap.Interface: the number of lanes never changes.
func (l slotFreeTimeHeap) Push(any) {}

// Pop is part of heap.Interface: see Push.
func (l slotFreeTimeHeap) Pop() any { return nil }
