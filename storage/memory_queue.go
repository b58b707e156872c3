package storage

import (
	"container/heap"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// memoryQueue is what waits for one origin in a Memory.
type memoryQueue struct {
	lines [schedule.Lanes / 2]line // the odd lanes: lane l is lines[l/2]
	later [schedule.Lanes / 2]laterHeap
	all   int
	hops  int
}

// Len implements schedule.Queue.
func (q *memoryQueue) Len() (all, hops int) { return q.all, q.hops }

// Ready implements schedule.Queue.
func (q *memoryQueue) Ready(hops bool) (at time.Time, ok bool) {
	for lane := range schedule.Lanes {
		if lane.IsHop() != hops {
			continue
		}
		if !lane.Timed() && q.lines[lane/2].len() > 0 {
			return time.Time{}, true
		}
		if l := q.later[lane/2]; lane.Timed() && len(l) > 0 && (!ok || l[0].at.Before(at)) {
			at, ok = l[0].at, true
		}
	}
	return at, ok
}

// add queues e behind its class.
func (q *memoryQueue) add(e Entry) {
	q.lines[laneOf(&e)/2].push(e)
	q.count(&e, 1)
}

// giveBack queues e before all others.
func (q *memoryQueue) giveBack(e Entry) {
	q.lines[laneOf(&e).Back()/2].push(e)
	q.count(&e, 1)
}

// putOff queues e to be handed out not before at; order decides between equals.
func (q *memoryQueue) putOff(e Entry, at time.Time, order uint64) {
	heap.Push(&q.later[laneOf(&e).Later()/2], later{at, order, e})
	q.count(&e, 1)
}

// pop takes out the URL whose turn it is; false if there is none. Under a hold
// it is asked only when a hop is due, and hops go first.
func (q *memoryQueue) pop(now time.Time) (e Entry, ok bool) {
	for lane := range schedule.Lanes {
		line, put := &q.lines[lane/2], &q.later[lane/2]
		switch {
		case !lane.Timed() && line.len() > 0:
			e, ok = line.pop(lane.Stacked()), true
		case lane.Timed() && len(*put) > 0 && !(*put)[0].at.After(now):
			e, ok = heap.Pop(put).(later).Entry, true
		}
		if ok {
			q.count(&e, -1)
			return e, true
		}
	}
	return Entry{}, false
}

func (q *memoryQueue) count(e *Entry, n int) {
	q.all += n
	if laneOf(e).IsHop() {
		q.hops += n
	}
}

func laneOf(e *Entry) schedule.Lane {
	return schedule.LaneOf(uint8(e.Class), e.For == e.URL.Origin())
}

// A line is a queue, or a stack.
type line struct {
	entries []Entry
	head    int // before it, entries is spent
}

func (l *line) len() int     { return len(l.entries) - l.head }
func (l *line) push(e Entry) { l.entries = append(l.entries, e) }

func (l *line) pop(last bool) Entry {
	if last {
		end := len(l.entries) - 1
		e := l.entries[end]
		l.entries[end] = Entry{}
		l.entries = l.entries[:end]
		return e
	}
	e := l.entries[l.head]
	l.entries[l.head] = Entry{}
	l.head++
	if 2*l.head >= len(l.entries) { // half of it is spent: move the rest to the front
		n := copy(l.entries, l.entries[l.head:])
		clear(l.entries[n:])
		l.entries, l.head = l.entries[:n], 0
	}
	return e
}

// later is an entry that was put off.
type later struct {
	at    time.Time
	order uint64
	Entry
}

// laterHeap implements heap.Interface: the earliest first.
type laterHeap []later

func (h laterHeap) Len() int      { return len(h) }
func (h laterHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *laterHeap) Push(x any)   { *h = append(*h, x.(later)) }

func (h laterHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].order < h[j].order
	}
	return h[i].at.Before(h[j].at)
}

func (h *laterHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = later{}
	*h = (*h)[:last]
	return x
}
