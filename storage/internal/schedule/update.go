package schedule

import "time"

// Update takes note that the origin's queue, hold or host has changed.
func (s *Schedule[Q]) Update(o *Origin[Q]) {
	s.count(o)
	h := o.Host
	if at, ok := o.next(); ok {
		o.at = at
		h.origins.put(o)
	} else {
		h.origins.take(o)
	}
	s.seat(h)
}

// count brings the sums up to date.
func (s *Schedule[Q]) count(o *Origin[Q]) {
	all, hops := o.Queue.Len()
	if o.queued == 0 && all > 0 {
		o.since = max(o.since, Nanos(s.now))
	}
	s.Queued += all - o.queued
	o.Host.queued += all - o.queued
	o.queued = all

	dormant := 0
	if o.Dormant && o.Hold.After(s.now) {
		dormant = all - hops
	}
	s.Dormant += dormant - o.dormant
	o.dormant = dormant
	if dormant > 0 {
		s.holds.put(byHold[Q]{o})
	} else {
		s.holds.take(byHold[Q]{o})
	}
	s.countResting(o)
}

// countResting does the same for pages that wait for their revisit.
func (s *Schedule[Q]) countResting(o *Origin[Q]) {
	n, first := o.Queue.Resting()
	s.Resting += n - o.resting
	o.resting = n
	if n == 0 {
		s.rests.take(byRevisit[Q]{o})
		return
	}
	o.revisit = first
	if o.Dormant {
		o.revisit = max(first, Nanos(o.Hold))
	}
	s.rests.put(byRevisit[Q]{o})
}

// next returns when the next URL of the origin can be handed out. It is not
// earlier than its last turn, so that origins and hosts that are due take turns.
func (o *Origin[Q]) next() (int64, bool) {
	at, ok := o.Queue.Ready(false)
	if ok {
		at = max(at, Nanos(o.Hold))
	}
	if hop, any := o.Queue.Ready(true); any && (!ok || hop < at) {
		at, ok = hop, true
	}
	return max(at, o.since), ok
}

// seat gives the host its place among those that wait for their turn.
func (s *Schedule[Q]) seat(h *Host[Q]) {
	if busy := h.queued+h.Out > 0; busy != h.busy {
		h.busy = busy
		if busy {
			s.Hosts++
		} else {
			s.Hosts--
		}
	}
	if len(h.origins) == 0 || h.Out >= max(h.Slots, 1) {
		s.turns.take(h)
		return
	}
	h.at = max(Nanos(h.Due), h.origins[0].at)
	s.turns.put(h)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// A Left is storage.Left.
type Left uint8

// What may be left.
const (
	Nothing Left = iota
	OnlyResting
	Dormant
	Waiting
)

// Left returns what is left, and when to ask again.
func (s *Schedule[Q]) Left() (Left, time.Time) {
	switch revisit := len(s.rests) > 0 && s.rests[0].revisit <= Nanos(s.now); {
	case len(s.out) > 0 && (len(s.turns) == 0 || Nanos(s.out[0].Expires) < s.turns[0].at):
		return Waiting, s.out[0].Expires
	case len(s.out) > 0 || s.Queued > s.Dormant || revisit:
		return Waiting, time.Unix(0, s.turns[0].at)
	case s.Dormant > 0:
		return Dormant, s.holds[0].Hold
	case len(s.rests) > 0:
		return OnlyResting, time.Unix(0, s.rests[0].revisit)
	}
	return Nothing, time.Time{}
}

// Due counts the hosts that could be given a lease at the latest time known:
// 1970, where since begins, if it was told none.
func (s *Schedule[Q]) Due() int {
	now := max(0, Nanos(s.now))
	return due(s.turns, now, 0) + s.idle.due(now, 0)
}

// due counts the hosts of the heap from i down whose time has come. Below one
// whose time has not, there is none.
func due[Q Queue](turns heap[*Host[Q]], now int64, i int) int {
	if i >= len(turns) || turns[i].at > now {
		return 0
	}
	return 1 + due(turns, now, 2*i+1) + due(turns, now, 2*i+2)
}
