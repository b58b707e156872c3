package crawler

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// lagTick is how often a lagMeter measures.
const lagTick = 100 * time.Millisecond

// A machine was too busy for a visit if timers were late for lagShare of the visit's
// time, and for at least minLag in total: a shorter lag makes no visit with a
// reasonable time limit time out. On 2 idle processors the share is below 0.01; with 8
// other computing processes it is 0.1, with 64 busy goroutines 0.2, with 500 of them
// 0.5.
const (
	lagShare = 0.1
	minLag   = 500 * time.Millisecond
	// maxExcused is how many time-outs in a row are not charged to a host because the
	// machine was too busy. The limit lets a machine that is always busy find dead
	// hosts, too.
	maxExcused = 3
)

// A lagMeter measures, while visits are under way, how late the timers of this process
// fire, because it has too many goroutines to run or because the machine is busy with
// other processes. In a bubble of testing/synctest timers are never late.
type lagMeter struct {
	mu     sync.Mutex    // guards all that follows
	visits int           // under way
	lag    time.Duration // in sum
	due    time.Time     // of the next tick
	timer  *time.Timer
}

// begin records that a visit is under way, and returns the lag so far. The caller must
// call end.
func (m *lagMeter) begin() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.visits++; m.visits == 1 {
		m.next()
	}
	return m.lag
}

// end records that a visit is over, and returns the lag so far.
func (m *lagMeter) end() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.measure()
	if m.visits--; m.visits == 0 {
		m.timer.Stop()
	}
	return m.lag
}

// tick measures, and waits for the next tick.
func (m *lagMeter) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.visits > 0 {
		m.measure()
		m.next()
	}
}

// next waits for the next tick. It requires m.mu.
func (m *lagMeter) next() {
	m.due = time.Now().Add(lagTick)
	if m.timer == nil {
		m.timer = time.AfterFunc(lagTick, m.tick)
	} else {
		m.timer.Reset(lagTick)
	}
}

// measure adds the lateness of the present tick. It requires m.mu.
func (m *lagMeter) measure() {
	if now := time.Now(); now.After(m.due) {
		m.lag += now.Sub(m.due)
		m.due = now
	}
}

// excuse reports whether a time-out of l's host is not charged to it, because this
// machine is too busy.
func (ms *memos) excuse(l storage.Lease) bool {
	m := ms.of(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.excused++
	return m.excused <= maxExcused
}

// late reports whether the machine was too busy during v.
func (*lagMeter) late(v *Visit) bool {
	return v.lag >= minLag && float64(v.lag) > lagShare*float64(v.End.Sub(v.Start))
}
