package schedule

import (
	"math"
	"time"
)

// Most hosts of a large crawl wait, and until their turn the schedule needs little of
// them. An engine that has them on disk may evict them from the schedule, which then
// keeps an IdleHost of each, a tenth of the size of a Host and its origins. The sums of
// the schedule still count idle hosts.

// An IdleHost is a host that was evicted.
type IdleHost struct {
	Number  uint32 // as the engine counts
	Origins []IdleOrigin

	at      int64 // when its next URL can be handed out
	hold    int64 // when the first of its dormant holds ends
	revisit int64 // when the first of its pages comes due

	queued, dormant, resting int32 // as counted in Schedule
	inTurns                  int32
	inHolds                  int32
	inRests                  int32
	busy                     bool
}

// An IdleOrigin is an origin of an IdleHost.
type IdleOrigin struct {
	Number uint32 // as the engine counts
	Since  int64  // for Restore
}

func (h *IdleHost) before(g *IdleHost) bool { return h.at < g.at }
func (h *IdleHost) place() *int32           { return &h.inTurns }

// idleByHold orders the idle hosts with URLs under a dormant hold.
type idleByHold struct{ *IdleHost }

func (h idleByHold) before(g idleByHold) bool { return h.hold < g.hold }
func (h idleByHold) place() *int32            { return &h.inHolds }

// idleByRevisit orders the idle hosts with resting pages.
type idleByRevisit struct{ *IdleHost }

func (h idleByRevisit) before(g idleByRevisit) bool { return h.revisit < g.revisit }
func (h idleByRevisit) place() *int32               { return &h.inRests }

// idleHosts is all idle hosts.
type idleHosts struct {
	hosts map[uint32]*IdleHost
	turns heap[*IdleHost]
	holds heap[idleByHold]
	rests heap[idleByRevisit]
}

// Evict takes a host without leases, and all its origins that have anything to
// hand out, out of the schedule. number is the host's; numberOf returns that of an
// origin. The engine must not change what they hold until it has called Wake and
// Restore.
func (s *Schedule[Q]) Evict(h *Host[Q], number uint32, numberOf func(Q) uint32) {
	idle := &IdleHost{
		Number: number, Origins: make([]IdleOrigin, 0, len(h.origins)),
		at: h.at, hold: math.MaxInt64, revisit: math.MaxInt64, busy: h.busy,
	}
	for len(h.origins) > 0 {
		o := h.origins[0]
		idle.Origins = append(idle.Origins, IdleOrigin{numberOf(o.Queue), o.since})
		idle.queued += int32(o.queued)
		idle.dormant += int32(o.dormant)
		idle.resting += int32(o.resting)
		if o.dormant > 0 {
			idle.hold = min(idle.hold, Nanos(o.Hold))
		}
		if o.resting > 0 {
			idle.revisit = min(idle.revisit, o.revisit)
		}
		h.origins.take(o)
		s.holds.take(byHold[Q]{o})
		s.rests.take(byRevisit[Q]{o})
	}
	s.turns.take(h)
	if s.idle.hosts == nil {
		s.idle.hosts = make(map[uint32]*IdleHost)
	}
	s.idle.hosts[number] = idle
	s.idle.turns.put(idle)
	if idle.dormant > 0 {
		s.idle.holds.put(idleByHold{idle})
	}
	if idle.resting > 0 {
		s.idle.rests.put(idleByRevisit{idle})
	}
}

// IsEvictable reports whether Evict may be called: no lease of the host is out, origins
// is the number of its origins that have anything to hand out, and the host is first in
// no queue, so that NextIdle does not return it at once.
func (s *Schedule[Q]) IsEvictable(h *Host[Q], origins int) bool {
	if h.Out > 0 || len(h.origins) != origins || origins == 0 || s.turns[0] == h {
		return false
	}
	firstHold := len(s.holds) > 0 && s.holds[0].Host == h
	firstRest := len(s.rests) > 0 && s.rests[0].Host == h
	return !firstHold && !firstRest
}

// Origins calls yield with the origins of the host that have anything to hand out.
func (h *Host[Q]) Origins(yield func(Q) bool) {
	for _, o := range h.origins {
		if !yield(o.Queue) {
			return
		}
	}
}

// Idle returns the idle host with that number, or nil.
func (s *Schedule[Q]) Idle(number uint32) *IdleHost { return s.idle.hosts[number] }

// NextIdle returns an idle host that the engine must wake before it calls Turn or Left,
// so that the schedule knows the first entry of each queue; nil if no host must wake.
// Hosts whose dormant hold has ended by the time of Advance come first.
func (s *Schedule[Q]) NextIdle() *IdleHost {
	idle := &s.idle
	switch {
	case len(idle.turns) > 0 && (len(s.turns) == 0 || idle.turns[0].at < s.turns[0].at):
		return idle.turns[0]
	case len(idle.holds) > 0 && (len(s.holds) == 0 || idle.holds[0].hold < Nanos(s.holds[0].Hold)):
		return idle.holds[0].IdleHost
	case len(idle.rests) > 0 && (len(s.rests) == 0 || idle.rests[0].revisit < s.rests[0].revisit):
		return idle.rests[0].IdleHost
	}
	return nil
}

// Wake takes h out of the idle hosts. The engine must call Restore with each of
// its origins.
func (s *Schedule[Q]) Wake(h *IdleHost) {
	delete(s.idle.hosts, h.Number)
	s.idle.turns.take(h)
	s.idle.holds.take(idleByHold{h})
	s.idle.rests.take(idleByRevisit{h})
	s.Queued -= int(h.queued)
	s.Dormant -= int(h.dormant)
	s.Resting -= int(h.resting)
	if h.busy {
		s.Hosts--
	}
}

// Restore puts an evicted origin back into its former place.
func (s *Schedule[Q]) Restore(o *Origin[Q], since int64) {
	s.Update(o)
	o.since = since // Update sees it as formerly empty
	s.Update(o)
}

// NextOf returns when the next URL of an idle origin can be handed out, as
// Origin.Next does.
func NextOf[Q Queue](o *Origin[Q], since int64) (time.Time, bool) {
	o.since = since
	at, ok := o.next()
	if !ok {
		return time.Time{}, false
	}
	return latest(time.Unix(0, at), o.Host.Due), true
}

// due counts the idle hosts from i down whose time has come.
func (s *idleHosts) due(now int64, i int) int {
	if i >= len(s.turns) || s.turns[i].at > now {
		return 0
	}
	return 1 + s.due(now, 2*i+1) + s.due(now, 2*i+2)
}
