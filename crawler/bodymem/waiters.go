package bodymem

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A waiter is a wait of a share for memory.
type waiter struct {
	share             *VisitShare
	bytes             int64      // of the main pool
	reservationResult chan error // receives nil when the bytes are reserved, or why they are not
}

// wait returns when s has n more bytes of the main pool, or why it gets none: a *FullError, or the
// cause of ctx if ctx was canceled. The caller holds m.mu, which wait releases. If limit is 0, only
// ctx limits the wait.
func (m *Budget) wait(ctx context.Context, s *VisitShare, n int64, limit time.Duration) error {
	w := &waiter{share: s, bytes: n, reservationResult: make(chan error, 1)}
	// Join the queue behind all visits that are at least as old.
	at, _ := slices.BinarySearchFunc(m.waiters, s.arrivalNumber, func(w *waiter, age uint64) int {
		if w.share.arrivalNumber <= age {
			return -1
		}
		return 1
	})
	m.waiters = slices.Insert(m.waiters, at, w)
	// A holder that waits may complete a deadlock; serveOrEndWaiters resolves it.
	if s.waiterCount++; s.waiterCount == 1 && s.bytesFromMainPool > 0 {
		m.blockedHolderCount++
	}
	m.serveOrEndWaiters()
	if len(m.waiters) > 0 && m.stallTimer == nil {
		m.changedSinceTick, m.stallTimer = true, time.AfterFunc(stallTimeout, m.denyYoungestWaiterIfStalled)
	}
	m.mu.Unlock()
	// Wait without the lock for the result, limit or ctx.
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
	if !slices.Contains(m.waiters, w) { // the result arrived in the meantime
		return <-w.reservationResult
	}
	// There was no result in time: leave the queue, and end the visit unless the crawl stops.
	m.removeWaiter(w)
	defer m.serveOrEndWaiters()
	if errors.Is(ctx.Err(), context.Canceled) { // for example because the crawl stops
		return context.Cause(ctx)
	}
	return m.denyShare(s)
}

// removeWaiter removes w from the queue. The caller holds m.mu.
func (m *Budget) removeWaiter(w *waiter) {
	i := slices.Index(m.waiters, w)
	m.waiters = slices.Delete(m.waiters, i, i+1)
	if w.share.waiterCount--; w.share.waiterCount == 0 && w.share.bytesFromMainPool > 0 {
		m.blockedHolderCount--
	}
}

// cancelWaitsOfShare ends the waits of s, which is being closed and will not release bytes again.
// The caller holds m.mu.
func (m *Budget) cancelWaitsOfShare(s *VisitShare) {
	for s.waiterCount > 0 {
		w := m.waiters[slices.IndexFunc(m.waiters, func(w *waiter) bool { return w.share == s })]
		m.removeWaiter(w)
		w.reservationResult <- errClosed
	}
}

// serveOrEndWaiters gives memory to the waiters, oldest first. If every share that holds memory
// waits, it serves the oldest of them whose demand fits the free bytes, before waiters that hold
// nothing. If no demand fits, it ends the youngest of them. The caller holds m.mu.
func (m *Budget) serveOrEndWaiters() {
	for len(m.waiters) > 0 && m.fitsMainPool(m.waiters[0]) {
		m.grant(m.waiters[0])
	}
	// Some holder does not wait, so memory will be released.
	if len(m.waiters) == 0 || m.blockedHolderCount < len(m.mainPoolHolders) {
		return
	}
	// All holders wait.
	for _, w := range m.waiters {
		if w.share.bytesFromMainPool > 0 && m.fitsMainPool(w) {
			m.grant(w)
			return
		}
	}
	m.denyYoungestEligibleWaiter(func(s *VisitShare) bool { return s.bytesFromMainPool > 0 })
}

// fitsMainPool reports whether w's demand fits the free bytes. The caller holds m.mu.
func (m *Budget) fitsMainPool(w *waiter) bool { return m.mainPoolUsed+w.bytes <= m.mainPoolSize }

// grant gives w the bytes that it waits for. The caller holds m.mu.
func (m *Budget) grant(w *waiter) {
	m.removeWaiter(w)
	m.allocateFromMainPool(w.share, w.bytes)
	w.reservationResult <- nil
}

// denyYoungestEligibleWaiter ends the visit of the youngest waiter whose share is eligible. Its
// memory is free when the visit closes the share. The caller holds m.mu.
func (m *Budget) denyYoungestEligibleWaiter(isEligible func(*VisitShare) bool) {
	for _, w := range slices.Backward(m.waiters) {
		if isEligible(w.share) {
			m.removeWaiter(w)
			w.reservationResult <- m.denyShare(w.share)
			return
		}
	}
}

// denyYoungestWaiterIfStalled is called by stallTimer. It ends the visit of the youngest waiter if
// no memory was reserved or released since the last call, because slow visits or slow handlers hold
// the memory. The oldest visit of all, and visits that reserve ahead, keep waiting.
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
		m.denyYoungestEligibleWaiter(func(s *VisitShare) bool {
			return s.arrivalNumber != oldest && !s.isReservingAhead
		})
	}
	m.changedSinceTick = false
	m.stallTimer.Reset(stallTimeout)
}
