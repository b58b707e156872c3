package forecast

import (
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// A sharedAddress is the state of an IP address that several hosts may share. Hosts that find it busy
// wait in waitingHosts, and only the first of them is in the simulation's hostQueue, so that a visit
// takes the same time however many hosts wait.
type sharedAddress struct {
	slotFreeTimes slotFreeTimeHeap
	waitingHosts  []*hostState // in the order in which they found the address busy
}

// getOrCreateSharedAddress returns the state of the address a, or nil if no limit applies to it.
func (p *simulation) getOrCreateSharedAddress(a netip.Addr) *sharedAddress {
	if !a.IsValid() || p.IPConcurrency <= 0 || a.IsLoopback() && !p.LimitLoopback {
		return nil
	}
	if p.addresses[a] == nil {
		p.addresses[a] = &sharedAddress{slotFreeTimes: slices.Repeat(slotFreeTimeHeap{p.Start}, p.IPConcurrency)}
	}
	return p.addresses[a]
}

// waitForAddressUnlessFree reports whether the address of g, the first host in the queue, is free at
// the time at. If it is busy, g waits for it.
func (p *simulation) waitForAddressUnlessFree(g *hostState, at time.Time) bool {
	a := g.sharedAddress
	switch {
	case a == nil:
		return true
	case len(a.waitingHosts) > 0 && a.waitingHosts[0] != g:
		a.waitingHosts = append(a.waitingHosts, heap.Remove(&p.hostQueue, g.heapIndex).(*hostState))
		return false
	case !a.slotFreeTimes.nextFree().After(at):
		return true
	}
	// g is the first host to wait, and stays in the queue until the address is free.
	if len(a.waitingHosts) == 0 {
		a.waitingHosts = append(a.waitingHosts, g)
	}
	g.due = a.slotFreeTimes.nextFree()
	heap.Fix(&p.hostQueue, g.heapIndex)
	return false
}

// endWaitForAddress removes g from the waiting hosts if it is the first, and queues the next one.
func (p *simulation) endWaitForAddress(g *hostState) {
	a := g.sharedAddress
	if a == nil || len(a.waitingHosts) == 0 || a.waitingHosts[0] != g {
		return
	}
	if a.waitingHosts = a.waitingHosts[1:]; len(a.waitingHosts) > 0 {
		next := a.waitingHosts[0]
		next.due = timecmp.Later(next.due, a.slotFreeTimes.nextFree())
		heap.Push(&p.hostQueue, next)
	}
}
