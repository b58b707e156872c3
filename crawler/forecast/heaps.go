package forecast

import (
	"container/heap"
	"time"
)

// A queue is hosts, the one that has been due longest first. It is a heap.
type queue []*guest

// Len is part of heap.Interface.
func (q queue) Len() int { return len(q) }

// Less is part of heap.Interface.
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap is part of heap.Interface.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push is part of heap.Interface.
func (q *queue) Push(x any) {
	g := x.(*guest)
	g.place = len(*q)
	*q = append(*q, g)
}

// Pop is part of heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	*q = (*q)[:last]
	return g
}

// Lanes are when each of so many that work side by side is free, the first that
// is free in front. It is a heap.
type lanes []time.Time

func newLanes(n int, free time.Time) lanes {
	l := make(lanes, n)
	for i := range l {
		l[i] = free
	}
	return l
}

// first returns when one is free.
func (l lanes) first() time.Time { return l[0] }

// take occupies the first that is free, until then.
func (l lanes) take(until time.Time) {
	l[0] = until
	heap.Fix(&l, 0)
}

// Len is part of heap.Interface.
func (l lanes) Len() int { return len(l) }

// Less is part of heap.Interface.
func (l lanes) Less(i, j int) bool { return l[i].Before(l[j]) }

// Swap is part of heap.Interface.
func (l lanes) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push is part of heap.Interface: the number of lanes never changes.
func (l lanes) Push(any) {}

// Pop is part of heap.Interface: see Push.
func (l lanes) Pop() any { return nil }
