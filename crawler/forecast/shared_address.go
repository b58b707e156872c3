package forecast

import (
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// A sharedAddress is what hosts share that one server answers for. Those that find it
// busy stand in line, and only the first of them in the queue: a visit costs the
// same however many wait.
type sharedAddress struct {
	slotFreeTimes slotFreeTimeHeap
	waitingHosts  []*hostState
}

// getOrCreateSharedAddress returns what is shared at a, nil if there is no limit to it.
func (p *simulation) getOrCreateSharedAddress(a netip.Addr) *sharedAddress {
	if !a.IsValid() || p.IPConcurrency <= 0 || a.IsLoopback() && !p.LimitLoopback {
		return nil
	}
	if p.addresses[a] == nil {
		p.addresses[a] = &sharedAddress{slotFreeTimes: slices.Repeat(slotFreeTimeHeap{p.Start}, p.IPConcurrency)}
	}
	return p.addresses[a]
}

// waitForAddressUnlessFree reports whether the address of g, who is first in the queue, has room for
// it. Else g stands in line.
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
	if len(a.waitingHosts) == 0 {
		a.waitingHosts = append(a.waitingHosts, g)
	}
	g.due = a.slotFreeTimes.nextFree()
	heap.Fix(&p.hostQueue, g.heapIndex)
	return false
}

// endWaitForAddress ends the waiting of g, and calls the next in line.
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
