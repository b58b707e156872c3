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
	ready chan error // receives nil when it has them, or why it gets none
}

// wait returns when the share has n bytes more beyond its first, or gets none. It
// requires the lock, and returns without it. A limit of 0 is none but ctx.
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
	if !slices.Contains(m.waiters, w) { // it was answered meanwhile
		return <-w.ready
	}
	m.drop(w)
	defer m.settle()
	if errors.Is(ctx.Err(), context.Canceled) { // the crawl is stopped, say
		return context.Cause(ctx)
	}
	return m.fullLocked(s)
}

// drop takes a waiter off the queue. It requires the lock.
func (m *Memory) drop(w *waiter) {
	i := slices.Index(m.waiters, w)
	m.waiters = slices.Delete(m.waiters, i, i+1)
	if w.share.waits--; w.share.waits == 0 && w.share.held > 0 {
		m.blocked--
	}
}

// dropAll ends the waiting of a share that is closed: nobody would give back what it got.
// It requires the lock.
func (m *Memory) dropAll(s *Share) {
	for s.waits > 0 {
		w := m.waiters[slices.IndexFunc(m.waiters, func(w *waiter) bool { return w.share == s })]
		m.drop(w)
		w.ready <- errClosed
	}
}

// settle gives memory to those who wait, the oldest first. If all that hold memory wait,
// it gives what there is to the oldest of them for which that is enough, before those who
// hold nothing; if there is none, it ends the youngest. It requires the lock.
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

// grant gives a waiter what it waits for. It requires the lock.
func (m *Memory) grant(w *waiter) {
	m.drop(w)
	m.take(w.share, w.bytes)
	w.ready <- nil
}

// end ends the youngest of those who wait, and of which may holds. Its memory comes
// back when it has been closed. It requires the lock.
func (m *Memory) end(may func(*Share) bool) {
	for _, w := range slices.Backward(m.waiters) {
		if may(w.share) {
			m.drop(w)
			w.ready <- m.fullLocked(w.share)
			return
		}
	}
}

// tick ends the youngest of those who wait if nothing has moved since the last tick:
// what they wait for is held by visits that are slow, or whose handlers are. The oldest
// of all goes on waiting.
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
