package politeness

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// pruneThreshold is the size of a table of hosts or addresses from which on entries that no longer
// delay a visit are dropped.
const pruneThreshold = 4096

// SharedHosts holds the hosts and addresses that the crawls of a process share. Each crawl has its
// own Limiter from NewLimiter. A host is then visited at the pace of the slowest of the crawls that
// visit it at the same time. A crawl that was refused since the last visit goes before the crawl
// that made it, and the rest after a visit applies to all crawls. Its methods may be called
// concurrently.
type SharedHosts struct {
	// mu guards every field of SharedHosts, the visitThrottles in throttlesByHost and
	// throttlesByAddr, the mutable fields of each Limiter, and those of each issuedPermit. A method
	// of a Limiter or a Permit takes mu once and holds it until the method returns. See the package
	// comment for the order of locks.
	mu         sync.Mutex
	crawlCount int // number of calls of NewLimiter
	// maxDemandedDelay is the longest delay that any crawl has required. A host is remembered for
	// that long after its last visit.
	maxDemandedDelay time.Duration

	throttlesByHost map[string]*visitThrottle // by decorum.Origin.Host
	hostPruneSize   int                       // size of throttlesByHost at which it is next pruned

	throttlesByAddr map[netip.Addr]*visitThrottle // addresses in use and addresses that rest
	// lastAddrByHost is the address that each crawl last found a host at, as far as the address has
	// limits.
	lastAddrByHost map[crawlHostKey]netip.Addr
	addrPruneSize  int  // size of lastAddrByHost at which both tables of addresses are next pruned
	hasAddrLimits  bool // a crawl limits visits to addresses
	limitsLoopback bool // a crawl limits visits to loopback addresses

	breaker              *NetworkBreaker      // has a lock of its own
	localOverloadLimiter LocalOverloadLimiter // has a lock of its own

	limitersToWake []*Limiter // crawls that were granted turns since mu was taken
}

// NewSharedHosts returns an empty SharedHosts.
func NewSharedHosts() *SharedHosts {
	return &SharedHosts{breaker: newNetworkBreaker(), throttlesByHost: map[string]*visitThrottle{},
		hostPruneSize:   pruneThreshold,
		throttlesByAddr: map[netip.Addr]*visitThrottle{}, lastAddrByHost: map[crawlHostKey]netip.Addr{},
		addrPruneSize: pruneThreshold}
}

// NewLimiter returns the Limiter of one more crawl, which shares the hosts of h.
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

// hasLimitsForAddr reports whether a crawl limits the visits to addr. The caller holds h.mu.
func (h *SharedHosts) hasLimitsForAddr(addr netip.Addr) bool {
	return h.hasAddrLimits && (h.limitsLoopback || !addr.IsLoopback())
}

// getOrCreateHost returns the throttle of host. The caller holds h.mu.
func (h *SharedHosts) getOrCreateHost(now time.Time, host string) *visitThrottle {
	p := h.throttlesByHost[host]
	if p == nil {
		if len(h.throttlesByHost) >= h.hostPruneSize {
			maps.DeleteFunc(h.throttlesByHost, func(_ string, p *visitThrottle) bool { return h.isForgettable(p, now) })
			h.hostPruneSize = max(pruneThreshold, 2*len(h.throttlesByHost)) // a call costs O(1) on average
		}
		p = &visitThrottle{skipsCrawlsWithoutWorker: true}
		h.throttlesByHost[host] = p
	}
	return p
}

// isForgettable reports whether p delays no visit any more, now or after another crawl's
// requirement, so that a new visitThrottle can take its place. The caller holds h.mu.
func (h *SharedHosts) isForgettable(p *visitThrottle, now time.Time) bool {
	p.expireRequirementsAndUpdateLimits(now)
	if h.crawlCount <= 1 {
		return p.isIdleAndDue(now)
	}
	return p.isIdleAndDue(now) && len(p.crawlRequirements) == 0 && !p.lastEnd.Add(h.maxDemandedDelay).After(now)
}

// pruneAddr drops p, the throttle of addr, if it is forgettable. The caller holds h.mu.
func (h *SharedHosts) pruneAddr(now time.Time, addr netip.Addr, p *visitThrottle) {
	if h.isForgettable(p, now) {
		delete(h.throttlesByAddr, addr)
	}
}

// pruneAddrs drops the forgettable addresses, and the last address of each host whose address was
// dropped: the next visit to the host finds it again. The caller holds h.mu.
func (h *SharedHosts) pruneAddrs(now time.Time) {
	maps.DeleteFunc(h.throttlesByAddr, func(_ netip.Addr, p *visitThrottle) bool {
		return h.isForgettable(p, now)
	})
	maps.DeleteFunc(h.lastAddrByHost, func(_ crawlHostKey, addr netip.Addr) bool {
		return h.throttlesByAddr[addr] == nil
	})
}

// SetWorkers sets how many visits at a time the crawl can make; 0: unlimited. While other crawls
// wait for hosts, at most 4 hosts for each worker are reserved for this crawl.
func (l *Limiter) SetWorkers(n int) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	l.workerCount = n
}

// hostsPerWorker is how many hosts keep one worker busy: while it visits one of them, the rests of
// the other three pass.
const hostsPerWorker = 4

// hasWorkerForAnotherHost reports whether the crawl has workers for one more host. The caller holds
// SharedHosts.mu.
func (l *Limiter) hasWorkerForAnotherHost() bool {
	return l.workerCount <= 0 || l.activeOrGrantedVisits < hostsPerWorker*l.workerCount
}

// KnowsHost reports whether this process remembers host. If it does not, no visit of this process
// makes the host rest any longer.
func (l *Limiter) KnowsHost(host string) bool {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return l.sharedHosts.throttlesByHost[host] != nil
}

// PostponeHost takes into account a visit to host that another process made. ended is when that
// visit ended at the latest; the zero time means unknown. No crawl of this process visits the host
// before due, nor before the crawl's own required delay has passed since ended.
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

// SlowDown takes into account a delay that another process has learned of host. It makes no visit
// earlier.
func (l *Limiter) SlowDown(now time.Time, host string, learned time.Duration) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	p := l.sharedHosts.getOrCreateHost(now, host)
	p.learnedPace = newerOf(p.learnedPace, LearnedPace{Delay: learned})
}

// LeaveSharedHosts removes the crawl from all waitlists and its requirements from all hosts, so
// that it slows no other crawl. Call it when no visit is under way: it treats a visit whose end was
// not reported as ended now. The Limiter may be used again afterwards.
func (l *Limiter) LeaveSharedHosts(now time.Time) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	for _, p := range l.sharedHosts.throttlesByHost {
		p.removeCrawl(l, now)
	}
	for _, p := range l.sharedHosts.throttlesByAddr {
		p.removeCrawl(l, now)
	}
	maps.DeleteFunc(l.sharedHosts.lastAddrByHost, func(w crawlHostKey, _ netip.Addr) bool {
		return w.crawlLimiter == l
	})
	clear(l.readyHosts)
}
