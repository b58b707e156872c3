package politeness

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// slack is how much earlier than the due time a host's limiter may be wrong by
// its arithmetic in floats. The due time itself, which is exact, is checked too.
const slack = time.Millisecond

// guards is how many hosts Limits remembers before it begins to forget those
// that are due anyway.
const guards = 4096

// LimitsConfig is the crawl's own limits, whatever hosts allow.
type LimitsConfig struct {
	RequestsPerSecond float64 // of the whole crawl; 0: no limit
	BytesPerSecond    float64 // of the whole crawl, bodies as decoded; 0: no limit

	// IPConcurrency is how many visits at a time an IP address gets, of all the
	// hosts that it serves together; 0: no limit. IPDelay is its rest between
	// the end of a visit and the start of the next.
	IPConcurrency int
	IPDelay       time.Duration
	IPLoopback    bool // the two hold for loopback addresses as well
	// Restarted is when this process began to go on with a crawl, so that an
	// address may have been visited just before: it rests first. Zero: it
	// begins a new one.
	Restarted time.Time
}

// limits reports whether the visits to addr are limited.
func (cfg LimitsConfig) limits(addr netip.Addr) bool {
	return (cfg.IPConcurrency > 0 || cfg.IPDelay > 0) && (cfg.IPLoopback || !addr.IsLoopback())
}

// Limits holds the limiters of one crawl. It gives permits, and it is the
// second guard of every host's rest: the first is the due time kept in the
// store, which survives a restart; this one lives in the process and does not
// trust it. And it knows the addresses that hosts share. Its methods may be
// called at the same time.
type Limits struct {
	cfg      LimitsConfig
	mu       sync.Mutex
	requests *rate.Limiter
	bytes    *rate.Limiter
	hosts    map[string]*rate.Limiter
	out      map[string]int // permits given whose visits have not ended
	crowd    int            // so many hosts, and those that are due anyway are forgotten

	addresses map[netip.Addr]*address // those in use, and those that rest
	homes     map[string]netip.Addr   // of hosts that were visited, or turned away there
	people    int                     // so many homes, and those of no further use are forgotten
	calls     map[string]time.Time    // hosts whose turn it is at their address, and from when on
}

// NewLimits returns the limiters for cfg.
func NewLimits(cfg LimitsConfig) *Limits {
	l := &Limits{cfg: cfg, hosts: map[string]*rate.Limiter{}, out: map[string]int{}, crowd: guards,
		addresses: map[netip.Addr]*address{}, homes: map[string]netip.Addr{}, people: guards,
		calls: map[string]time.Time{}}
	if r := cfg.RequestsPerSecond; r > 0 {
		l.requests = rate.NewLimiter(rate.Limit(r), 1)
	}
	if b := cfg.BytesPerSecond; b > 0 {
		l.bytes = rate.NewLimiter(rate.Limit(b), max(1, int(b)))
	}
	return l
}

// Ready returns how many of want requests the crawl's limits let begin now,
// and, if none, how long to wait.
func (l *Limits) Ready(now time.Time, want int) (grant int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	grant = want
	for _, lim := range []*rate.Limiter{l.requests, l.bytes} {
		if lim == nil {
			continue
		}
		tokens := lim.TokensAt(now)
		if tokens < 1 {
			seconds := (1 - tokens) / float64(lim.Limit())
			wait = max(wait, time.Duration(seconds*float64(time.Second))+time.Nanosecond)
			grant = 0
		}
		if lim == l.requests {
			grant = min(grant, int(tokens))
		}
	}
	return max(grant, 0), wait
}

