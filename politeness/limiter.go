package politeness

import (
	"cmp"
	"math"
	"net/netip"
	"time"

	"golang.org/x/time/rate"

	"github.com/decorum-crawler/decorum"
)

// LimiterConfig is the crawl's own limits, whatever hosts allow.
type LimiterConfig struct {
	CrawlRequestsPerSecond float64 // of the whole crawl; 0: no limit
	CrawlBytesPerSecond    float64 // of the whole crawl, bodies as decoded; 0: no limit

	// IPConcurrency is how many visits at a time an IP address gets, of all the
	// hosts that it serves together; 0: no limit. IPDelay is its rest between
	// the end of a visit and the start of the next. Of crawls that visit an
	// address at the same time, the stricter limits hold for all.
	IPConcurrency int
	IPDelay       time.Duration
	LimitLoopback bool // the two hold for loopback addresses as well
	// RestartedAt is when this process began to go on with a crawl, so that an
	// address may have been visited just before: it rests first. Zero: it
	// begins a new one.
	RestartedAt time.Time
}

// Limiter holds the limiters of one crawl. It gives permits, and it is the
// second guard of every host's rest: the first is the due time kept in the
// store, which survives a restart; this one lives in the process and does not
// trust it. And it knows the addresses that hosts share. Crawls that may visit
// the same hosts get theirs from the same SharedHosts. Its methods may be called at
// the same time.
type Limiter struct {
	sharedHosts           *SharedHosts // whose lock guards what follows
	cfg                   LimiterConfig
	requestRateLimiter    *rate.Limiter
	byteRateLimiter       *rate.Limiter
	readyHosts            map[string]time.Time // hosts whose turn it is, and from when on
	readyHostsChanged     chan struct{}
	workerCount           int // 0: it is not known how many
	activeOrGrantedVisits int // of them, with hosts, or so many hosts are kept for it
}

// NewLimiter returns the limiters for cfg, of a crawl that is alone.
func NewLimiter(cfg LimiterConfig) *Limiter { return NewSharedHosts().NewLimiter(cfg) }

func newLimiter(h *SharedHosts, cfg LimiterConfig) *Limiter {
	l := &Limiter{sharedHosts: h, cfg: cfg, readyHosts: map[string]time.Time{}, readyHostsChanged: make(chan struct{}, 1)}
	if r := cfg.CrawlRequestsPerSecond; r > 0 {
		l.requestRateLimiter = rate.NewLimiter(rate.Limit(r), 1)
	}
	if b := cfg.CrawlBytesPerSecond; b > 0 {
		l.byteRateLimiter = rate.NewLimiter(rate.Limit(b), max(1, int(b)))
	}
	return l
}

// SetRateShare has the crawl keep to a part of its limits of requests and bytes a second,
// from 0 to 1: the rest is for other processes that work on it.
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

// lockSharedHosts begins a call.
func (l *Limiter) lockSharedHosts() { l.sharedHosts.mu.Lock() }

// unlockAndWakeOtherCrawls ends a call, and wakes the crawls whose turn has come by it, but for
// the one that calls: it asks for TakeGrantedTurns itself.
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

// addReadyHost keeps for TakeGrantedTurns that it is the turn of host. It requires the lock.
func (l *Limiter) addReadyHost(host string, from time.Time) {
	l.readyHosts[host] = from
	l.sharedHosts.limitersToWake = append(l.sharedHosts.limitersToWake, l)
}

// AvailableVisits returns how many of want requests may begin now under the limits of the crawl
// and of the process, and, if none, how long to wait.
func (l *Limiter) AvailableVisits(now time.Time, want int) (grant int, wait time.Duration) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	if grant, wait = l.sharedHosts.breaker.availableVisits(now, want); grant == 0 {
		return 0, wait
	}
	if grant, wait = l.sharedHosts.localOverloadLimiter.availableVisits(grant); grant == 0 {
		return 0, wait
	}
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

// A PermitRequest is what a crawl asks for that wants to visit a host.
type PermitRequest struct {
	NotBefore time.Time     // when the host is due, as the crawl's store says
	HostSlots int           // visits at a time, of all crawls together; 0 means 1
	Delay     time.Duration // the rest since the last visit, whichever crawl made it
}

// Reserve returns a permit for one visit to host, if the Decision is to Proceed. Else it is to
// Postpone, for one of these reasons, which are asked in this order:
//
//   - decorum.ReasonNetwork: the NetworkBreaker is open;
//   - ReasonHostRest: the host is not due, or the rest after the crawl's own last visit in this
//     process is not over;
//   - ReasonHostBusy: the host rests, or has all its visits, or is kept for another crawl,
//     because of other crawls;
//   - ReasonRequestRate: the crawl's own limit of requests is reached;
//   - ReasonAddressBusy: its address has all its visits, or rests, as far as that is known from
//     an earlier visit.
//
// A permit must come back by ReleaseUnused, or by ReleaseAfterTransfer and
// SetNextVisitAndCountBytes.
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

// HostRestDecision returns to Postpone the visit to a host that has to rest for so long from now on.
func HostRestDecision(now time.Time, rest time.Duration) decorum.Decision {
	return decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonHostRest, Until: now.Add(rest), Rest: rest}
}

