package politeness

import (
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
}

// Limits holds the limiters of one crawl. It gives permits, and it is the
// second guard of every host's rest: the first is the due time kept in the
// store, which survives a restart; this one lives in the process and does not
// trust it. Its methods may be called at the same time.
type Limits struct {
	mu       sync.Mutex
	requests *rate.Limiter
	bytes    *rate.Limiter
	hosts    map[string]*rate.Limiter
	out      map[string]int // permits given whose visits have not ended
	crowd    int            // so many hosts, and those that are due anyway are forgotten
}

// NewLimits returns the limiters for cfg.
func NewLimits(cfg LimitsConfig) *Limits {
	l := &Limits{hosts: map[string]*rate.Limiter{}, out: map[string]int{}, crowd: guards}
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
// TooEarly if the host is not due, if the rest after its last visit in this
// process is not over, if it has all its visits already, or if the crawl's own
// limit of requests is reached. A permit must come back by Ended or Release.
func (l *Limits) Admit(now time.Time, host string, notBefore time.Time, slots int) (Permit, error) {
	if early := notBefore.Sub(now); early > 0 {
		return Permit{}, TooEarly(early)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if lim := l.hosts[host]; lim != nil {
		if early := untilToken(lim, now); early > slack {
			return Permit{}, TooEarly(early)
		}
	}
	if l.out[host] >= max(slots, 1) {
		return Permit{}, TooEarly(time.Second)
	}
	if l.requests != nil && !l.requests.AllowN(now, 1) {
		return Permit{}, TooEarly(max(untilToken(l.requests, now), time.Nanosecond))
	}
	l.out[host]++
	return Permit{host: host, at: now}, nil
}

// Release takes back a permit whose visit is not made.
func (l *Limits) Release(p Permit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back(p.host)
}

// back notes that one visit to host less is under way. It requires l.mu.
func (l *Limits) back(host string) {
	if l.out[host]--; l.out[host] <= 0 {
		delete(l.out, host)
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
	missing := 1 - lim.TokensAt(now)
	return time.Duration(missing / float64(lim.Limit()) * float64(time.Second))
}