// Admit returns a permit for one visit to host, which the store says is due at
// notBefore, and gets slots visits at a time (0 means 1). It refuses with
// TooEarly if the host is not due, or if the rest after its last visit in this
// process is not over; and with a *Busy if the host has all its visits already,
// if its address has, or rests, as far as that is known from an earlier visit,
// or if the crawl's own limit of requests is reached. A permit must come back
// by Release, or by Leave and Ended.
func (l *Limits) Admit(now time.Time, host string, notBefore time.Time, slots int) (Permit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.rests(now, host, notBefore, slots); err != nil {
		if a := l.addresses[l.homes[host]]; a != nil && a.called(host) {
			l.forfeit(now, host)
		}
		return Permit{}, err
	}
	if l.requests != nil {
		if wait := untilToken(l.requests, now); wait > 0 {
			return Permit{}, &Busy{What: "the crawl's own limit of requests", Until: now.Add(wait)}
		}
	}
	g := &grant{limits: l, host: host, at: now, since: now}
	if addr, known := l.homes[host]; known {
		if err := l.enter(now, host, addr); err != nil {
			return Permit{}, err
		}
		g.addr = addr
	}
	if l.requests != nil {
		l.requests.AllowN(now, 1)
	}
	l.out[host]++
	return Permit{g}, nil
}

// rests returns why the host itself must not be visited. It requires l.mu.
func (l *Limits) rests(now time.Time, host string, notBefore time.Time, slots int) error {
	if early := notBefore.Sub(now); early > 0 {
		return TooEarly(early)
	}
	if lim := l.hosts[host]; lim != nil {
		if early := untilToken(lim, now); early > slack {
			return TooEarly(early)
		}
	}
	if l.out[host] >= max(slots, 1) {
		return &Busy{What: "the host", Until: now.Add(time.Second)}
	}
	return nil
}

// Release takes back a permit whose visit is not made: nothing was sent.
func (l *Limits) Release(now time.Time, p Permit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.grant == nil || p.grant.over {
		return
	}
	p.grant.over = true
	l.unbind(now, p.grant)
	l.back(p.grant.host)
}

// back notes that one visit to host less is under way. It requires l.mu.
func (l *Limits) back(host string) {
	if l.out[host]--; l.out[host] <= 0 {
		delete(l.out, host)
	}
}

// Leave takes back a permit at the end of the transfer, whatever came of it: the
// address rests from then, and its slot is free for another host. What the host
// itself is owed is for Ended to say, when it is known.
func (l *Limits) Leave(p Permit, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := p.grant
	if g == nil || g.over {
		return
	}
	g.over = true
	if a := l.addresses[g.addr]; a != nil {
		a.ended(g.since, end)
		l.tidy(end, g.addr, a)
	}
}

// Ended re-arms the host's limiter at the end of a visit, so that it opens
// when the rest is over, and counts the visit's bytes. A limiter counts from
// the end of a visit, not from its start (DELAY-12).
func (l *Limits) Ended(host string, rest Rest, bytes int) {
	end := rest.Due.Add(-rest.Gap)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back(host)
	if l.bytes != nil {
		for left := bytes; left > 0; left -= l.bytes.Burst() {
			l.bytes.ReserveN(end, min(left, l.bytes.Burst()))
		}
	}
	if old := l.hosts[host]; old != nil && untilToken(old, end) > rest.Gap {
		return // another visit of this host earned it a longer rest
	}
	if rest.Gap <= slack {
		delete(l.hosts, host)
		return
	}
	if len(l.hosts) >= l.crowd {
		l.forget(end)
		l.crowd = max(guards, 2*len(l.hosts)) // so that a call costs O(1) on average
	}
	lim := rate.NewLimiter(rate.Every(rest.Gap), 1)
	lim.AllowN(end, 1)
	l.hosts[host] = lim
}

// Hosts returns how many hosts have a limiter in memory.
func (l *Limits) Hosts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.hosts)
}

// forget drops the limiters of hosts that are due anyway. It requires l.mu.
func (l *Limits) forget(now time.Time) {
	for host, lim := range l.hosts {
		if lim.TokensAt(now) >= 1 {
			delete(l.hosts, host)
		}
	}
}

// untilToken returns how long until lim lets one request begin.
func untilToken(lim *rate.Limiter, now time.Time) time.Duration {
	missing := max(0, 1-lim.TokensAt(now))
	return time.Duration(math.Ceil(missing / float64(lim.Limit()) * float64(time.Second)))
}
