package forecast

import (
	"container/heap"
	"net/netip"
	"time"
)

// An address is what hosts share that one server answers for. Those that find it
// busy stand in line, and only the first of them in the queue: a visit costs the
// same however many wait.
type address struct {
	slots   lanes
	waiting []*guest
}

// addressOf returns what is shared at a, nil if there is no limit to it.
func (p *play) addressOf(a netip.Addr) *address {
	if !a.IsValid() || p.AddressSlots <= 0 || a.IsLoopback() && !p.Loopback {
		return nil
	}
	if p.addresses[a] == nil {
		p.addresses[a] = &address{slots: newLanes(p.AddressSlots, p.Start)}
	}
	return p.addresses[a]
}

// enter reports whether the address of g, who is first in the queue, has room for
// it. Else g stands in line.
func (p *play) enter(g *guest, at time.Time) bool {
	a := g.address
	switch {
	case a == nil:
		return true
	case len(a.waiting) > 0 && a.waiting[0] != g:
		a.waiting = append(a.waiting, heap.Remove(&p.queue, g.place).(*guest))
		return false
	case !a.slots.first().After(at):
		return true
	}
	if len(a.waiting) == 0 {
		a.waiting = append(a.waiting, g)
	}
	g.due = a.slots.first()
	heap.Fix(&p.queue, g.place)
	return false
}

// leave ends the waiting of g, and calls the next in line.
func (p *play) leave(g *guest) {
	a := g.address
	if a == nil || len(a.waiting) == 0 || a.waiting[0] != g {
		return
	}
	if a.waiting = a.waiting[1:]; len(a.waiting) > 0 {
		next := a.waiting[0]
		next.due = latest(next.due, a.slots.first())
		heap.Push(&p.queue, next)
	}
}
