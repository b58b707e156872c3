package bodymem

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// A Share is the part of a Memory that one visit holds. The zero Share holds nothing;
// Open makes it usable. Only one goroutine at a time may reserve; Close may be called
// at any time.
type Share struct {
	memory *Memory // nil: the share is not open
	key    string  // of the URL
	age    uint64  // a lower age is older
	again  bool    // an earlier visit to the URL was ended
	ahead  bool    // the share waits before the request is sent
	whole  bool    // all bytes that the visit may need were reserved ahead
	must   bool    // the visit is never ended: beyond what it reserved ahead it gets bytes at once
	first  int64   // bytes held of the part for first bytes
	held   int64   // bytes held beyond
	spare  int64   // bytes of held that were reserved ahead and are still unused
	waits  int     // waiters of the share
	err    error   // why the visit was ended; nil: it was not
	closed bool    // the share counts no more bytes
}

// Open begins the share of a visit to url.
func (m *Memory) Open(s *Share, url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.age++
	*s = Share{memory: m, key: url, age: m.age}
	if age, ended := m.returned[url]; ended {
		s.age, s.again = age, true
	}
}

// ReserveAhead reserves n bytes, all that the visit may need, before the visit sends
// its request. It does nothing unless always is set or an earlier visit to the URL was
// ended. It waits some seconds at most, and then returns a *Full error. A visit with
// always is never ended later: if it needs more than n bytes, it overdraws the memory.
func (s *Share) ReserveAhead(ctx context.Context, n int64, always bool) error {
	if !always && !s.again {
		return nil
	}
	s.memory.mu.Lock()
	s.ahead = true
	err := s.grow(ctx, min(n, s.memory.long), patience)
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.ahead = false; err == nil {
		s.whole, s.spare, s.must = true, s.held, always
	}
	return err
}

// Reserve reserves n more bytes. It waits until they are free, and returns a *Full
// error if the visit gets none, or if ctx is done first.
func (s *Share) Reserve(ctx context.Context, n int64) error {
	m := s.memory
	m.mu.Lock()
	n = s.cheap(n)
	if n > 0 && s.must && !s.closed {
		m.take(s, n)
		n = 0
	}
	if n == 0 {
		m.mu.Unlock()
		return nil
	}
	return s.grow(ctx, n, 0)
}

// cheap reserves as many of n bytes as it can without waiting, from the bytes reserved
// ahead and from the part for first bytes. It returns how many are missing. It requires
// the lock.
func (s *Share) cheap(n int64) int64 {
	if s.closed {
		return n
	}
	spare := min(n, s.spare)
	s.spare -= spare
	n -= spare
	m := s.memory
	if part := min(n, first-s.first); part > 0 && m.firsts+part <= m.size-m.long {
		s.first += part
		m.firsts += part
		n -= part
		m.note()
	}
	return n
}

// grow reserves n bytes beyond the first. The caller holds the lock, and grow releases
// it.
func (s *Share) grow(ctx context.Context, n int64, limit time.Duration) error {
	m := s.memory
	if s.err != nil || s.closed || s.held+n > m.long {
		defer m.mu.Unlock()
		if s.closed {
			return cmp.Or(s.err, errClosed)
		}
		return cmp.Or(s.err, errTooLong)
	}
	if m.used+n <= m.long && (len(m.waiters) == 0 || s.age < m.waiters[0].share.age) {
		m.take(s, n)
		m.mu.Unlock()
		return nil
	}
	return m.wait(ctx, s, n, limit)
}

var (
	// errTooLong is the error of a reservation that exceeds the whole Memory.
	errTooLong = errors.New("the body is longer than the memory for all bodies")
	// errClosed is the error of a reservation after the visit: a goroutine of net/http
	// may read a connection for a moment longer than the visit lasts.
	errClosed = errors.New("the visit is over")
)

// take gives n bytes beyond the first to s. It requires the lock.
func (m *Memory) take(s *Share, n int64) {
	if s.held == 0 {
		m.holders[s] = struct{}{}
		if s.waits > 0 {
			m.blocked++
		}
	}
	s.held += n
	m.used += n
	m.moved = true
	m.note()
}

// note updates the peak of the bytes in use. It requires the lock.
func (m *Memory) note() { m.peak = max(m.peak, m.used+m.firsts) }

// give takes n bytes beyond the first back from s. It requires the lock.
func (m *Memory) give(s *Share, n int64) {
	if n == 0 {
		return
	}
	s.held -= n
	m.used -= n
	m.moved = true
	if s.held == 0 {
		delete(m.holders, s)
		if s.waits > 0 {
			m.blocked--
		}
	}
}

// Charge counts n bytes, for a copy of a body, without waiting. It may overdraw the
// memory until other visits give bytes back. It does nothing on a nil or unopened
// Share.
func (s *Share) Charge(n int64) {
	if s == nil || s.memory == nil {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.closed {
		return
	}
	if n = s.cheap(n); n > 0 {
		s.memory.take(s, n)
	}
}

// Release gives n reserved bytes back. If the visit reserved ahead, they become
// available to this visit again.
func (s *Share) Release(n int64) {
	if s == nil || s.memory == nil {
		return
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.whole {
		s.spare = min(s.spare+n, s.held)
		return
	}
	m.give(s, min(n, s.held))
	m.settle()
}

// Finish gives back all but n bytes, the length of the finished body. Close gives these
// back.
func (s *Share) Finish(n int64) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.whole, s.spare = false, 0
	if extra := s.first + s.held - n; extra > 0 {
		beyond := min(extra, s.held)
		m.give(s, beyond)
		back := min(extra-beyond, s.first)
		s.first -= back
		m.firsts -= back
	}
	if s.again {
		delete(m.returned, s.key)
	}
	m.settle()
}

// Err returns the *Full error that ended the visit; nil if the visit was not ended.
func (s *Share) Err() error {
	if s == nil || s.memory == nil {
		return nil
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.err
}

// Close gives all bytes back and ends a wait for more. It may be called more than once.
func (s *Share) Close() {
	if s == nil || s.memory == nil {
		return
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropAll(s)
	m.firsts -= s.first
	s.first, s.spare, s.closed = 0, 0, true
	m.give(s, s.held)
	m.settle()
}
