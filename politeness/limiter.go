package politeness

import (
	"cmp"
	"math"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/decorum-crawler/decorum"
)

// LimiterConfig holds a crawl's own limits, which apply in addition to those of hosts.
type LimiterConfig struct {
	CrawlRequestsPerSecond float64 // requests per second of the whole crawl; 0: no limit
	CrawlBytesPerSecond    float64 // decoded body bytes per second of the whole crawl; 0: no limit

	// IPConcurrency is how many visits at a time one IP address gets, over all the hosts that it
	// serves; 0: no limit. IPDelay is the rest of an address between the end of a visit and the
	// start of the next; 0: none. If several crawls visit an address at the same time, the
	// strictest limits apply to all of them.
	IPConcurrency int
	IPDelay       time.Duration
	LimitLoopback bool // IPConcurrency and IPDelay apply to loopback addresses too
	// RestartedAt is when this process resumed the crawl of an earlier process, which may have
	// visited any address just before. Each address therefore rests for IPDelay first. Zero: the
	// crawl is new.
	RestartedAt time.Time
}

// A Limiter issues the permits of one crawl. It enforces each host's rest a second time: the first
// guard is the due time in the store, which survives a restart; the Limiter keeps its own record in
// memory and does not trust the store. It also enforces limits of the addresses that hosts share.
// Crawls that may visit the same hosts get their Limiters from the same SharedHosts. Its methods
// may be called concurrently.
type Limiter struct {
	sharedHosts        *SharedHosts // sharedHosts.mu guards the mutable fields below
	cfg                LimiterConfig
	requestRateLimiter *rate.Limiter        // nil: no limit
	byteRateLimiter    *rate.Limiter        // nil: no limit; an ended visit may overdraw it
	readyHosts         map[string]time.Time // hosts whose turn has come, with the earliest start
	// readyHostsChanged has a capacity of 1. It is full if another crawl's call has added
	// readyHosts.
	readyHostsChanged     chan struct{}
	workerCount           int // see SetWorkers; 0: unlimited
	activeOrGrantedVisits int // visits of hosts under way, and turns of hosts granted
}

// NewLimiter returns the Limiter of a crawl that shares its hosts with no other crawl.
func NewLimiter(cfg LimiterConfig) *Limiter { return NewSharedHosts().NewLimiter(cfg) }

// newLimiter returns a Limiter for cfg that uses h.
func newLimiter(h *SharedHosts, cfg LimiterConfig) *Limiter {
	l := &Limiter{sharedHosts: h, cfg: cfg, readyHosts: map[string]time.Time{},
		readyHostsChanged: make(chan struct{}, 1)}
	if r := cfg.CrawlRequestsPerSecond; r > 0 {
		l.requestRateLimiter = rate.NewLimiter(rate.Limit(r), 1)
	}
	if b := cfg.CrawlBytesPerSecond; b > 0 {
		l.byteRateLimiter = rate.NewLimiter(rate.Limit(b), max(1, int(b)))
	}
	return l
}

// SetRateShare reduces the crawl's limits of requests and bytes per second to share of
// LimiterConfig's, from 0 to 1. The remainder belongs to other processes of the same crawl.
func (l *Limiter) SetRateShare(now time.Time, share float64) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	if l.requestRateLimiter != nil {
		l.requestRateLimiter.SetLimitAt(now, rate.Limit(l.cfg.CrawlRequestsPerSecond*share))
	}
	if l.byteRateLimiter != nil {
		l.byteRateLimiter.SetLimitAt(now, rate.Limit(l.cfg.CrawlBytesPerSecond*share))
		l.byteRateLimiter.SetBurstAt(now, max(1, int(l.cfg.CrawlBytesPerSecond*share)))
	}
}

// lockSharedHosts takes SharedHosts.mu at the beginning of a method. unlockAndWakeOtherCrawls
// releases it.
func (l *Limiter) lockSharedHosts() { l.sharedHosts.mu.Lock() }

// unlockAndWakeOtherCrawls wakes the crawls that the method has granted turns, and releases
// SharedHosts.mu. It does not wake l itself, whose caller calls TakeGrantedTurns after the method.
func (l *Limiter) unlockAndWakeOtherCrawls() {
	for _, crawl := range l.sharedHosts.limitersToWake {
		if crawl == l {
			continue
		}
		select {
		case crawl.readyHostsChanged <- struct{}{}:
		default:
		}
	}
	clear(l.sharedHosts.limitersToWake)
	l.sharedHosts.limitersToWake = l.sharedHosts.limitersToWake[:0]
	l.sharedHosts.mu.Unlock()
}

