package schedule

import "github.com/decorum-crawler/decorum/storage"

// A LaneID is the number of a lane. The URLs of an origin wait in lanes, and the next one is the first
// URL of the lowest lane that has a due one. Redirects of the origin's own robots.txt,
// which no hold stops, are in the lowest lanes; the other URLs follow class by class. Within both, URLs
// that were returned (Requeue, or an expired lease) go first, the latest ahead. Within a class, delayed
// URLs that have become due go before the others, since they were queued earlier.
type LaneID uint8

// The lanes. Even ones are timed: their order is that of the earliest time of the lease. The order of
// the others is that of the rank, and then of insertion. The delayed URLs of a lane are in the lane
// before it: see DelayedLane.
const (
	robotsHopReturned LaneID = 1
	robotsHop         LaneID = 3
	returned          LaneID = 5
	firstClass        LaneID = 7  // class 0; classes 1 to 3 follow in steps of two
	AwaitingRevisit   LaneID = 14 // pages that await their revisit
	NumLanes          LaneID = 15
)

// firstShared is the first lane whose URLs take turns with revisits: the delayed URLs of ClassNormal.
const firstShared = firstClass + 2*2 - 1

// A RevisitAlternation makes pages whose revisit is due take turns with URLs of ClassNormal and
// ClassLate, so that neither waits for more than one visit of the other.
type RevisitAlternation struct {
	LastWasRevisit bool // the last lease of the origin was a revisit
}

// ChooseRevisit reports whether the next lease of the origin is a revisit, and records that. lane is the
// lowest lane with a due URL, if hasOther; revisitDue says whether a revisit is due.
func (t *RevisitAlternation) ChooseRevisit(lane LaneID, hasOther, revisitDue bool) bool {
	t.LastWasRevisit = revisitDue && (!hasOther || lane >= firstShared && !t.LastWasRevisit)
	return t.LastWasRevisit
}

// LaneOf returns the lane of a new URL.
func LaneOf(e *storage.Entry) LaneID {
	if e.RobotsFor == e.URL.Origin() {
		return robotsHop
	}
	return firstClass + 2*LaneID(min(e.PriorityClass, storage.NumClasses-1))
}

// RankOf returns the rank of a new URL in its lane. Redirects of robots.txt all have rank 0.
func RankOf(e *storage.Entry) int64 {
	if LaneOf(e).IsRobotsHop() {
		return 0
	}
	return int64(e.PriorityRank)
}

// DelayedLane returns the lane of a delayed URL (RetryAt) whose LaneOf is l.
func (l LaneID) DelayedLane() LaneID { return l - 1 }

// ReturnedLane returns the lane of a returned URL (Requeue, or an expired lease) whose LaneOf is l.
func (l LaneID) ReturnedLane() LaneID {
	if l == robotsHop {
		return robotsHopReturned
	}
	return returned
}

// IsTimed reports whether each URL of the lane has a time before which it is not leased.
func (l LaneID) IsTimed() bool { return l%2 == 0 }

// IsLIFO reports whether the last URL that was put into the lane is the first one out.
func (l LaneID) IsLIFO() bool { return l == robotsHopReturned || l == returned }

// IsRobotsHop reports whether the lane is for robots hops, which no hold stops.
func (l LaneID) IsRobotsHop() bool { return l <= robotsHop }
