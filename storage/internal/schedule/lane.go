package schedule

import "github.com/decorum-crawler/decorum/storage"

// A LaneID is one of the lines in which the URLs of an origin wait. URLs are
// handed out of the lowest lane that has one to give: robots.txt hops of the
// origin for itself, which no hold stops, then the others class by class. In
// both, what was given back goes first, the latest ahead; and of a class what
// was put off and has come due goes first, for it was there before those that
// still wait.
type LaneID uint8

// The lanes. Even ones are timed, ordered by when their URLs may be handed
// out; the others are ordered as they were filled.
const (
	robotsHopReturned LaneID = 1
	robotsHop         LaneID = 3 // and hop-1 what was put off
	returned          LaneID = 5
	firstClass        LaneID = 7  // the first class; the others follow in steps of two
	AwaitingRevisit   LaneID = 14 // pages that wait for their revisit
	NumLanes          LaneID = 15
)

// firstShared is the first lane with which resting pages take turns.
const firstShared = firstClass + 2*2 - 1

// RevisitAlternation lets pages whose revisit has come take turns with URLs of the lower
// classes, so that neither keeps the other waiting for more than one visit.
type RevisitAlternation struct {
	LastWasRevisit bool // the last of them was a revisit
}

// ChooseRevisit reports whether it is the turn of a resting page. lane is the first that
// has a URL to give, if any; due says whether the revisit of a page has come.
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

// RankOf returns the rank of a new URL in its lane. Hops know none.
func RankOf(e *storage.Entry) int64 {
	if LaneOf(e).IsRobotsHop() {
		return 0
	}
	return int64(e.PriorityRank)
}

// DelayedLane returns the lane for a URL that was put off, LaneOf being l.
func (l LaneID) DelayedLane() LaneID { return l - 1 }

// ReturnedLane returns the lane for a URL that was given back, LaneOf being l.
func (l LaneID) ReturnedLane() LaneID {
	if l == robotsHop {
		return robotsHopReturned
	}
	return returned
}

// IsTimed reports whether the URLs of the lane have times of their own.
func (l LaneID) IsTimed() bool { return l%2 == 0 }

// IsLIFO reports whether the last URL put into the lane is the first out.
func (l LaneID) IsLIFO() bool { return l == robotsHopReturned || l == returned }

// IsRobotsHop reports whether no hold stops the lane.
func (l LaneID) IsRobotsHop() bool { return l <= robotsHop }