// addReadyHost records for TakeGrantedTurns that host's turn begins at from. The caller holds
// SharedHosts.mu.
func (l *Limiter) addReadyHost(host string, from time.Time) {
	l.readyHosts[host] = from
	l.sharedHosts.limitersToWake = append(l.sharedHosts.limitersToWake, l)
}

// AvailableVisits returns how many of want visits may begin now under the limits of the crawl and
// of the process. If it returns 0, wait says how long to wait before the next call. It reserves
// nothing.
func (l *Limiter) AvailableVisits(now time.Time, want int) (grant int, wait time.Duration) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	if grant, wait = l.sharedHosts.breaker.availableVisits(now, want); grant == 0 {
		return 0, wait
	}
	if grant, wait = l.sharedHosts.localOverloadLimiter.availableVisits(grant); grant == 0 {
		return 0, wait
	}
	// Both rates must have a token. The number of requests is bounded by the tokens of the request
	// rate; visits are charged to the byte rate afterwards, because their size is unknown before.
	for _, lim := range []*rate.Limiter{l.requestRateLimiter, l.byteRateLimiter} {
		if lim == nil {
			continue
		}
		if w := timeUntilToken(lim, now); w > 0 {
			wait, grant = max(wait, w), 0
		}
		if lim == l.requestRateLimiter {
			grant = min(grant, int(lim.TokensAt(now)))
		}
	}
	return max(grant, 0), wait
}

// A PermitRequest holds what a crawl requires of one visit to a host.
type PermitRequest struct {
	NotBefore time.Time     // due time of the host in the crawl's store
	HostSlots int           // concurrent visits to the host, of all crawls together; 0 means 1
	Delay     time.Duration // rest since the end of the last visit of any crawl
	// LearnedPace is the pace that the crawl's store has for the host. The newer of it and of the one
	// that this process knows applies, as far as its delay is no longer than MaxLearnedDelay.
	LearnedPace LearnedPace
	// LearnedByOthers is a delay that another process has learned, in a visit that the crawl's store may
	// not know of; 0: none.
	LearnedByOthers time.Duration
	MaxLearnedDelay time.Duration // 0 or less: no learned pace applies
}

// Reserve returns a permit for one visit to host if the Decision is to Proceed. Otherwise the
// Decision is to Postpone, for the first of these reasons that applies:
//
//   - decorum.ReasonNetwork: the NetworkBreaker is open.
//   - decorum.ReasonHostRest: the host is not due by NotBefore, or it rests after this crawl's own
//     last visit in this process.
//   - decorum.ReasonHostBusy: because of other crawls the host rests, has all its visits, or is
//     reserved.
//   - decorum.ReasonRequestRate: the crawl has reached its own request rate.
//   - decorum.ReasonAddressBusy: the address rests or has all its visits. Reserve knows the address
//     only from an earlier visit to the host.
//
// After ReasonHostBusy and ReasonAddressBusy the host is on a waitlist: see TakeGrantedTurns. The
// caller returns each permit, with ReleaseUnused if it sent nothing, otherwise with
// ReleaseAfterTransfer and SetNextVisitAndCountBytes.
func (l *Limiter) Reserve(now time.Time, host string, req PermitRequest) (Permit, decorum.Decision) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	probeRound, d := l.sharedHosts.breaker.admitVisit(now)
	if d.Action != decorum.Proceed {
		return Permit{}, d
	}
	g, d := l.reserveLocked(now, host, req)
	if d.Action != decorum.Proceed {
		l.sharedHosts.breaker.releaseProbeSlot(probeRound)
		return Permit{}, d
	}
	g.probeRound = probeRound
	l.sharedHosts.localOverloadLimiter.addInFlight(1)
	return Permit{g}, decorum.Decision{}
}

// HostRestDecision returns the Decision to Postpone a visit because its host rests for rest from
// now on.
func HostRestDecision(now time.Time, rest time.Duration) decorum.Decision {
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonHostRest, Until: now.Add(rest), Rest: rest}
}

