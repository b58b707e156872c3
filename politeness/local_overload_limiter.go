package politeness

import (
	"sync"
	"time"
)

// LocalOverloadLimiter limits how many visits a process makes at a time while its machine is too busy
// for more. The limit is halved when visits suffer from it, and grows by one after as
// many answered visits as it allows, as the window of a TCP connection does (RFC 5681).
// It has no clock of its own. Its methods may be called concurrently.
type LocalOverloadLimiter struct {
	mu               sync.Mutex // guards the fields below
	inFlight         int        // visits that have a permit
	concurrencyLimit float64    // 0: no limit
	initialLimit     int        // visits in flight when the limit was first set: a limit this high is removed
	lastHalved       time.Time  // when the limit was last halved
}

// loadPollInterval is how long to wait when the limit permits no visit.
const loadPollInterval = 100 * time.Millisecond

// RecordOverload records that a visit begun at start failed because the machine was too
// busy. A visit that began before the limit was halved is not evidence about the new
// limit.
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

// RecordAnswer records a visit that was answered while the machine was not too busy.
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

// Limit returns how many visits may be made at a time; 0: no limit.
func (l *LocalOverloadLimiter) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.concurrencyLimit)
}

// availableVisits returns how many of want visits may begin now, and, if none, how long to wait.
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

// addInFlight records that n visits have a permit, or that -n permits were returned.
func (l *LocalOverloadLimiter) addInFlight(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight += n
}

// NetworkBreaker returns the circuit breaker of the process.
func (l *Limiter) NetworkBreaker() *NetworkBreaker { return l.sharedHosts.breaker }

// LocalOverloadLimiter returns the process's limit of concurrent visits while its machine is too busy.
func (l *Limiter) LocalOverloadLimiter() *LocalOverloadLimiter {
	return &l.sharedHosts.localOverloadLimiter
}
