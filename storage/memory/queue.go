package memory

import (
	"cmp"
	"math"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// originQueue is what waits for one origin in a Store.
type originQueue struct {
	lanes              [schedule.NumLanes]schedule.IndexedHeap[*queuedEntry]
	revisitAlternation schedule.RevisitAlternation
	lastSequence       int64 // the last number given
	schedule.QueuedURLCounts
}

// RevisitCountAndFirstDue implements schedule.OriginURLQueue.
func (q *originQueue) RevisitCountAndFirstDue() (n int, first int64) {
	l := q.lanes[schedule.AwaitingRevisit]
	if len(l) == 0 {
		return 0, first
	}
	return len(l), l[0].sortKey
}

// ReadyAt implements schedule.OriginURLQueue.
func (q *originQueue) ReadyAt(robotsHops bool) (at int64, ok bool) {
	for lane := range schedule.NumLanes {
		l := q.lanes[lane]
		if lane.IsRobotsHop() != robotsHops || len(l) == 0 {
			continue
		}
		if !lane.IsTimed() {
			return math.MinInt64, true
		}
		if first := l[0].sortKey; !ok || first < at {
			at, ok = first, true
		}
	}
	return at, ok
}

// addEntry queues e behind those of its class and rank.
func (q *originQueue) addEntry(e storage.Entry) {
	q.insert(schedule.LaneOf(&e), schedule.RankOf(&e), e)
}

// addToFront queues e before all others.
func (q *originQueue) addToFront(e storage.Entry) { q.insert(schedule.LaneOf(&e).ReturnedLane(), 0, e) }

// addDelayed queues e to be handed out not before at.
func (q *originQueue) addDelayed(e storage.Entry, at time.Time) {
	q.insert(schedule.LaneOf(&e).DelayedLane(), schedule.Nanos(at), e)
}

// addRevisit queues e for its revisit, not before at.
func (q *originQueue) addRevisit(e storage.Entry, at time.Time) *queuedEntry {
	return q.insert(schedule.AwaitingRevisit, schedule.Nanos(at), e)
}

func (q *originQueue) insert(lane schedule.LaneID, at int64, e storage.Entry) *queuedEntry {
	q.lastSequence++
	w := &queuedEntry{sortKey: at, sequence: q.lastSequence, Entry: e}
	if lane.IsLIFO() {
		w.sequence = -w.sequence
	}
	q.lanes[lane].PushOrMove(w)
	q.AddURLs(lane, 1)
	return w
}

// rescheduleIfModified brings the revisit of w forward to now if it was modified after its
// last visit; false if it was not.
func (q *originQueue) rescheduleIfModified(w *queuedEntry, modified, now time.Time) bool {
	if !schedule.NoteLastmod(&w.Entry, modified) {
		return false
	}
	w.sortKey = min(w.sortKey, schedule.Nanos(now))
	q.lanes[schedule.AwaitingRevisit].PushOrMove(w)
	return true
}

// pop takes out the URL whose turn it is; false if there is none. Under a hold
// it is asked only when a hop is due, and hops go first.
func (q *originQueue) pop(now time.Time) (e storage.Entry, ok bool) {
	first := schedule.AwaitingRevisit
	for lane := range schedule.AwaitingRevisit {
		if q.laneHasDueURL(lane, now) {
			first = lane
			break
		}
	}
	if q.revisitAlternation.ChooseRevisit(first, first < schedule.AwaitingRevisit, q.laneHasDueURL(schedule.AwaitingRevisit, now)) {
		first = schedule.AwaitingRevisit
	} else if first == schedule.AwaitingRevisit {
		return storage.Entry{}, false
	}
	q.AddURLs(first, -1)
	w := q.lanes[first][0]
	q.lanes[first].Remove(w)
	return w.Entry, true
}

// laneHasDueURL reports whether the lane has a URL to hand out.
func (q *originQueue) laneHasDueURL(lane schedule.LaneID, now time.Time) bool {
	l := q.lanes[lane]
	return len(l) > 0 && (!lane.IsTimed() || l[0].sortKey <= schedule.Nanos(now))
}

// queuedEntry is an entry in a line.
type queuedEntry struct {
	sortKey   int64 // rank, or not before, in nanoseconds, in lanes that are timed
	sequence  int64
	heapIndex int32
	storage.Entry
}

func (w *queuedEntry) compare(v *queuedEntry) int {
	return cmp.Or(cmp.Compare(w.sortKey, v.sortKey), cmp.Compare(w.sequence, v.sequence))
}

// PrecedesInHeap implements schedule.HeapItem: what goes first is first.
func (w *queuedEntry) PrecedesInHeap(v *queuedEntry) bool { return w.compare(v) < 0 }

// HeapIndexPtr implements schedule.HeapItem.
func (w *queuedEntry) HeapIndexPtr() *int32 { return &w.heapIndex }
