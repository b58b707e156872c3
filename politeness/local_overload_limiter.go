package politeness

import (
	"sync"
	"time"
)

// A LocalOverloadLimiter limits how many visits a process makes at a time while its machine is
// overloaded. An overload halves the limit. Each time that as many visits were answered as the
// limit allows, the limit grows by one, like the congestion window of TCP (RFC 5681). It reads no
// clock. Its methods may be called concurrently.
type LocalOverloadLimiter struct {
	mu               sync.Mutex // guards inFlight, concurrencyLimit, initialLimit and lastHalved
	inFlight         int        // visits that hold a permit
	concurrencyLimit float64    // 0: no limit
	// initialLimit is the number of visits in flight when the limit was first set. A limit that
	// grows back to it is removed.
	initialLimit int
	lastHalved   time.Time
}

// loadPollInterval is how long a crawl waits before it asks again while the limit permits no visit.
const loadPollInterval = 100 * time.Millisecond

// RecordOverload records that a visit that began at start failed because the machine was
// overloaded. It ignores a visit that began before the limit was last halved, which says nothing
// about the new limit.
func (l *LocalOverloadLimiter) RecordOverload(now, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if start.Before(l.lastHalved) {
		return
	}
	if l.concurrencyLimit == 0 {
		l.initialLimit = max(l.inFlight, 1)
		l.concurrencyLimit = float64(l.initialLimit)
	}
	l.concurrencyLimit = max(1, min(l.concurrencyLimit, float64(l.inFlight))/2)
	l.lastHalved = now
}

// RecordAnswer records a visit that was answered while the machine was not overloaded.
func (l *LocalOverloadLimiter) RecordAnswer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.concurrencyLimit == 0 {
		return
	}
	if l.concurrencyLimit += 1 / l.concurrencyLimit; l.concurrencyLimit >= float64(l.initialLimit) {
		l.concurrencyLimit = 0
	}
}

// Limit returns how many visits may be made at a time, rounded down; 0: no limit.
func (l *LocalOverloadLimiter) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.concurrencyLimit)
}

// availableVisits returns how many of want visits may begin now. If that is 0, wait is how long to
// wait.
func (l *LocalOverloadLimiter) availableVisits(want int) (grant int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.concurrencyLimit == 0 {
		return want, 0
	}
	if grant = min(want, int(l.concurrencyLimit)-l.inFlight); grant <= 0 {
		return 0, loadPollInterval
	}
	return grant, 0
}

// addInFlight adds n to the number of visits that hold a permit. n is negative if permits were
// returned.
func (l *LocalOverloadLimiter) addInFlight(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight += n
}

// NetworkBreaker returns the circuit breaker of the process.
func (l *Limiter) NetworkBreaker() *NetworkBreaker { return l.sharedHosts.breaker }

// LocalOverloadLimiter returns the process's limit of concurrent visits for a machine that is
// overloaded.
func (l *Limiter) LocalOverloadLimiter() *LocalOverloadLimiter {
	return &l.sharedHosts.localOverloadLimiter
}
