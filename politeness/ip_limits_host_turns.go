package politeness

import (
	"cmp"
	"maps"
	"math"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// TakeGrantedTurns returns the hosts of this crawl whose turn has come since the last call, each
// with the earliest start of its visit. These are hosts that Reserve or ClaimServerAddr had refused
// because a shared host or address was busy. Call it after each ReleaseUnused, ReleaseAfterTransfer
// and SetNextVisitAndCountBytes, after each refusal, and when ReadyHostsChanged receives. A host
// that is not reserved within 10 s of its earliest start loses its turn to another.
func (l *Limiter) TakeGrantedTurns() map[string]time.Time {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	if len(l.readyHosts) == 0 {
		return nil
	}
	ready := maps.Clone(l.readyHosts)
	clear(l.readyHosts)
	return ready
}

// ReadyHostsChanged returns a channel that receives when a call of another crawl may have given
// TakeGrantedTurns new hosts.
func (l *Limiter) ReadyHostsChanged() <-chan struct{} { return l.readyHostsChanged }

// GrantedTurnStart reports whether host holds a turn, and its earliest start. A caller uses it
// after it has recorded a refusal, because the turn may have come before the record was there.
func (l *Limiter) GrantedTurnStart(host string) (from time.Time, ok bool) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	w := crawlHostKey{l, host}
	for _, p := range []*visitThrottle{l.sharedHosts.throttlesByHost[host],
		l.sharedHosts.throttlesByAddr[l.sharedHosts.lastAddrByHost[w]]} {
		if p != nil && p.isGranted(w) {
			return p.earliestStartByGrantee[w], true
		}
	}
	return time.Time{}, false
}

// claimServerAddr implements Permit.ClaimServerAddr for the permit g.
func (l *Limiter) claimServerAddr(now time.Time, g *issuedPermit, addr netip.Addr) error {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	w := crawlHostKey{l, g.host}
	switch {
	case g.ended:
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	// The visit has this address's slot already, from Reserve or from an earlier call.
	case addr == g.slotAddr:
		return nil
	// An address without limits needs no slot. The one that Reserve took for the host's last
	// address goes back.
	case !l.sharedHosts.hasLimitsForAddr(addr):
		l.setHostAddr(now, w, netip.Addr{})
		l.releaseUnusedAddrSlot(now, g)
		return nil
	}
	// Take the new slot before the slot of the host's last address goes back.
	l.setHostAddr(now, w, addr)
	if d := l.acquireAddr(now, w, addr); d.Action != decorum.Proceed {
		return d.Err()
	}
	l.releaseUnusedAddrSlot(now, g)
	g.slotAddr, g.addrBoundAt = addr, now
	return nil
}

// acquireAddr takes a slot of addr, or adds w to its waitlist and returns a Decision to Postpone.
// The caller holds SharedHosts.mu.
func (l *Limiter) acquireAddr(now time.Time, w crawlHostKey, addr netip.Addr) decorum.Decision {
	a := l.sharedHosts.throttlesByAddr[addr]
	if a == nil {
		a = &visitThrottle{}
		l.sharedHosts.throttlesByAddr[addr] = a
	}
	// After a restart, an earlier process may have visited the address just before RestartedAt.
	if a.findCrawlRequirement(l) == nil && !l.cfg.RestartedAt.IsZero() {
		a.dueAt = timecmp.Later(a.dueAt, l.cfg.RestartedAt.Add(l.cfg.IPDelay))
	}
	delay, slots := l.addrLimits(addr)
	a.setRequiredDelayAndSlots(l, now, delay, slots)
	if until, ok := a.acquireOrEnqueue(now, w); !ok {
		return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonAddressBusy,
			Until: until, Detail: addr.String()}
	}
	return decorum.Decision{}
}

// addrLimits returns this crawl's own limits for visits to addr.
func (l *Limiter) addrLimits(addr netip.Addr) (delay time.Duration, slots int) {
	if addr.IsLoopback() && !l.cfg.LimitLoopback {
		return 0, math.MaxInt
	}
	return l.cfg.IPDelay, cmp.Or(max(l.cfg.IPConcurrency, 0), math.MaxInt)
}

// setHostAddr records the address of w's host. The zero addr stands for an address without limits.
// The caller holds SharedHosts.mu.
func (l *Limiter) setHostAddr(now time.Time, w crawlHostKey, addr netip.Addr) {
	h := l.sharedHosts
	old, known := h.lastAddrByHost[w]
	if known && old == addr {
		return
	}
	l.giveUpAddrTurn(now, w)
	if !addr.IsValid() {
		delete(h.lastAddrByHost, w)
		return
	}
	if len(h.lastAddrByHost) >= h.addrPruneSize {
		h.pruneAddrs(now)
		h.addrPruneSize = max(pruneThreshold, 2*len(h.lastAddrByHost)) // a call costs O(1) on average
	}
	h.lastAddrByHost[w] = addr
}

// giveUpAddrTurn removes w from the waitlist of its host's last address, and grants its turn there
// to others. The caller holds SharedHosts.mu.
func (l *Limiter) giveUpAddrTurn(now time.Time, w crawlHostKey) {
	addr := l.sharedHosts.lastAddrByHost[w]
	if a := l.sharedHosts.throttlesByAddr[addr]; a != nil {
		a.removeWaiter(w)
		a.grantSlots(now)
		l.sharedHosts.pruneAddr(now, addr, a)
	}
}

// releaseUnusedAddrSlot returns g's address slot without a rest, because g's visit sent nothing to
// that address. The caller holds SharedHosts.mu.
func (l *Limiter) releaseUnusedAddrSlot(now time.Time, g *issuedPermit) {
	if a := l.sharedHosts.throttlesByAddr[g.slotAddr]; a != nil {
		a.removeActiveVisit(l)
		a.postponeAndGrantSlots(now)
		l.sharedHosts.pruneAddr(now, g.slotAddr, a)
	}
	g.slotAddr = netip.Addr{}
}
