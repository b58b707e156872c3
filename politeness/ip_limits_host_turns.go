package politeness

import (
	"cmp"
	"math"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Calls returns the hosts whose turn it is, after they were turned away because
// they share something with others, and from when on, and forgets that it did.
// Who waits asks after each Release, Leave and Ended, after each refusal, and
// when Wake says so: if a host does not come within a few seconds, its turn goes
// to another.
func (l *Limits) Calls() map[string]time.Time {
	l.lock()
	defer l.unlock()
	if len(l.calls) == 0 {
		return nil
	}
	calls := make(map[string]time.Time, len(l.calls))
	for host, from := range l.calls {
		calls[host] = from
	}
	clear(l.calls)
	return calls
}

// Wake receives when there may be new Calls because of what another crawl did.
func (l *Limits) Wake() <-chan struct{} { return l.wake }

// Called reports whether it is the host's turn, and from when on. It is for who
// was turned away, and was not ready yet to be called.
func (l *Limits) Called(host string) (from time.Time, ok bool) {
	l.lock()
	defer l.unlock()
	w := waiter{l, host}
	for _, p := range []*pool{l.hosts.hosts[host], l.hosts.addresses[l.hosts.homes[w]]} {
		if p != nil && p.called(w) {
			return p.turns[w], true
		}
	}
	return time.Time{}, false
}

// bind is Permit.Bind.
func (l *Limits) bind(now time.Time, g *grant, addr netip.Addr) error {
	l.lock()
	defer l.unlock()
	w := waiter{l, g.host}
	switch {
	case g.over:
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	case addr == g.addr:
		return nil
	case !l.hosts.limits(addr):
		l.move(now, w, netip.Addr{})
		l.unbind(now, g)
		return nil
	}
	l.move(now, w, addr)
	if err := l.enter(now, w, addr); err != nil {
		return err
	}
	l.unbind(now, g)
	g.addr, g.since = addr, now
	return nil
}

// enter takes a slot on addr. It requires the lock.
func (l *Limits) enter(now time.Time, w waiter, addr netip.Addr) error {
	a := l.hosts.addresses[addr]
	if a == nil {
		a = &pool{}
		l.hosts.addresses[addr] = a
	}
	if a.demandOf(l) == nil && !l.cfg.Restarted.IsZero() {
		a.due = latest(a.due, l.cfg.Restarted.Add(l.cfg.IPDelay))
	}
	gap, slots := l.atAddress(addr)
	a.setDemand(l, now, gap, slots)
	if until, ok := a.enter(now, w); !ok {
		return &Busy{What: "the address " + addr.String(), Until: until}
	}
	return nil
}

// atAddress returns the limits that the crawl itself sets to visits to addr.
func (l *Limits) atAddress(addr netip.Addr) (gap time.Duration, slots int) {
	if addr.IsLoopback() && !l.cfg.IPLoopback {
		return 0, math.MaxInt
	}
	return l.cfg.IPDelay, cmp.Or(max(l.cfg.IPConcurrency, 0), math.MaxInt)
}

// move notes where a host was found; the zero addr means a place without
// limits. It requires the lock.
func (l *Limits) move(now time.Time, w waiter, addr netip.Addr) {
	h := l.hosts
	old, known := h.homes[w]
	if known && old == addr {
		return
	}
	l.forfeit(now, w)
	if !addr.IsValid() {
		delete(h.homes, w)
		return
	}
	if len(h.homes) >= h.people {
		h.forgetHomes(now)
		h.people = max(guards, 2*len(h.homes)) // so that a call costs O(1) on average
	}
	h.homes[w] = addr
}

// forfeit takes a host out of the line of its address, and lets another have its
// turn. It requires the lock.
func (l *Limits) forfeit(now time.Time, w waiter) {
	addr := l.hosts.homes[w]
	if a := l.hosts.addresses[addr]; a != nil {
		a.leave(w)
		a.call(now)
		l.hosts.tidy(now, addr, a)
	}
}

// unbind gives back the slot of a visit that sent nothing. It requires the lock.
func (l *Limits) unbind(now time.Time, g *grant) {
	if a := l.hosts.addresses[g.addr]; a != nil {
		a.give(l)
		a.rest(now)
		l.hosts.tidy(now, g.addr, a)
	}
	g.addr = netip.Addr{}
}
