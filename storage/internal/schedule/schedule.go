// Package schedule knows whose turn it is: the clocks of hosts, the holds of
// origins, the slots and the leases that are out, for the engines that keep
// their state in one process. It holds no URLs (a Queue does), reads no clock,
// and locks nothing: its caller does.
//
// Each verb costs at most the logarithm of the number of hosts.
package schedule

import (
	"math"
	"time"
)

// A Clock is what is remembered of a host: storage.Host, field by field.
type Clock struct {
	Due     time.Time
	Gap     time.Duration
	Slots   int
	Strikes int
	Memo    []byte
}

// A Queue is what waits for one origin, as far as a Schedule must know it.
// Times are what Nanos returns.
type Queue interface {
	// Len returns how many URLs wait but for resting ones, and how many of
	// them are in hop lanes.
	Len() (all, hops int)
	// Resting returns how many pages wait for their revisit, and when the
	// first of them comes.
	Resting() (n int, first int64)
	// Ready returns from when on a URL of the hop lanes, or of the others,
	// may be handed out, and false if there is none.
	Ready(hops bool) (at int64, ok bool)
}

// A Tally counts what waits in the lanes of a Queue, without resting pages.
type Tally struct {
	All  int
	Hops int // of All, in hop lanes
}

// Count counts n more in a lane.
func (t *Tally) Count(l Lane, n int) {
	if l == Resting {
		return
	}
	t.All += n
	if l.IsHop() {
		t.Hops += n
	}
}

// Len is that of Queue.
func (t *Tally) Len() (all, hops int) { return t.All, t.Hops }

// An Origin is a queue and what holds it. There are many: times that only the
// schedule reads are what Nanos returns, which takes a third of the room.
type Origin[Q Queue] struct {
	Queue   Q
	Host    *Host[Q]
	Hold    time.Time // nothing but hops before
	Dormant bool      // nobody should wait for the end of the hold

	at      int64 // when its next URL can be handed out
	since   int64 // last served, or found empty: who waited longer goes first
	queued  int   // as counted in Host and Schedule
	dormant int   // of them, under a dormant hold
	resting int   // as counted in Schedule
	revisit int64

	inHost  int32
	inHolds int32
	inRests int32
}

func (o *Origin[Q]) before(p *Origin[Q]) bool { return o.at < p.at }
func (o *Origin[Q]) place() *int32            { return &o.inHost }

// Next returns when the next URL of the origin can be handed out were there a
// slot of the host; false if there is none.
func (o *Origin[Q]) Next() (time.Time, bool) {
	if o.inHost == 0 {
		return time.Time{}, false
	}
	return latest(time.Unix(0, o.at), o.Host.Due), true
}

// byHold orders the origins under a dormant hold.
type byHold[Q Queue] struct{ *Origin[Q] }

func (o byHold[Q]) before(p byHold[Q]) bool { return o.Hold.Before(p.Hold) }
func (o byHold[Q]) place() *int32           { return &o.inHolds }

// byRevisit orders the origins with resting pages.
type byRevisit[Q Queue] struct{ *Origin[Q] }

func (o byRevisit[Q]) before(p byRevisit[Q]) bool { return o.revisit < p.revisit }
func (o byRevisit[Q]) place() *int32              { return &o.inRests }

// A Host is to whom politeness is owed, for all its origins together.
type Host[Q Queue] struct {
	Clock
	Out int // leases

	origins heap[*Origin[Q]] // with URLs to hand out, now or some time
	queued  int
	at      int64 // when its next URL can be handed out
	inTurns int32
	busy    bool // counted in Schedule.Hosts
}

func (h *Host[Q]) before(g *Host[Q]) bool { return h.at < g.at }
func (h *Host[Q]) place() *int32          { return &h.inTurns }

// A Lease is a URL that is out.
type Lease[Q Queue] struct {
	Token   uint64
	Origin  *Origin[Q]
	Expires time.Time
	inOut   int32
}

// Of leases that run out together the latest goes back first, so that the
// earliest ends at the head of the queue.
func (l *Lease[Q]) before(m *Lease[Q]) bool {
	if l.Expires.Equal(m.Expires) {
		return l.Token > m.Token
	}
	return l.Expires.Before(m.Expires)
}
func (l *Lease[Q]) place() *int32 { return &l.inOut }

// A Schedule is all hosts. The zero value is ready for use.
type Schedule[Q Queue] struct {
	Hosts   int // with at least one URL queued or out
	Queued  int
	Dormant int // of Queued, under a dormant hold
	Resting int

	now   time.Time       // the latest it was told
	turns heap[*Host[Q]]  // hosts with a URL to hand out and a slot free
	holds heap[byHold[Q]] // origins with URLs under a dormant hold
	rests heap[byRevisit[Q]]
	out   heap[*Lease[Q]] // by when they run out
	idle  idleHosts
}

// Now returns the latest time the schedule was told.
func (s *Schedule[Q]) Now() time.Time { return s.now }

// Advance tells the schedule the time. Time does not run backwards.
func (s *Schedule[Q]) Advance(now time.Time) {
	if now.After(s.now) {
		s.now = now
	}
	for len(s.holds) > 0 && !s.holds[0].Hold.After(s.now) {
		s.Update(s.holds[0].Origin)
	}
}

// Expired ends the next lease that ran out, lets its host rest, and returns
// it; nil if there is none.
func (s *Schedule[Q]) Expired(now time.Time) *Lease[Q] {
	if len(s.out) == 0 || s.out[0].Expires.After(now) {
		return nil
	}
	l := s.out[0]
	h := l.Origin.Host
	h.Rest(l.Expires.Add(h.Gap))
	s.End(l)
	return l
}

// Turn returns the origin whose turn it is; nil if no host is due. If the
// origin is held, a URL of its hop lanes is due.
func (s *Schedule[Q]) Turn(now time.Time) *Origin[Q] {
	if len(s.turns) == 0 || s.turns[0].at > Nanos(now) {
		return nil
	}
	return s.turns[0].origins[0]
}

// Begin takes a slot for a URL that was taken out of the origin's queue.
func (s *Schedule[Q]) Begin(o *Origin[Q], token uint64, now, expires time.Time) *Lease[Q] {
	l := &Lease[Q]{Token: token, Origin: o, Expires: expires}
	s.out.put(l)
	o.Host.Out++
	o.since = Nanos(now)
	s.Update(o)
	return l
}

// Renew lets the lease run until expires.
func (s *Schedule[Q]) Renew(l *Lease[Q], expires time.Time) {
	l.Expires = expires
	s.out.put(l)
}

// End gives the lease's slot free.
func (s *Schedule[Q]) End(l *Lease[Q]) {
	s.out.take(l)
	l.Origin.Host.Out--
	s.Update(l.Origin)
}

// Nanos returns t in nanoseconds since 1970. What an int64 cannot hold, years
// before 1678 and after 2261, becomes the nearest it can.
func Nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// Leased returns how many leases are out.
func (s *Schedule[Q]) Leased() int { return len(s.out) }

// Set gives the host a new clock. Due does not move back. An Update of one of
// its origins must follow.
func (h *Host[Q]) Set(c Clock) {
	due := h.Due
	h.Clock = c
	h.Rest(due)
}

// Rest moves Due to t unless it is later. An Update must follow.
func (h *Host[Q]) Rest(t time.Time) {
	if t.After(h.Due) {
		h.Due = t
	}
}
