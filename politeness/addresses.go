package politeness

import (
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Calls returns the hosts whose turn it is at the address that they were
// turned away from, and from when on, and forgets that it did. Who waits for an
// address asks after each Release and Leave, and after each refusal: if a host
// does not come within a few seconds, its turn goes to another.
func (l *Limits) Calls() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// Called reports whether it is the host's turn at its address, and from when
// on. It is for who was turned away, and was not ready yet to be called.
func (l *Limits) Called(host string) (from time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.addresses[l.homes[host]]; a != nil {
		from, ok = a.turns[host]
	}
	return from, ok
}

// Addresses returns how many addresses, and homes of hosts, are in memory.
func (l *Limits) Addresses() (addresses, homes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.addresses), len(l.homes)
}

// bind is Permit.Bind.
func (l *Limits) bind(now time.Time, g *grant, addr netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case g.over:
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	case addr == g.addr:
		return nil
	case !l.cfg.limits(addr):
		l.move(now, g.host, netip.Addr{})
		l.unbind(now, g)
		return nil
	}
	l.move(now, g.host, addr)
	if err := l.enter(now, g.host, addr); err != nil {
		return err
	}
	l.unbind(now, g)
	g.addr, g.since = addr, now
	return nil
}

// enter takes a slot on addr. It requires l.mu.
func (l *Limits) enter(now time.Time, host string, addr netip.Addr) error {
	a := l.addresses[addr]
	if a == nil {
		a = newAddress(l.cfg, l.calls)
		l.addresses[addr] = a
	}
	if until, ok := a.enter(now, host); !ok {
		return &Busy{What: "the address " + addr.String(), Until: until}
	}
	return nil
}

// move notes where a host was found; the zero addr means a place without
// limits. It requires l.mu.
func (l *Limits) move(now time.Time, host string, addr netip.Addr) {
	old, known := l.homes[host]
	if known && old == addr {
		return
	}
	l.forfeit(now, host)
	if !addr.IsValid() {
		delete(l.homes, host)
		return
	}
	if len(l.homes) >= l.people {
		l.forgetHomes(now)
		l.people = max(guards, 2*len(l.homes)) // so that a call costs O(1) on average
	}
	l.homes[host] = addr
}

// forfeit lets another have the turn of a host that cannot use it. It requires
// l.mu.
func (l *Limits) forfeit(now time.Time, host string) {
	addr := l.homes[host]
	if a := l.addresses[addr]; a != nil {
		a.leave(host)
		a.call(now)
		l.tidy(now, addr, a)
	}
}

// unbind gives back the slot of a visit that sent nothing. It requires l.mu.
func (l *Limits) unbind(now time.Time, g *grant) {
	if a := l.addresses[g.addr]; a != nil {
		a.taken--
		a.call(now)
		l.tidy(now, g.addr, a)
	}
	g.addr = netip.Addr{}
}

// tidy forgets an address that is of no further use. It requires l.mu.
func (l *Limits) tidy(now time.Time, addr netip.Addr, a *address) {
	if a.idle(now) {
		delete(l.addresses, addr)
	}
}

// forgetHomes drops the addresses whose rest is over, and the homes of hosts
// on addresses that nobody uses: they are found again by visiting them. It
// requires l.mu.
func (l *Limits) forgetHomes(now time.Time) {
	for addr, a := range l.addresses {
		l.tidy(now, addr, a)
	}
	for host, addr := range l.homes {
		if l.addresses[addr] == nil {
			delete(l.homes, host)
		}
	}
}
