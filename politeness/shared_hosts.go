package politeness

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// pruneThreshold is how many hosts, or addresses, are remembered before those that are
// due anyway begin to be forgotten.
const pruneThreshold = 4096

// SharedHosts is what is known, in one process, of hosts and of the addresses that
// they share: the second guard of every rest. Crawls that visit the same hosts
// share one, each by its own NewLimiter. Then a host is visited at the pace of the
// slowest of those that visit it at the same time, who was turned away since the
// last visit goes before who had it, and what a visit of one has earned holds
// for all. Its methods may be called at the same time.
type SharedHosts struct {
	// mu guards the fields below, the table of hosts and that of addresses, each visitThrottle
	// in them with its line of those who wait, and what is said to be guarded by it in each
	// Limiter and permit. Every method of a Limiter or a Permit that uses them takes it once, and
	// holds it to its end. See the package comment for the order of locks.
	mu               sync.Mutex
	crawlCount       int           // that have NewLimiter
	maxDemandedDelay time.Duration // the longest that any of them has asked for: a visit matters for so long

	throttlesByHost map[string]*visitThrottle
	hostPruneSize   int // so many hosts, and those that are due anyway are forgotten

	throttlesByAddr map[netip.Addr]*visitThrottle // those in use, and those that rest
	lastAddrByHost  map[crawlHostKey]netip.Addr   // of hosts that were visited, or turned away there
	addrPruneSize   int                           // so many homes, and those of no further use are forgotten
	hasAddrLimits   bool                          // some crawl limits the visits to an address
	limitsLoopback  bool                          // to loopback addresses too

	breaker              *NetworkBreaker      // of the process
	localOverloadLimiter LocalOverloadLimiter // likewise

	limitersToWake []*Limiter // crawls that were called since the lock was taken
}

// NewSharedHosts returns what crawls share that know of no host yet.
func NewSharedHosts() *SharedHosts {
	return &SharedHosts{breaker: newNetworkBreaker(), throttlesByHost: map[string]*visitThrottle{}, hostPruneSize: pruneThreshold,
		throttlesByAddr: map[netip.Addr]*visitThrottle{}, lastAddrByHost: map[crawlHostKey]netip.Addr{}, addrPruneSize: pruneThreshold}
}

// NewLimiter returns the limiters for cfg, of one more crawl that shares h.
func (h *SharedHosts) NewLimiter(cfg LimiterConfig) *Limiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.crawlCount++
	h.maxDemandedDelay = max(h.maxDemandedDelay, cfg.IPDelay)
	if cfg.IPConcurrency > 0 || cfg.IPDelay > 0 {
		h.hasAddrLimits, h.limitsLoopback = true, h.limitsLoopback || cfg.LimitLoopback
	}
	return newLimiter(h, cfg)
}

// hasLimitsForAddr reports whether some crawl limits the visits to addr.
func (h *SharedHosts) hasLimitsForAddr(addr netip.Addr) bool {
	return h.hasAddrLimits && (h.limitsLoopback || !addr.IsLoopback())
}

// getOrCreateHost returns what is known of a host. It requires h.mu.
func (h *SharedHosts) getOrCreateHost(now time.Time, host string) *visitThrottle {
	p := h.throttlesByHost[host]
	if p == nil {
		if len(h.throttlesByHost) >= h.hostPruneSize {
			maps.DeleteFunc(h.throttlesByHost, func(_ string, p *visitThrottle) bool { return h.isForgettable(p, now) })
			h.hostPruneSize = max(pruneThreshold, 2*len(h.throttlesByHost)) // so that a call costs O(1) on average
		}
		p = &visitThrottle{skipsCrawlsWithoutWorker: true}
		h.throttlesByHost[host] = p
	}
	return p
}

// isForgettable reports whether there is nothing to remember of p: no crawl would be
// let in later for it, or is. It requires h.mu.
func (h *SharedHosts) isForgettable(p *visitThrottle, now time.Time) bool {
	p.expireRequirementsAndUpdateLimits(now)
	if h.crawlCount <= 1 {
		return p.isIdleAndDue(now)
	}
	return p.isIdleAndDue(now) && len(p.crawlRequirements) == 0 && !p.lastEnd.Add(h.maxDemandedDelay).After(now)
}

// pruneAddr forgets an address that is of no further use. It requires h.mu.
func (h *SharedHosts) pruneAddr(now time.Time, addr netip.Addr, p *visitThrottle) {
	if h.isForgettable(p, now) {
		delete(h.throttlesByAddr, addr)
	}
}

// pruneAddrs drops the addresses whose rest is over, and the homes of hosts
// on addresses that nobody uses: they are found again by visiting them. It
// requires h.mu.
func (h *SharedHosts) pruneAddrs(now time.Time) {
	maps.DeleteFunc(h.throttlesByAddr, func(_ netip.Addr, p *visitThrottle) bool {
		return h.isForgettable(p, now)
	})
	maps.DeleteFunc(h.lastAddrByHost, func(_ crawlHostKey, addr netip.Addr) bool { return h.throttlesByAddr[addr] == nil })
}

// SetWorkers says how many visits at a time the crawl can make: not many more
// hosts are kept for it, while other crawls wait for them. 0: any number.
func (l *Limiter) SetWorkers(n int) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	l.workerCount = n
}

// hostsPerWorker is for how many hosts a worker is kept busy: while it visits one, the
// rests of the others go by.
const hostsPerWorker = 4

// hasWorkerForAnotherHost reports whether the crawl has a worker for one more host. It requires the
// lock.
func (l *Limiter) hasWorkerForAnotherHost() bool {
	return l.workerCount <= 0 || l.activeOrGrantedVisits < hostsPerWorker*l.workerCount
}

// KnowsHost reports whether anything is remembered of a host. If not, no visit in
// this process has earned it a rest that is not over.
func (l *Limiter) KnowsHost(host string) bool {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return l.sharedHosts.throttlesByHost[host] != nil
}

// PostponeHost lets nobody visit a host before due, because of a visit that another
// process made, nor before the rest that is wished for has passed since ended,
// when its last visit may have ended.
func (l *Limiter) PostponeHost(now time.Time, host string, ended, due time.Time) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	p := l.sharedHosts.getOrCreateHost(now, host)
	p.lastEnd = timecmp.Later(p.lastEnd, ended)
	if due.After(p.dueAt) {
		p.dueAt, p.dueSetBy = due, nil
	}
	p.postponeAndGrantSlots(now)
}

// LeaveSharedHosts ends the part that the crawl has in what it shares: it does not wait
// for a turn any more, and slows nobody. Call it when no visit is under way; one
// of which nobody knows the end has ended now. The Limiter may be used again.
func (l *Limiter) LeaveSharedHosts(now time.Time) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	for _, p := range l.sharedHosts.throttlesByHost {
		p.removeCrawl(l, now)
	}
	for _, p := range l.sharedHosts.throttlesByAddr {
		p.removeCrawl(l, now)
	}
	maps.DeleteFunc(l.sharedHosts.lastAddrByHost, func(w crawlHostKey, _ netip.Addr) bool { return w.crawlLimiter == l })
	clear(l.readyHosts)
}
