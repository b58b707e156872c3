package crawler

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// lagTick is how often a timerLagMeter measures.
const lagTick = 100 * time.Millisecond

// A machine was too busy for a visit if timers were late for minLagShare of the visit's
// time, and for at least minLag in total: a shorter lag makes no visit with a
// reasonable time limit time out. On 2 idle processors the share is below 0.01; with 8
// other computing processes it is 0.1, with 64 busy goroutines 0.2, with 500 of them
// 0.5.
const (
	minLagShare = 0.1
	minLag      = 500 * time.Millisecond
	// maxUnchargedTimeouts is how many time-outs in a row are not charged to a host because the
	// machine was too busy. The limit lets a machine that is always busy find dead
	// hosts, too.
	maxUnchargedTimeouts = 3
)

// A timerLagMeter measures, while visits are under way, how late the timers of this process
// fire, because it has too many goroutines to run or because the machine is busy with
// other processes. In a bubble of testing/synctest timers are never late.
type timerLagMeter struct {
	mu           sync.Mutex    // guards all that follows
	activeVisits int           // under way
	totalLag     time.Duration // in sum
	nextTick     time.Time     // of the next tick
	timer        *time.Timer
}

// beginVisit records that a visit is under way, and returns the lag so far. The caller must
// call end.
func (m *timerLagMeter) beginVisit() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.activeVisits++; m.activeVisits == 1 {
		m.scheduleTick()
	}
	return m.totalLag
}

// endVisit records that a visit is over, and returns the lag so far.
func (m *timerLagMeter) endVisit() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addCurrentTickLag()
	if m.activeVisits--; m.activeVisits == 0 {
		m.timer.Stop()
	}
	return m.totalLag
}

// onTick measures, and waits for the next tick.
func (m *timerLagMeter) onTick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.activeVisits > 0 {
		m.addCurrentTickLag()
		m.scheduleTick()
	}
}

// scheduleTick waits for the next tick. It requires m.mu.
func (m *timerLagMeter) scheduleTick() {
	m.nextTick = time.Now().Add(lagTick)
	if m.timer == nil {
		m.timer = time.AfterFunc(lagTick, m.onTick)
	} else {
		m.timer.Reset(lagTick)
	}
}

// addCurrentTickLag adds the lateness of the present tick. It requires m.mu.
func (m *timerLagMeter) addCurrentTickLag() {
	if now := time.Now(); now.After(m.nextTick) {
		m.totalLag += now.Sub(m.nextTick)
		m.nextTick = now
	}
}

// tryAttributeTimeoutToMachine reports whether a time-out of l's host is not charged to it, because this
// machine is too busy.
func (ms *hostTable) tryAttributeTimeoutToMachine(l storage.Lease) bool {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.unchargedTimeouts++
	return m.unchargedTimeouts <= maxUnchargedTimeouts
}

// wasOverloadedDuringVisit reports whether the machine was too busy during v.
func (*timerLagMeter) wasOverloadedDuringVisit(v *Visit) bool {
	return v.timerLag >= minLag && float64(v.timerLag) > minLagShare*float64(v.End.Sub(v.Start))
}
