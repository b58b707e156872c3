package bodymem

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A waiter is a share that waits for memory.
type waiter struct {
	share             *VisitShare
	bytes             int64
	reservationResult chan error // receives nil once the bytes are reserved, or the reason why they are not
}

// wait returns once the share has n more bytes beyond its first, or gets none. The
// caller holds the lock, and wait releases it. If limit is 0, only ctx limits the wait.
func (m *Budget) wait(ctx context.Context, s *VisitShare, n int64, limit time.Duration) error {
	w := &waiter{share: s, bytes: n, reservationResult: make(chan error, 1)}
	at, _ := slices.BinarySearchFunc(m.waiters, s.arrivalNumber, func(w *waiter, age uint64) int {
		if w.share.arrivalNumber <= age {
			return -1
		}
		return 1
	})
	m.waiters = slices.Insert(m.waiters, at, w)
	if s.waiterCount++; s.waiterCount == 1 && s.bytesFromMainPool > 0 {
		m.blockedHolderCount++
	}
	m.serveOrEndWaiters()
	if len(m.waiters) > 0 && m.stallTimer == nil {
		m.changedSinceTick, m.stallTimer = true, time.AfterFunc(stallTimeout, m.denyYoungestWaiterIfStalled)
	}
	m.mu.Unlock()
	var timeout <-chan time.Time
	if limit > 0 {
		timeout = time.After(limit)
	}
	select {
	case err := <-w.reservationResult:
		return err
	case <-timeout:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.waiters, w) { // it was answered in the meantime
		return <-w.reservationResult
	}
	m.removeWaiter(w)
	defer m.serveOrEndWaiters()
	if errors.Is(ctx.Err(), context.Canceled) { // for example because the crawl stops
		return context.Cause(ctx)
	}
	return m.denyShare(s)
}

// removeWaiter removes a waiter from the queue. It requires the lock.
func (m *Budget) removeWaiter(w *waiter) {
	i := slices.Index(m.waiters, w)
	m.waiters = slices.Delete(m.waiters, i, i+1)
	if w.share.waiterCount--; w.share.waiterCount == 0 && w.share.bytesFromMainPool > 0 {
		m.blockedHolderCount--
	}
}

// cancelWaitsOfShare ends the waits of a share that is closed, since such a share gives no bytes
// back. It requires the lock.
func (m *Budget) cancelWaitsOfShare(s *VisitShare) {
	for s.waiterCount > 0 {
		w := m.waiters[slices.IndexFunc(m.waiters, func(w *waiter) bool { return w.share == s })]
		m.removeWaiter(w)
		w.reservationResult <- errClosed
	}
}

// serveOrEndWaiters gives memory to the waiters, oldest first. If every share that holds memory
// waits, settle serves the oldest of these shares whose need is met by the free bytes,
// before waiters that hold nothing. If the free bytes meet no need, settle ends the
// youngest. It requires the lock.
func (m *Budget) serveOrEndWaiters() {
	for len(m.waiters) > 0 && m.fitsMainPool(m.waiters[0]) {
		m.grant(m.waiters[0])
	}
	if len(m.waiters) == 0 || m.blockedHolderCount < len(m.mainPoolHolders) {
		return
	}
	for _, w := range m.waiters {
		if w.share.bytesFromMainPool > 0 && m.fitsMainPool(w) {
			m.grant(w)
			return
		}
	}
	m.denyYoungestEligibleWaiter(func(s *VisitShare) bool { return s.bytesFromMainPool > 0 })
}

func (m *Budget) fitsMainPool(w *waiter) bool { return m.mainPoolUsed+w.bytes <= m.mainPoolSize }

// grant gives a waiter the bytes that it waits for. It requires the lock.
func (m *Budget) grant(w *waiter) {
	m.removeWaiter(w)
	m.allocateFromMainPool(w.share, w.bytes)
	w.reservationResult <- nil
}

// denyYoungestEligibleWaiter ends the youngest waiter that may accepts. Its memory is free once its visit
// closes the share. It requires the lock.
func (m *Budget) denyYoungestEligibleWaiter(isEligible func(*VisitShare) bool) {
	for _, w := range slices.Backward(m.waiters) {
		if isEligible(w.share) {
			m.removeWaiter(w)
			w.reservationResult <- m.denyShare(w.share)
			return
		}
	}
}

// denyYoungestWaiterIfStalled ends the youngest waiter if no memory has moved since the last tick: slow visits
// or slow handlers hold the memory that it waits for. The oldest waiter of all keeps
// waiting.
func (m *Budget) denyYoungestWaiterIfStalled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiters) == 0 {
		m.stallTimer = nil
		return
	}
	if !m.changedSinceTick {
		oldest := m.waiters[0].share.arrivalNumber
		for s := range m.mainPoolHolders {
			oldest = min(oldest, s.arrivalNumber)
		}
		m.denyYoungestEligibleWaiter(func(s *VisitShare) bool { return s.arrivalNumber != oldest && !s.isReservingAhead })
	}
	m.changedSinceTick = false
	m.stallTimer.Reset(stallTimeout)
}
