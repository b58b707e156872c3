package politeness

import (
	"cmp"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// LimitsConfig is the crawl's own limits, whatever hosts allow.
type LimitsConfig struct {
	RequestsPerSecond float64 // of the whole crawl; 0: no limit
	BytesPerSecond    float64 // of the whole crawl, bodies as decoded; 0: no limit

	// IPConcurrency is how many visits at a time an IP address gets, of all the
	// hosts that it serves together; 0: no limit. IPDelay is its rest between
	// the end of a visit and the start of the next. Of crawls that visit an
	// address at the same time, the stricter limits hold for all.
	IPConcurrency int
	IPDelay       time.Duration
	IPLoopback    bool // the two hold for loopback addresses as well
	// Restarted is when this process began to go on with a crawl, so that an
	// address may have been visited just before: it rests first. Zero: it
	// begins a new one.
	Restarted time.Time
}

// Limits holds the limiters of one crawl. It gives permits, and it is the
// second guard of every host's rest: the first is the due time kept in the
// store, which survives a restart; this one lives in the process and does not
// trust it. And it knows the addresses that hosts share. Crawls that may visit
// the same hosts get theirs from the same Hosts. Its methods may be called at
// the same time.
type Limits struct {
	hosts    *Hosts // whose lock guards what follows
	cfg      LimitsConfig
	requests *rate.Limiter
	bytes    *rate.Limiter
	calls    map[string]time.Time // hosts whose turn it is, and from when on
	wake     chan struct{}
	workers  int // 0: it is not known how many
	engaged  int // of them, with hosts, or so many hosts are kept for it
}

// NewLimits returns the limiters for cfg, of a crawl that is alone.
func NewLimits(cfg LimitsConfig) *Limits { return NewHosts().Limits(cfg) }

func newLimits(h *Hosts, cfg LimitsConfig) *Limits {
	l := &Limits{hosts: h, cfg: cfg, calls: map[string]time.Time{}, wake: make(chan struct{}, 1)}
	if r := cfg.RequestsPerSecond; r > 0 {
		l.requests = rate.NewLimiter(rate.Limit(r), 1)
	}
	if b := cfg.BytesPerSecond; b > 0 {
		l.bytes = rate.NewLimiter(rate.Limit(b), max(1, int(b)))
	}
	return l
}

// SetShare has the crawl keep to a part of its limits of requests and bytes a second,
// from 0 to 1: the rest is for other processes that work on it.
func (l *Limits) SetShare(now time.Time, share float64) {
	l.lock()
	defer l.unlock()
	if l.requests != nil {
		l.requests.SetLimitAt(now, rate.Limit(l.cfg.RequestsPerSecond*share))
	}
	if l.bytes != nil {
		l.bytes.SetLimitAt(now, rate.Limit(l.cfg.BytesPerSecond*share))
		l.bytes.SetBurstAt(now, max(1, int(l.cfg.BytesPerSecond*share)))
	}
}

// lock begins a call.
func (l *Limits) lock() { l.hosts.mu.Lock() }

// unlock ends a call, and wakes the crawls whose turn has come by it, but for
// the one that calls: it asks for Calls itself.
func (l *Limits) unlock() {
	for _, crawl := range l.hosts.rung {
		if crawl == l {
			continue
		}
		select {
		case crawl.wake <- struct{}{}:
		default:
		}
	}
	clear(l.hosts.rung)
	l.hosts.rung = l.hosts.rung[:0]
	l.hosts.mu.Unlock()
}

// tell keeps for Calls that it is the turn of host. It requires the lock.
func (l *Limits) tell(host string, from time.Time) {
	l.calls[host] = from
	l.hosts.rung = append(l.hosts.rung, l)
}

// Ready returns how many of want requests may begin now under the limits of the crawl
// and of the process, and, if none, how long to wait.
func (l *Limits) AvailableVisits(now time.Time, want int) (grant int, wait time.Duration) {
	l.lock()
	defer l.unlock()
	if grant, wait = l.hosts.breaker.ready(now, want); grant == 0 {
		return 0, wait
	}
	if grant, wait = l.hosts.load.ready(grant); grant == 0 {
		return 0, wait
	}
	for _, lim := range []*rate.Limiter{l.requests, l.bytes} {
		if lim == nil {
			continue
		}
		if w := untilToken(lim, now); w > 0 {
			wait, grant = max(wait, w), 0
		}
		if lim == l.requests {
			grant = min(grant, int(lim.TokensAt(now)))
		}
	}
	return max(grant, 0), wait
}

// A Wish is what a crawl asks for that wants to visit a host.
type Wish struct {
	NotBefore time.Time     // when the host is due, as the crawl's store says
	Slots     int           // visits at a time, of all crawls together; 0 means 1
	Gap       time.Duration // the rest since the last visit, whichever crawl made it
}

// Request returns a permit for one visit to host. It refuses with TooEarly if
// the host is not due, or if the rest after the crawl's own last visit in this
// process is not over; and with a *Busy if the host rests, or has all its
// visits, or is kept for another crawl, because of other crawls; if its address
// has all its visits, or rests, as far as that is known from an earlier visit; or
// if the crawl's own limit of requests is reached; and with a *Paused while the
// Breaker is open. A permit must come back by Release, or by Leave and Ended.
func (l *Limits) Request(now time.Time, host string, wish Wish) (Permit, error) {
	l.lock()
	defer l.unlock()
	round, err := l.hosts.breaker.admit(now)
	if err != nil {
		return Permit{}, err
	}
	g, err := l.request(now, host, wish)
	if err != nil {
		l.hosts.breaker.release(round)
		return Permit{}, err
	}
	g.round = round
	l.hosts.load.begin()
	return Permit{g}, nil
}

// request is Request while the Breaker lets a visit begin. It requires the lock.
func (l *Limits) request(now time.Time, host string, wish Wish) (*grant, error) {
	w := waiter{l, host}
	if early := wish.NotBefore.Sub(now); early > 0 {
		l.pass(now, w)
		return nil, TooEarly(early)
	}
	p := l.hosts.meet(now, host)
	l.hosts.gap = max(l.hosts.gap, wish.Gap)
	slots := cmp.Or(max(wish.Slots, 0), 1)
	p.setDemand(l, now, wish.Gap, slots)
	if p.by == l && p.due.After(now) && !p.free().After(p.due) {
		l.pass(now, w)
		return nil, TooEarly(p.due.Sub(now))
	}
	if until, ok := p.enter(now, w); !ok {
		l.passAddress(now, w)
		return nil, &Busy{What: "the host", Until: until}
	}
	g := &grant{limits: l, host: host, at: now, slots: slots, since: now}
	if err := l.share(now, w, g); err != nil {
		p.give(l)
		p.rest(now)
		return nil, err
	}
	return g, nil
}

// share takes for g what hosts share: a request of the crawl's, and a slot of
// the address, if it is known. It requires the lock.
func (l *Limits) share(now time.Time, w waiter, g *grant) error {
	if l.requests != nil {
		if wait := untilToken(l.requests, now); wait > 0 {
			return &Busy{What: "the crawl's own limit of requests", Until: now.Add(wait)}
		}
	}
	if addr, known := l.hosts.homes[w]; known {
		if err := l.enter(now, w, addr); err != nil {
			return err
		}
		g.addr = addr
	}
	if l.requests != nil {
		l.requests.AllowN(now, 1)
	}
	return nil
}

// pass lets others have the turns of a host that rests for a reason of its own.
// It requires the lock.
func (l *Limits) pass(now time.Time, w waiter) {
	if p := l.hosts.hosts[w.host]; p != nil && p.called(w) {
		p.leave(w)
		p.call(now)
	}
	l.passAddress(now, w)
}

// passAddress lets others have the turn of a host at its address. It requires
// the lock.
func (l *Limits) passAddress(now time.Time, w waiter) {
	if a := l.hosts.addresses[l.hosts.homes[w]]; a != nil && a.called(w) {
		l.forfeit(now, w)
	}
}

// Release takes back a permit whose visit is not made: nothing was sent.
func (l *Limits) Release(now time.Time, p Permit) {
	l.lock()
	defer l.unlock()
	g := p.grant
	if !g.end() {
		return
	}
	l.endVisit(g)
	l.unbind(now, g)
	if host := l.hosts.hosts[g.host]; host != nil {
		host.give(l)
		host.rest(now)
	}
}

// Leave takes back a permit at the end of the transfer, whatever came of it: the
// address rests from then, and its slot is free for another host. What the host
// itself is owed is for Ended to say, when it is known.
func (l *Limits) Leave(p Permit, end time.Time) {
	l.lock()
	defer l.unlock()
	g := p.grant
	if !g.end() {
		return
	}
	l.endVisit(g)
	if a := l.hosts.addresses[g.addr]; a != nil {
		a.end(l, end.Sub(g.since), end)
		l.hosts.tidy(end, g.addr, a)
	}
}

// Ended keeps, at the end of a visit, what rest it has earned the host, and
// counts the visit's bytes. The rest counts from the end of a visit, not from its
// start (DELAY-12).
func (l *Limits) Ended(host string, rest Rest, bytes int) {
	end := rest.Due.Add(-rest.Gap)
	l.lock()
	defer l.unlock()
	if l.bytes != nil {
		for left := bytes; left > 0; left -= l.bytes.Burst() {
			l.bytes.ReserveN(end, min(left, l.bytes.Burst()))
		}
	}
	p := l.hosts.meet(end, host)
	if rest.Due.After(p.due) { // else another visit of this host earned it a longer rest
		p.due, p.by = rest.Due, l
	}
	p.end(l, 0, end)
}

// untilToken returns how long until lim lets one request begin: a year at most, then
// it is asked again.
func untilToken(lim *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - lim.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	wait := math.Ceil(missing / float64(lim.Limit()) * float64(time.Second))
	return time.Duration(min(wait, float64(maxDelay)))
}
