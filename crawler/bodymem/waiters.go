package bodymem

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A waiter is a share that waits for memory.
type waiter struct {
	share *Share
	bytes int64
	ready chan error // receives nil once the bytes are reserved, or the reason why they are not
}

// wait returns once the share has n more bytes beyond its first, or gets none. The
// caller holds the lock, and wait releases it. If limit is 0, only ctx limits the wait.
func (m *Memory) wait(ctx context.Context, s *Share, n int64, limit time.Duration) error {
	w := &waiter{share: s, bytes: n, ready: make(chan error, 1)}
	at, _ := slices.BinarySearchFunc(m.waiters, s.age, func(w *waiter, age uint64) int {
		if w.share.age <= age {
			return -1
		}
		return 1
	})
	m.waiters = slices.Insert(m.waiters, at, w)
	if s.waitCount++; s.waitCount == 1 && s.mainHeld > 0 {
		m.blockedHolders++
	}
	m.serveWaiters()
	if len(m.waiters) > 0 && m.ticker == nil {
		m.changedSinceTick, m.ticker = true, time.AfterFunc(stallTimeout, m.endYoungestIfStalled)
	}
	m.mu.Unlock()
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case err := <-w.ready:
		return err
	case <-timeout:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.waiters, w) { // it was answered in the meantime
		return <-w.ready
	}
	m.removeWaiter(w)
	defer m.serveWaiters()
	if errors.Is(ctx.Err(), context.Canceled) { // for example because the crawl stops
		return context.Cause(ctx)
	}
	return m.denyShare(s)
}

// removeWaiter removes a waiter from the queue. It requires the lock.
func (m *Memory) removeWaiter(w *waiter) {
	i := slices.Index(m.waiters, w)
	m.waiters = slices.Delete(m.waiters, i, i+1)
	if w.share.waitCount--; w.share.waitCount == 0 && w.share.mainHeld > 0 {
		m.blockedHolders--
	}
}

// cancelWaits ends the waits of a share that is closed, since such a share gives no bytes
// back. It requires the lock.
func (m *Memory) cancelWaits(s *Share) {
	for s.waitCount > 0 {
		w := m.waiters[slices.IndexFunc(m.waiters, func(w *waiter) bool { return w.share == s })]
		m.removeWaiter(w)
		w.ready <- errClosed
	}
}

// serveWaiters gives memory to the waiters, oldest first. If every share that holds memory
// waits, settle serves the oldest of these shares whose need is met by the free bytes,
// before waiters that hold nothing. If the free bytes meet no need, settle ends the
// youngest. It requires the lock.
func (m *Memory) serveWaiters() {
	for len(m.waiters) > 0 && m.fits(m.waiters[0]) {
		m.grant(m.waiters[0])
	}
	if len(m.waiters) == 0 || m.blockedHolders < len(m.holders) {
		return
	}
	for _, w := range m.waiters {
		if w.share.mainHeld > 0 && m.fits(w) {
			m.grant(w)
			return
		}
	}
	m.endYoungest(func(s *Share) bool { return s.mainHeld > 0 })
}

func (m *Memory) fits(w *waiter) bool { return m.mainUsed+w.bytes <= m.mainSize }

// grant gives a waiter the bytes that it waits for. It requires the lock.
func (m *Memory) grant(w *waiter) {
	m.removeWaiter(w)
	m.allocate(w.share, w.bytes)
	w.ready <- nil
}

// endYoungest ends the youngest waiter that may accepts. Its memory is free once its visit
// closes the share. It requires the lock.
func (m *Memory) endYoungest(isEligible func(*Share) bool) {
	for _, w := range slices.Backward(m.waiters) {
		if isEligible(w.share) {
			m.removeWaiter(w)
			w.ready <- m.denyShare(w.share)
			return
		}
	}
}

// endYoungestIfStalled ends the youngest waiter if no memory has moved since the last tick: slow visits
// or slow handlers hold the memory that it waits for. The oldest waiter of all keeps
// waiting.
func (m *Memory) endYoungestIfStalled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiters) == 0 {
		m.ticker = nil
		return
	}
	if !m.changedSinceTick {
		oldest := m.waiters[0].share.age
		for s := range m.holders {
			oldest = min(oldest, s.age)
		}
		m.endYoungest(func(s *Share) bool { return s.age != oldest && !s.reservingAhead })
	}
	m.changedSinceTick = false
	m.ticker.Reset(stallTimeout)
}
