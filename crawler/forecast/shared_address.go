package forecast

import (
	"container/heap"
	"net/netip"
	"time"
)

// A sharedAddress is what hosts share that one server answers for. Those that find it
// busy stand in line, and only the first of them in the queue: a visit costs the
// same however many wait.
type sharedAddress struct {
	slots   slotHeap
	waiting []*hostState
}

// getOrCreateSharedAddress returns what is shared at a, nil if there is no limit to it.
func (p *simulation) getOrCreateSharedAddress(a netip.Addr) *sharedAddress {
	if !a.IsValid() || p.IPConcurrency <= 0 || a.IsLoopback() && !p.IPLoopback {
		return nil
	}
	if p.addresses[a] == nil {
		p.addresses[a] = &sharedAddress{slots: newSlotHeap(p.IPConcurrency, p.Start)}
	}
	return p.addresses[a]
}

// queueUnlessAddressFree reports whether the address of g, who is first in the queue, has room for
// it. Else g stands in line.
func (p *simulation) queueUnlessAddressFree(g *hostState, at time.Time) bool {
	a := g.address
	switch {
	case a == nil:
		return true
	case len(a.waiting) > 0 && a.waiting[0] != g:
		a.waiting = append(a.waiting, heap.Remove(&p.queue, g.heapIndex).(*hostState))
		return false
	case !a.slots.nextFree().After(at):
		return true
	}
	if len(a.waiting) == 0 {
		a.waiting = append(a.waiting, g)
	}
	g.due = a.slots.nextFree()
	heap.Fix(&p.queue, g.heapIndex)
	return false
}

// endAddressWait ends the waiting of g, and calls the next in line.
func (p *simulation) endAddressWait(g *hostState) {
	a := g.address
	if a == nil || len(a.waiting) == 0 || a.waiting[0] != g {
		return
	}
	if a.waiting = a.waiting[1:]; len(a.waiting) > 0 {
		next := a.waiting[0]
		next.due = latestTime(next.due, a.slots.nextFree())
		heap.Push(&p.queue, next)
	}
}
