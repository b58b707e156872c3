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

// TakeGrantedTurns returns the hosts whose turn it is, after they were turned away because
// they share something with others, and from when on, and forgets that it did.
// Who waits asks after each ReleaseUnused, ReleaseAfterTransfer and SetNextVisitAndCountBytes, after each refusal, and
// when ReadyHostsChanged says so: if a host does not come within a few seconds, its turn goes
// to another.
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

// ReadyHostsChanged receives when TakeGrantedTurns may have new hosts because of what another crawl did.
func (l *Limiter) ReadyHostsChanged() <-chan struct{} { return l.readyHostsChanged }

// GrantedTurnStart reports whether it is the host's turn, and from when on. It is for who
// was turned away, and was not ready yet to be called.
func (l *Limiter) GrantedTurnStart(host string) (from time.Time, ok bool) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	w := crawlHostKey{l, host}
	for _, p := range []*visitThrottle{l.sharedHosts.throttlesByHost[host], l.sharedHosts.throttlesByAddr[l.sharedHosts.lastAddrByHost[w]]} {
		if p != nil && p.isGranted(w) {
			return p.earliestStartByGrantee[w], true
		}
	}
	return time.Time{}, false
}

// claimServerAddr is Permit.ClaimServerAddr.
func (l *Limiter) claimServerAddr(now time.Time, g *issuedPermit, addr netip.Addr) error {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	w := crawlHostKey{l, g.host}
	switch {
	case g.ended:
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	case addr == g.slotAddr:
		return nil
	case !l.sharedHosts.hasLimitsForAddr(addr):
		l.setHostAddr(now, w, netip.Addr{})
		l.releaseUnusedAddrSlot(now, g)
		return nil
	}
	l.setHostAddr(now, w, addr)
	if d := l.acquireAddr(now, w, addr); d.Action != decorum.Proceed {
		return d.Err()
	}
	l.releaseUnusedAddrSlot(now, g)
	g.slotAddr, g.addrBoundAt = addr, now
	return nil
}

// acquireAddr takes a slot on addr. It requires the lock.
func (l *Limiter) acquireAddr(now time.Time, w crawlHostKey, addr netip.Addr) decorum.Decision {
	a := l.sharedHosts.throttlesByAddr[addr]
	if a == nil {
		a = &visitThrottle{}
		l.sharedHosts.throttlesByAddr[addr] = a
	}
	if a.findCrawlRequirement(l) == nil && !l.cfg.RestartedAt.IsZero() {
		a.dueAt = timecmp.Later(a.dueAt, l.cfg.RestartedAt.Add(l.cfg.IPDelay))
	}
	delay, slots := l.addrLimits(addr)
	a.setRequiredDelayAndSlots(l, now, delay, slots)
	if until, ok := a.acquireOrEnqueue(now, w); !ok {
		return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonAddressBusy, Until: until, Detail: addr.String()}
	}
	return decorum.Decision{}
}

// addrLimits returns the limits that the crawl itself sets to visits to addr.
func (l *Limiter) addrLimits(addr netip.Addr) (delay time.Duration, slots int) {
	if addr.IsLoopback() && !l.cfg.LimitLoopback {
		return 0, math.MaxInt
	}
	return l.cfg.IPDelay, cmp.Or(max(l.cfg.IPConcurrency, 0), math.MaxInt)
}

// setHostAddr notes where a host was found; the zero addr means a place without
// limits. It requires the lock.
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
		h.addrPruneSize = max(pruneThreshold, 2*len(h.lastAddrByHost)) // so that a call costs O(1) on average
	}
	h.lastAddrByHost[w] = addr
}

// giveUpAddrTurn takes a host out of the line of its address, and lets another have its
// turn. It requires the lock.
func (l *Limiter) giveUpAddrTurn(now time.Time, w crawlHostKey) {
	addr := l.sharedHosts.lastAddrByHost[w]
	if a := l.sharedHosts.throttlesByAddr[addr]; a != nil {
		a.removeWaiter(w)
		a.grantSlots(now)
		l.sharedHosts.pruneAddr(now, addr, a)
	}
}

// releaseUnusedAddrSlot gives back the slot of a visit that sent nothing. It requires the lock.
func (l *Limiter) releaseUnusedAddrSlot(now time.Time, g *issuedPermit) {
	if a := l.sharedHosts.throttlesByAddr[g.slotAddr]; a != nil {
		a.removeActiveVisit(l)
		a.postponeAndGrantSlots(now)
		l.sharedHosts.pruneAddr(now, g.slotAddr, a)
	}
	g.slotAddr = netip.Addr{}
}