// reserveLocked is Reserve while the NetworkBreaker lets a visit begin. It requires the lock.
func (l *Limiter) reserveLocked(now time.Time, host string, req PermitRequest) (*issuedPermit, decorum.Decision) {
	w := crawlHostKey{l, host}
	if remaining := req.NotBefore.Sub(now); remaining > 0 {
		l.giveUpTurns(now, w)
		return nil, HostRestDecision(now, remaining)
	}
	p := l.sharedHosts.getOrCreateHost(now, host)
	l.sharedHosts.maxDemandedDelay = max(l.sharedHosts.maxDemandedDelay, req.Delay)
	slots := cmp.Or(max(req.HostSlots, 0), 1)
	p.setRequiredDelayAndSlots(l, now, req.Delay, slots)
	if p.dueSetBy == l && p.dueAt.After(now) && !p.nextStart().After(p.dueAt) {
		l.giveUpTurns(now, w)
		return nil, HostRestDecision(now, p.dueAt.Sub(now))
	}
	if until, ok := p.acquireOrEnqueue(now, w); !ok {
		l.passAddrTurn(now, w)
		return nil, decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonHostBusy, Until: until}
	}
	g := &issuedPermit{limiter: l, host: host, hostSlots: slots, addrBoundAt: now}
	if d := l.acquireRateAndAddr(now, w, g); d.Action != decorum.Proceed {
		p.removeActiveVisit(l)
		p.postponeAndGrantSlots(now)
		return nil, d
	}
	return g, decorum.Decision{}
}

// acquireRateAndAddr takes for g what hosts share: a request of the crawl's, and a slot of
// the address, if it is known. It requires the lock.
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

// giveUpTurns lets others have the turns of a host that rests for a reason of its own.
// It requires the lock.
func (l *Limiter) giveUpTurns(now time.Time, w crawlHostKey) {
	if p := l.sharedHosts.throttlesByHost[w.host]; p != nil && p.isGranted(w) {
		p.removeWaiter(w)
		p.grantSlots(now)
	}
	l.passAddrTurn(now, w)
}

// passAddrTurn lets others have the turn of a host at its address. It requires
// the lock.
func (l *Limiter) passAddrTurn(now time.Time, w crawlHostKey) {
	if a := l.sharedHosts.throttlesByAddr[l.sharedHosts.lastAddrByHost[w]]; a != nil && a.isGranted(w) {
		l.giveUpAddrTurn(now, w)
	}
}

// ReleaseUnused takes back a permit whose visit is not made: nothing was sent.
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

// ReleaseAfterTransfer takes back a permit at the end of the transfer, whatever came of it: the
// address rests from then, and its slot is free for another host. What the host
// itself is owed is for SetNextVisitAndCountBytes to say, when it is known.
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

// endPermit takes a permit back, and records that a visit of the process has ended; false if
// there is none, or it came back before.
func (l *Limiter) endPermit(g *issuedPermit) bool {
	if g == nil || g.ended {
		return false
	}
	g.ended = true
	l.sharedHosts.localOverloadLimiter.addInFlight(-1)
	l.sharedHosts.breaker.releaseProbeSlot(g.probeRound)
	return true
}

// SetNextVisitAndCountBytes keeps, at the end of a visit, what rest it has earned the host, and
// counts the visit's bytes. The rest counts from the end of a visit, not from its
// start (DELAY-12).
func (l *Limiter) SetNextVisitAndCountBytes(host string, next NextVisit, bytes int) {
	end := next.Due.Add(-next.Delay)
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	if l.byteRateLimiter != nil {
		for remaining := bytes; remaining > 0; remaining -= l.byteRateLimiter.Burst() {
			l.byteRateLimiter.ReserveN(end, min(remaining, l.byteRateLimiter.Burst()))
		}
	}
	p := l.sharedHosts.getOrCreateHost(end, host)
	if next.Due.After(p.dueAt) { // else another visit of this host earned it a longer rest
		p.dueAt, p.dueSetBy = next.Due, l
	}
	p.recordVisitEnd(l, 0, end)
}

// timeUntilToken returns how long until lim lets one request begin: a year at most, then
// it is asked again.
func timeUntilToken(lim *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - lim.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	wait := math.Ceil(missing / float64(lim.Limit()) * float64(time.Second))
	return time.Duration(min(wait, float64(maxDelay)))
}

// A Permit is the proof that a host was due. Only Limiter.Reserve makes a valid
// one. Copies of it are the same permit.
type Permit struct{ issuedPermit *issuedPermit }

// An issuedPermit is what Limiter remembers of a permit. It is guarded by the lock of
// limits, but for the first three fields, which do not change.
type issuedPermit struct {
	limiter     *Limiter
	host        string
	hostSlots   int        // visits at a time that the crawl asked for
	slotAddr    netip.Addr // whose slot the visit has; zero if none
	addrBoundAt time.Time  // has it
	probeRound  uint64     // of the probes of the NetworkBreaker, if it is one
	ended       bool       // it came back
}

// Host returns the host that may be visited.
func (p Permit) Host() string { return p.state().host }

// HostSlots returns how many visits at a time the host may have, as the crawl sees it:
// the PermitRequest's. It is 0 for a permit that is not valid.
func (p Permit) HostSlots() int { return p.state().hostSlots }

// state returns what was issued; for the zero Permit, what nothing else refers to.
func (p Permit) state() *issuedPermit {
	if p.issuedPermit == nil {
		return &issuedPermit{}
	}
	return p.issuedPermit
}

// WasIssued reports whether p came from Limiter.Reserve.
func (p Permit) WasIssued() bool { return p.issuedPermit != nil }

// ClaimServerAddr says that the visit is about to use a connection to addr, and asks
// whether that address, too, is due. It must be asked before anything is sent
// over the connection, also over one that was kept open; asking again for the
// same address changes nothing. It returns an error that carries a decorum.Decision, of
// ReasonAddressBusy, if the address must not be visited now, or one of Kind
// decorum.Unticketed if the permit is not valid or has come back.
func (p Permit) ClaimServerAddr(now time.Time, addr netip.Addr) error {
	if p.issuedPermit == nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed}
	}
	return p.issuedPermit.limiter.claimServerAddr(now, p.issuedPermit, addr.Unmap().WithZone(""))
}
