package politeness

import (
	"sync"
	"time"
)

// Load limits how many visits a process makes at a time while its machine is too busy
// for more. The limit is halved when visits suffer from it, and grows by one after as
// many answered visits as it allows, as the window of a TCP connection does (RFC 5681).
// It has no clock of its own. Its methods may be called concurrently.
type Load struct {
	mu           sync.Mutex // guards the fields below
	inFlight     int        // visits that have a permit
	limit        float64    // 0: no limit
	initialLimit int        // visits in flight when the limit was first set: a limit this high is removed
	cut          time.Time  // when the limit was last halved
}

// loadPoll is how long to wait when the limit permits no visit.
const loadPoll = 100 * time.Millisecond

// Overloaded records that a visit begun at start failed because the machine was too
// busy. A visit that began before the limit was halved is not evidence about the new
// limit.
func (l *Load) Overloaded(now, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if start.Before(l.cut) {
		return
	}
	if l.limit == 0 {
		l.initialLimit = max(l.inFlight, 1)
		l.limit = float64(l.initialLimit)
	}
	l.limit = max(1, min(l.limit, float64(l.inFlight))/2)
	l.cut = now
}

// Answered records a visit that was answered while the machine was not too busy.
func (l *Load) Answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit == 0 {
		return
	}
	if l.limit += 1 / l.limit; l.limit >= float64(l.initialLimit) {
		l.limit = 0
	}
}

// Limit returns how many visits may be made at a time; 0: no limit.
func (l *Load) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.limit)
}

// ready returns how many of want visits may begin now, and, if none, how long to wait.
func (l *Load) ready(want int) (grant int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit == 0 {
		return want, 0
	}
	if grant = min(want, int(l.limit)-l.inFlight); grant <= 0 {
		return 0, loadPoll
	}
	return grant, 0
}

// begin records that a visit has a permit, end that the permit was returned.
func (l *Load) begin() { l.add(1) }
func (l *Load) end()   { l.add(-1) }

func (l *Load) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight += n
}

// Breaker returns the circuit breaker of the process.
func (l *Limits) Breaker() *Breaker { return l.hosts.breaker }

// Load returns the process's limit of concurrent visits while its machine is too busy.
func (l *Limits) Load() *Load { return &l.hosts.load }

// endVisit records that a visit of the process has ended.
func (l *Limits) endVisit(g *grant) {
	l.hosts.load.end()
	l.hosts.breaker.release(g.round)
}
