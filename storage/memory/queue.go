package memory

import (
	"cmp"
	"math"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// An originQueue has the queued URLs of one origin, and its pages that await their revisit.
type originQueue struct {
	lanes              [schedule.NumLanes]schedule.IndexedHeap[*queuedEntry]
	revisitAlternation schedule.RevisitAlternation
	lastSequence       int64 // sequence number of the latest entry
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

// addEntry queues e behind the URLs of its class and rank.
func (q *originQueue) addEntry(e storage.Entry) {
	q.insert(schedule.LaneOf(&e), schedule.RankOf(&e), e)
}

// addToFront queues e at the head of the queue.
func (q *originQueue) addToFront(e storage.Entry) { q.insert(schedule.LaneOf(&e).ReturnedLane(), 0, e) }

// addDelayed queues e, to be leased not before at.
func (q *originQueue) addDelayed(e storage.Entry, at time.Time) {
	q.insert(schedule.LaneOf(&e).DelayedLane(), schedule.Nanos(at), e)
}

// addRevisit makes e await its revisit, not before at.
func (q *originQueue) addRevisit(e storage.Entry, at time.Time) *queuedEntry {
	return q.insert(schedule.AwaitingRevisit, schedule.Nanos(at), e)
}

// insert adds e to a lane. at is its sort key: the rank or, in a timed lane, the earliest time.
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

// rescheduleIfModified makes w, which awaits its revisit, due at now if it was modified after its last
// visit. It returns false if it was not.
func (q *originQueue) rescheduleIfModified(w *queuedEntry, modified, now time.Time) bool {
	if !schedule.NoteLastmod(&w.Entry, modified) {
		return false
	}
	w.sortKey = min(w.sortKey, schedule.Nanos(now))
	q.lanes[schedule.AwaitingRevisit].PushOrMove(w)
	return true
}

// pop removes the next URL and returns it, false if no URL is due. During a hold of the origin it is
// called only if a redirect of its robots.txt is due, which goes first.
func (q *originQueue) pop(now time.Time) (e storage.Entry, ok bool) {
	// Find the lowest lane with a due URL, and let a due revisit take its turn.
	first := schedule.AwaitingRevisit
	for lane := range schedule.AwaitingRevisit {
		if q.laneHasDueURL(lane, now) {
			first = lane
			break
		}
	}
	if q.revisitAlternation.ChooseRevisit(first, first < schedule.AwaitingRevisit,
		q.laneHasDueURL(schedule.AwaitingRevisit, now)) {
		first = schedule.AwaitingRevisit
	} else if first == schedule.AwaitingRevisit {
		return storage.Entry{}, false
	}
	q.AddURLs(first, -1)
	w := q.lanes[first][0]
	q.lanes[first].Remove(w)
	return w.Entry, true
}

// laneHasDueURL reports whether the lane has a URL that may be leased now.
func (q *originQueue) laneHasDueURL(lane schedule.LaneID, now time.Time) bool {
	l := q.lanes[lane]
	return len(l) > 0 && (!lane.IsTimed() || l[0].sortKey <= schedule.Nanos(now))
}

// A queuedEntry is an entry in a lane.
type queuedEntry struct {
	sortKey   int64 // rank or, in timed lanes, the earliest time of the lease in nanoseconds
	sequence  int64 // orders entries with the same sortKey; negative in LIFO lanes
	heapIndex int32 // see schedule.HeapItem
	storage.Entry
}

// compare orders the entries of a lane: negative if w is leased before v.
func (w *queuedEntry) compare(v *queuedEntry) int {
	return cmp.Or(cmp.Compare(w.sortKey, v.sortKey), cmp.Compare(w.sequence, v.sequence))
}

// PrecedesInHeap implements schedule.HeapItem.
func (w *queuedEntry) PrecedesInHeap(v *queuedEntry) bool { return w.compare(v) < 0 }

// HeapIndexPtr implements schedule.HeapItem.
func (w *queuedEntry) HeapIndexPtr() *int32 { return &w.heapIndex }