// reserveLocked implements Reserve after the NetworkBreaker has admitted the visit. The caller
// holds SharedHosts.mu.
func (l *Limiter) reserveLocked(now time.Time, host string, req PermitRequest) (*issuedPermit, decorum.Decision) {
	w := crawlHostKey{l, host}
	// The store's due time is the first guard.
	if remaining := req.NotBefore.Sub(now); remaining > 0 {
		l.giveUpTurns(now, w)
		return nil, HostRestDecision(now, remaining)
	}
	p := l.sharedHosts.getOrCreateHost(now, host)
	slots := cmp.Or(max(req.HostSlots, 0), 1)
	p.learnedPace = newerOf(p.learnedPace, req.LearnedPace)
	p.learnedPace.Delay = max(p.learnedPace.Delay, req.LearnedByOthers)
	if learned := p.learnedPace.AtMost(req.MaxLearnedDelay).Delay; learned > 0 {
		req.Delay, slots = max(req.Delay, learned), 1
	}
	l.sharedHosts.maxDemandedDelay = max(l.sharedHosts.maxDemandedDelay, req.Delay)
	p.setRequiredDelayAndSlots(l, now, req.Delay, slots)
	// If the host rests after this crawl's own last visit, and no other crawl makes that rest
	// longer, a place in the waitlist would only keep others from their turn.
	if p.dueSetBy == l && p.dueAt.After(now) && !p.nextStart().After(p.dueAt) {
		l.giveUpTurns(now, w)
		return nil, HostRestDecision(now, p.dueAt.Sub(now))
	}
	// Take the slot of the host, or join its waitlist. While the host waits, its address can serve
	// others.
	if until, ok := p.acquireOrEnqueue(now, w); !ok {
		l.passAddrTurn(now, w)
		return nil, decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonHostBusy, Until: until}
	}
	// The limits that hosts share come last; if one refuses, the slot of the host goes back.
	g := &issuedPermit{limiter: l, host: host, hostSlots: slots, addrBoundAt: now}
	if d := l.acquireRateAndAddr(now, w, g); d.Action != decorum.Proceed {
		p.removeActiveVisit(l)
		p.postponeAndGrantSlots(now)
		return nil, d
	}
	return g, decorum.Decision{}
}

// acquireRateAndAddr takes for g a request of the crawl's rate, and a slot of the host's last known
// address. It takes both or neither. The caller holds SharedHosts.mu.
func (l *Limiter) acquireRateAndAddr(now time.Time, w crawlHostKey, g *issuedPermit) decorum.Decision {
	if l.requestRateLimiter != nil {
		if wait := timeUntilToken(l.requestRateLimiter, now); wait > 0 {
			return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonRequestRate, Until: now.Add(wait)}
		}
	}
	if addr, known := l.sharedHosts.lastAddrByHost[w]; known {
		if d := l.acquireAddr(now, w, addr); d.Action != decorum.Proceed {
			return d
		}
		g.slotAddr = addr
	}
	if l.requestRateLimiter != nil {
		l.requestRateLimiter.AllowN(now, 1)
	}
	return decorum.Decision{}
}

// giveUpTurns grants to others the turns of a host that could not use them, because it still rests.
// The caller holds SharedHosts.mu.
func (l *Limiter) giveUpTurns(now time.Time, w crawlHostKey) {
	if p := l.sharedHosts.throttlesByHost[w.host]; p != nil && p.isGranted(w) {
		p.removeWaiter(w)
		p.grantSlots(now)
	}
	l.passAddrTurn(now, w)
}

// passAddrTurn grants to others the turn that w has at its address, if it has one. The caller holds
// SharedHosts.mu.
func (l *Limiter) passAddrTurn(now time.Time, w crawlHostKey) {
	if a := l.sharedHosts.throttlesByAddr[l.sharedHosts.lastAddrByHost[w]]; a != nil && a.isGranted(w) {
		l.giveUpAddrTurn(now, w)
	}
}

// ReleaseUnused takes back a permit whose visit sent nothing: neither the host nor the address
// rests for it. A permit that was returned before is ignored.
func (l *Limiter) ReleaseUnused(now time.Time, p Permit) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	g := p.issuedPermit
	if !l.endPermit(g) {
		return
	}
	l.releaseUnusedAddrSlot(now, g)
	if host := l.sharedHosts.throttlesByHost[g.host]; host != nil {
		host.removeActiveVisit(l)
		host.postponeAndGrantSlots(now)
	}
}

// ReleaseAfterTransfer takes back a permit at the end of the transfer, whether or not it succeeded.
// The address rests from end on, and another host may then use its slot. The host keeps its slot
// until SetNextVisitAndCountBytes sets its rest. A permit that was returned before is ignored.
func (l *Limiter) ReleaseAfterTransfer(p Permit, end time.Time) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	g := p.issuedPermit
	if !l.endPermit(g) {
		return
	}
	if a := l.sharedHosts.throttlesByAddr[g.slotAddr]; a != nil {
		a.recordVisitEnd(l, end.Sub(g.addrBoundAt), end)
		l.sharedHosts.pruneAddr(end, g.slotAddr, a)
	}
}

