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
	if s.waits++; s.waits == 1 && s.held > 0 {
		m.blocked++
	}
	m.settle()
	if len(m.waiters) > 0 && m.ticker == nil {
		m.moved, m.ticker = true, time.AfterFunc(stall, m.tick)
	}
	m.mu.Unlock()
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case err := <-w.ready:
		return err
	case <-late:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.waiters, w) { // it was answered in the meantime
		return <-w.ready
	}
	m.drop(w)
	defer m.settle()
	if errors.Is(ctx.Err(), context.Canceled) { // for example because the crawl stops
		return context.Cause(ctx)
	}
	return m.fullLocked(s)
}

// drop removes a waiter from the queue. It requires the lock.
func (m *Memory) drop(w *waiter) {
	i := slices.Index(m.waiters, w)
	m.waiters = slices.Delete(m.waiters, i, i+1)
	if w.share.waits--; w.share.waits == 0 && w.share.held > 0 {
		m.blocked--
	}
}

// dropAll ends the waits of a share that is closed, since such a share gives no bytes
// back. It requires the lock.
func (m *Memory) dropAll(s *Share) {
	for s.waits > 0 {
		w := m.waiters[slices.IndexFunc(m.waiters, func(w *waiter) bool { return w.share == s })]
		m.drop(w)
		w.ready <- errClosed
	}
}

// settle gives memory to the waiters, oldest first. If every share that holds memory
// waits, settle serves the oldest of these shares whose need is met by the free bytes,
// before waiters that hold nothing. If the free bytes meet no need, settle ends the
// youngest. It requires the lock.
func (m *Memory) settle() {
	for len(m.waiters) > 0 && m.fits(m.waiters[0]) {
		m.grant(m.waiters[0])
	}
	if len(m.waiters) == 0 || m.blocked < len(m.holders) {
		return
	}
	for _, w := range m.waiters {
		if w.share.held > 0 && m.fits(w) {
			m.grant(w)
			return
		}
	}
	m.end(func(s *Share) bool { return s.held > 0 })
}

func (m *Memory) fits(w *waiter) bool { return m.used+w.bytes <= m.long }

// grant gives a waiter the bytes that it waits for. It requires the lock.
func (m *Memory) grant(w *waiter) {
	m.drop(w)
	m.take(w.share, w.bytes)
	w.ready <- nil
}

// end ends the youngest waiter that may accepts. Its memory is free once its visit
// closes the share. It requires the lock.
func (m *Memory) end(may func(*Share) bool) {
	for _, w := range slices.Backward(m.waiters) {
		if may(w.share) {
			m.drop(w)
			w.ready <- m.fullLocked(w.share)
			return
		}
	}
}

// tick ends the youngest waiter if no memory has moved since the last tick: slow visits
// or slow handlers hold the memory that it waits for. The oldest waiter of all keeps
// waiting.
func (m *Memory) tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiters) == 0 {
		m.ticker = nil
		return
	}
	if !m.moved {
		oldest := m.waiters[0].share.age
		for s := range m.holders {
			oldest = min(oldest, s.age)
		}
		m.end(func(s *Share) bool { return s.age != oldest && !s.ahead })
	}
	m.moved = false
	m.ticker.Reset(stall)
}
