package politeness

import (
	"net/netip"
	"sync"
	"time"
)

// guards is how many hosts, or addresses, are remembered before those that are
// due anyway begin to be forgotten.
const guards = 4096

// Hosts is what is known, in one process, of hosts and of the addresses that
// they share: the second guard of every rest. Crawls that visit the same hosts
// share one, each by its own Limits. Then a host is visited at the pace of the
// slowest of those that visit it at the same time, who was turned away since the
// last visit goes before who had it, and what a visit of one has earned holds
// for all. Its methods may be called at the same time.
type Hosts struct {
	mu     sync.Mutex
	crawls int           // that have Limits
	gap    time.Duration // the longest that any of them has asked for: a visit matters for so long

	hosts map[string]*pool
	crowd int // so many hosts, and those that are due anyway are forgotten

	addresses map[netip.Addr]*pool  // those in use, and those that rest
	homes     map[waiter]netip.Addr // of hosts that were visited, or turned away there
	people    int                   // so many homes, and those of no further use are forgotten
	limited   bool                  // some crawl limits the visits to an address
	loopback  bool                  // to loopback addresses too

	breaker *Breaker // of the process
	load    Load     // likewise

	rung []*Limits // crawls that were called since the lock was taken
}

// NewHosts returns what crawls share that know of no host yet.
func NewHosts() *Hosts {
	return &Hosts{breaker: newBreaker(), hosts: map[string]*pool{}, crowd: guards,
		addresses: map[netip.Addr]*pool{}, homes: map[waiter]netip.Addr{}, people: guards}
}

// Limits returns the limiters for cfg, of one more crawl that shares h.
func (h *Hosts) Limits(cfg LimitsConfig) *Limits {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.crawls++
	h.gap = max(h.gap, cfg.IPDelay)
	if cfg.IPConcurrency > 0 || cfg.IPDelay > 0 {
		h.limited, h.loopback = true, h.loopback || cfg.IPLoopback
	}
	return newLimits(h, cfg)
}

// limits reports whether some crawl limits the visits to addr.
func (h *Hosts) limits(addr netip.Addr) bool {
	return h.limited && (h.loopback || !addr.IsLoopback())
}

// meet returns what is known of a host. It requires h.mu.
func (h *Hosts) meet(now time.Time, host string) *pool {
	p := h.hosts[host]
	if p == nil {
		if len(h.hosts) >= h.crowd {
			h.forget(now)
			h.crowd = max(guards, 2*len(h.hosts)) // so that a call costs O(1) on average
		}
		p = &pool{staff: true}
		h.hosts[host] = p
	}
	return p
}

// spent reports whether there is nothing to remember of p: no crawl would be
// let in later for it, or is. It requires h.mu.
func (h *Hosts) spent(p *pool, now time.Time) bool {
	p.settle(now)
	if h.crawls <= 1 {
		return p.idle(now)
	}
	return p.idle(now) && len(p.claims) == 0 && !p.ended.Add(h.gap).After(now)
}

// forget drops the hosts that are due anyway. It requires h.mu.
func (h *Hosts) forget(now time.Time) {
	for host, p := range h.hosts {
		if h.spent(p, now) {
			delete(h.hosts, host)
		}
	}
}

// tidy forgets an address that is of no further use. It requires h.mu.
func (h *Hosts) tidy(now time.Time, addr netip.Addr, p *pool) {
	if h.spent(p, now) {
		delete(h.addresses, addr)
	}
}

// forgetHomes drops the addresses whose rest is over, and the homes of hosts
// on addresses that nobody uses: they are found again by visiting them. It
// requires h.mu.
func (h *Hosts) forgetHomes(now time.Time) {
	for addr, p := range h.addresses {
		h.tidy(now, addr, p)
	}
	for w, addr := range h.homes {
		if h.addresses[addr] == nil {
			delete(h.homes, w)
		}
	}
}