// endPermit marks g as returned and takes its visit out of the process's limits. It returns false
// if g is nil or was returned before. The caller holds SharedHosts.mu.
func (l *Limiter) endPermit(g *issuedPermit) bool {
	if g == nil || g.ended {
		return false
	}
	g.ended = true
	l.sharedHosts.localOverloadLimiter.addInFlight(-1)
	l.sharedHosts.breaker.releaseProbeSlot(g.probeRound)
	return true
}

// EndVisit ends a visit as SetNextVisitAndCountBytes does, with the rest and the health that policy
// computes from v. The learned pace before v is the one that the crawls of this process share, whatever
// v.Health has: visits of several crawls may end together. It returns that pace, too.
func (l *Limiter) EndVisit(policy Policy, v FinishedVisit, bytes int) (next NextVisit, before LearnedPace) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	v.Health.LearnedPace = l.sharedHosts.getOrCreateHost(v.End, v.Host).learnedPace
	next = policy.NextVisit(v)
	l.setNextVisitLocked(v.Host, next, bytes)
	return next, v.Health.LearnedPace
}

// SetNextVisitAndCountBytes ends a visit: it sets the host's rest to next, unless another visit has
// set a longer one, remembers the learned pace, frees the host's slot, and charges bytes to the
// crawl's byte rate. The rest is counted from the end of the visit, not from its start (DELAY-12).
func (l *Limiter) SetNextVisitAndCountBytes(host string, next NextVisit, bytes int) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	l.setNextVisitLocked(host, next, bytes)
}

// setNextVisitLocked implements SetNextVisitAndCountBytes. The caller holds SharedHosts.mu.
func (l *Limiter) setNextVisitLocked(host string, next NextVisit, bytes int) {
	end := next.Due.Add(-next.Delay)
	if l.byteRateLimiter != nil {
		// One reservation cannot exceed the burst.
		for remaining := bytes; remaining > 0; remaining -= l.byteRateLimiter.Burst() {
			l.byteRateLimiter.ReserveN(end, min(remaining, l.byteRateLimiter.Burst()))
		}
	}
	p := l.sharedHosts.getOrCreateHost(end, host)
	if next.Due.After(p.dueAt) { // otherwise a concurrent visit has earned a longer rest
		p.dueAt, p.dueSetBy = next.Due, l
	}
	p.learnedPace = next.Health.LearnedPace
	p.recordVisitEnd(l, 0, end)
}

// timeUntilToken returns how long until lim has a token for one request, at most 365 days: a rate
// near 0 would overflow.
func timeUntilToken(lim *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - lim.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	wait := math.Ceil(missing / float64(lim.Limit()) * float64(time.Second))
	return time.Duration(min(wait, float64(maxDelay)))
}

// A Permit proves that a host was due. Only Limiter.Reserve returns a valid one. Copies are the
// same permit.
type Permit struct{ issuedPermit *issuedPermit }

// An issuedPermit is the Limiter's record of a permit. SharedHosts.mu guards its fields except
// limiter, host and hostSlots, which do not change.
type issuedPermit struct {
	limiter     *Limiter
	host        string
	hostSlots   int        // PermitRequest.HostSlots, at least 1
	slotAddr    netip.Addr // address whose slot the visit holds; zero: none
	addrBoundAt time.Time  // when the visit got that slot
	probeRound  uint64     // round of the NetworkBreaker's probes; 0: no probe
	ended       bool       // the permit was returned
}

// Host returns the host that the permit is for; "" for the zero Permit.
func (p Permit) Host() string { return p.state().host }

// HostSlots returns how many concurrent visits the crawl allows the host: PermitRequest.HostSlots.
// It is 0 for the zero Permit.
func (p Permit) HostSlots() int { return p.state().hostSlots }

// state returns the Limiter's record, or an empty record for the zero Permit.
func (p Permit) state() *issuedPermit {
	if p.issuedPermit == nil {
		return &issuedPermit{}
	}
	return p.issuedPermit
}

// WasIssued reports whether p came from Limiter.Reserve.
func (p Permit) WasIssued() bool { return p.issuedPermit != nil }

// ClaimServerAddr takes a slot of addr for the visit. A Fetcher must call it before it sends
// anything over a connection to addr, including a connection that was kept open. Another call for
// the same address changes nothing. If the address rests or has all its visits, the error carries a
// decorum.Decision of ReasonAddressBusy. If the permit is invalid or was returned, the error is of
// Kind decorum.Unticketed.
func (p Permit) ClaimServerAddr(now time.Time, addr netip.Addr) error {
	if p.issuedPermit == nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	}
	return p.issuedPermit.limiter.claimServerAddr(now, p.issuedPermit, addr.Unmap().WithZone(""))
}
