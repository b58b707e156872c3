package storage

import (
	"cmp"
	"container/heap"
	"math"
	"time"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// memoryQueue is what waits for one origin in a Memory.
type memoryQueue struct {
	lines [schedule.Lanes]entryHeap
	turns schedule.Turns
	order int64 // the last number given
	schedule.Tally
}

// Resting implements schedule.Queue.
func (q *memoryQueue) Resting() (n int, first int64) {
	l := q.lines[schedule.Resting]
	if len(l) == 0 {
		return 0, first
	}
	return len(l), l[0].at
}

// Ready implements schedule.Queue.
func (q *memoryQueue) Ready(hops bool) (at int64, ok bool) {
	for lane := range schedule.Lanes {
		l := q.lines[lane]
		if lane.IsHop() != hops || len(l) == 0 {
			continue
		}
		if !lane.Timed() {
			return math.MinInt64, true
		}
		if first := l[0].at; !ok || first < at {
			at, ok = first, true
		}
	}
	return at, ok
}

// add queues e behind those of its class and rank. Hops know no rank.
func (q *memoryQueue) add(e Entry) {
	lane, rank := laneOf(&e), int64(e.Rank)
	if lane.IsHop() {
		rank = 0
	}
	q.put(lane, rank, e)
}

// giveBack queues e before all others.
func (q *memoryQueue) giveBack(e Entry) { q.put(laneOf(&e).Back(), 0, e) }

// putOff queues e to be handed out not before at.
func (q *memoryQueue) putOff(e Entry, at time.Time) { q.put(laneOf(&e).Later(), schedule.Nanos(at), e) }

// rest queues e for its revisit, not before at.
func (q *memoryQueue) rest(e Entry, at time.Time) *waiting {
	return q.put(schedule.Resting, schedule.Nanos(at), e)
}

func (q *memoryQueue) put(lane schedule.Lane, at int64, e Entry) *waiting {
	q.order++
	w := &waiting{at: at, order: q.order, Entry: e}
	if lane.Stacked() {
		w.order = -w.order
	}
	heap.Push(&q.lines[lane], w)
	q.Count(lane, 1)
	return w
}

// recall brings the revisit of w forward to now if it was modified after its
// last visit; false if it was not.
func (q *memoryQueue) recall(w *waiting, modified, now time.Time) bool {
	var page Page
	if w.Page != nil {
		page = *w.Page
	}
	if !page.Visited.Before(modified) {
		return false
	}
	page.Listed = modified
	w.Page, w.at = &page, min(w.at, schedule.Nanos(now))
	heap.Fix(&q.lines[schedule.Resting], w.index)
	return true
}

// pop takes out the URL whose turn it is; false if there is none. Under a hold
// it is asked only when a hop is due, and hops go first.
func (q *memoryQueue) pop(now time.Time) (e Entry, ok bool) {
	first := schedule.Resting
	for lane := range schedule.Resting {
		if q.due(lane, now) {
			first = lane
			break
		}
	}
	if q.turns.Rest(first, first < schedule.Resting, q.due(schedule.Resting, now)) {
		first = schedule.Resting
	} else if first == schedule.Resting {
		return Entry{}, false
	}
	q.Count(first, -1)
	return heap.Pop(&q.lines[first]).(*waiting).Entry, true
}

// due reports whether the lane has a URL to hand out.
func (q *memoryQueue) due(lane schedule.Lane, now time.Time) bool {
	l := q.lines[lane]
	return len(l) > 0 && (!lane.Timed() || l[0].at <= schedule.Nanos(now))
}

func laneOf(e *Entry) schedule.Lane {
	return schedule.LaneOf(uint8(e.Class), e.For == e.URL.Origin())
}

// waiting is an entry in a line.
type waiting struct {
	at    int64 // rank, or not before, in nanoseconds, in lanes that are timed
	order int64
	index int // in its line
	Entry
}

func (w *waiting) time() time.Time { return time.Unix(0, w.at) }

// An entryHeap implements heap.Interface: what goes first is first.
type entryHeap []*waiting

func (l entryHeap) Len() int { return len(l) }

func (l entryHeap) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

func (l *entryHeap) Push(x any) {
	w := x.(*waiting)
	w.index = len(*l)
	*l = append(*l, w)
}

func (l entryHeap) Less(i, j int) bool { return l[i].compare(l[j]) < 0 }

func (w *waiting) compare(v *waiting) int {
	return cmp.Or(cmp.Compare(w.at, v.at), cmp.Compare(w.order, v.order))
}

func (l *entryHeap) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return x
}
