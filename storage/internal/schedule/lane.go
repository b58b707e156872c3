package schedule

// A Lane is one of the lines in which the URLs of an origin wait. URLs are
// handed out of the lowest lane that has one to give: robots.txt hops of the
// origin for itself, which no hold stops, then the others class by class. In
// both, what was given back goes first, the latest ahead; and of a class what
// was put off and has come due goes first, for it was there before those that
// still wait.
type Lane uint8

// The lanes. Even ones are Timed, ordered by when their URLs may be handed
// out; the others are ordered as they were filled.
const (
	hopBack   Lane = 1
	hop       Lane = 3 // and hop-1 what was put off
	back      Lane = 5
	firstRank Lane = 7  // the first class; the others follow in steps of two
	Resting   Lane = 14 // pages that wait for their revisit
	Lanes     Lane = 15
)

// usual is the first lane with which resting pages take turns.
const usual = firstRank + 2*2 - 1

// Turns lets pages whose revisit has come take turns with URLs of the lower
// classes, so that neither keeps the other waiting for more than one visit.
type Turns struct {
	Revisited bool // the last of them was a revisit
}

// Rest reports whether it is the turn of a resting page. lane is the first that
// has a URL to give, if any; due says whether the revisit of a page has come.
func (t *Turns) Rest(lane Lane, any, due bool) bool {
	t.Revisited = due && (!any || lane >= usual && !t.Revisited)
	return t.Revisited
}

// LaneOf returns the lane for a new URL of the class, which is 0 to 3; higher
// ones are taken for 3.
func LaneOf(class uint8, isHop bool) Lane {
	if isHop {
		return hop
	}
	return firstRank + 2*Lane(min(class, 3))
}

// Later returns the lane for a URL that was put off, LaneOf being l.
func (l Lane) Later() Lane { return l - 1 }

// Back returns the lane for a URL that was given back, LaneOf being l.
func (l Lane) Back() Lane {
	if l == hop {
		return hopBack
	}
	return back
}

// Timed reports whether the URLs of the lane have times of their own.
func (l Lane) Timed() bool { return l%2 == 0 }

// Stacked reports whether the last URL put into the lane is the first out.
func (l Lane) Stacked() bool { return l == hopBack || l == back }

// IsHop reports whether no hold stops the lane.
func (l Lane) IsHop() bool { return l <= hop }
