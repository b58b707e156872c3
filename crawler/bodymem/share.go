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
	memory          *Memory // nil: the share is not open
	url             string  // of the URL
	age             uint64  // a lower age is older
	deniedBefore    bool    // an earlier visit to the URL was ended
	reservingAhead  bool    // the share waits before the request is sent
	reservedAhead   bool    // all bytes that the visit may need were reserved ahead
	exemptFromLimit bool    // the visit is never ended: beyond what it reserved ahead it gets bytes at once
	firstBytesHeld  int64   // bytes held of the part for first bytes
	mainHeld        int64   // bytes held beyond
	aheadUnused     int64   // bytes of held that were reserved ahead and are still unused
	waitCount       int     // waiters of the share
	err             error   // why the visit was ended; nil: it was not
	closed          bool    // the share counts no more bytes
}

// OpenShare begins the share of a visit to url.
func (m *Memory) OpenShare(s *Share, url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastShareAge++
	*s = Share{memory: m, url: url, age: m.lastShareAge}
	if age, ended := m.deniedURLs[url]; ended {
		s.age, s.deniedBefore = age, true
	}
}

// ReserveAhead reserves n bytes, all that the visit may need, before the visit sends
// its request. It does nothing unless always is set or an earlier visit to the URL was
// ended. It waits some seconds at most, and then returns a *Full error. A visit with
// always is never ended later: if it needs more than n bytes, it overdraws the memory.
func (s *Share) ReserveAhead(ctx context.Context, n int64, always bool) error {
	if !always && !s.deniedBefore {
		return nil
	}
	s.memory.mu.Lock()
	s.reservingAhead = true
	err := s.reserveMain(ctx, min(n, s.memory.mainSize), reserveAheadTimeout)
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.reservingAhead = false; err == nil {
		s.reservedAhead, s.aheadUnused, s.exemptFromLimit = true, s.mainHeld, always
	}
	return err
}

// Reserve reserves n more bytes. It waits until they are free, and returns a *Full
// error if the visit gets none, or if ctx is done first.
func (s *Share) Reserve(ctx context.Context, n int64) error {
	m := s.memory
	m.mu.Lock()
	n = s.reserveWithoutWait(n)
	if n > 0 && s.exemptFromLimit && !s.closed {
		m.allocate(s, n)
		n = 0
	}
	if n == 0 {
		m.mu.Unlock()
		return nil
	}
	return s.reserveMain(ctx, n, 0)
}

// reserveWithoutWait reserves as many of n bytes as it can without waiting, from the bytes reserved
// ahead and from the part for first bytes. It returns how many are missing. It requires
// the lock.
func (s *Share) reserveWithoutWait(n int64) int64 {
	if s.closed {
		return n
	}
	fromAhead := min(n, s.aheadUnused)
	s.aheadUnused -= fromAhead
	n -= fromAhead
	m := s.memory
	if part := min(n, firstBytes-s.firstBytesHeld); part > 0 && m.firstBytesUsed+part <= m.size-m.mainSize {
		s.firstBytesHeld += part
		m.firstBytesUsed += part
		n -= part
		m.updatePeak()
	}
	return n
}

// reserveMain reserves n bytes beyond the first. The caller holds the lock, and grow releases
// it.
func (s *Share) reserveMain(ctx context.Context, n int64, limit time.Duration) error {
	m := s.memory
	if s.err != nil || s.closed || s.mainHeld+n > m.mainSize {
		defer m.mu.Unlock()
		if s.closed {
			return cmp.Or(s.err, errClosed)
		}
		return cmp.Or(s.err, errTooLong)
	}
	if m.mainUsed+n <= m.mainSize && (len(m.waiters) == 0 || s.age < m.waiters[0].share.age) {
		m.allocate(s, n)
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

// allocate gives n bytes beyond the first to s. It requires the lock.
func (m *Memory) allocate(s *Share, n int64) {
	if s.mainHeld == 0 {
		m.holders[s] = struct{}{}
		if s.waitCount > 0 {
			m.blockedHolders++
		}
	}
	s.mainHeld += n
	m.mainUsed += n
	m.changedSinceTick = true
	m.updatePeak()
}

// updatePeak updates the peak of the bytes in use. It requires the lock.
func (m *Memory) updatePeak() { m.peak = max(m.peak, m.mainUsed+m.firstBytesUsed) }

// deallocate takes n bytes beyond the first back from s. It requires the lock.
func (m *Memory) deallocate(s *Share, n int64) {
	if n == 0 {
		return
	}
	s.mainHeld -= n
	m.mainUsed -= n
	m.changedSinceTick = true
	if s.mainHeld == 0 {
		delete(m.holders, s)
		if s.waitCount > 0 {
			m.blockedHolders--
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
	if n = s.reserveWithoutWait(n); n > 0 {
		s.memory.allocate(s, n)
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
	if s.reservedAhead {
		s.aheadUnused = min(s.aheadUnused+n, s.mainHeld)
		return
	}
	m.deallocate(s, min(n, s.mainHeld))
	m.serveWaiters()
}

// ShrinkTo gives back all but n bytes, the length of the finished body. Close gives these
// back.
func (s *Share) ShrinkTo(n int64) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.reservedAhead, s.aheadUnused = false, 0
	if extra := s.firstBytesHeld + s.mainHeld - n; extra > 0 {
		fromMain := min(extra, s.mainHeld)
		m.deallocate(s, fromMain)
		fromFirst := min(extra-fromMain, s.firstBytesHeld)
		s.firstBytesHeld -= fromFirst
		m.firstBytesUsed -= fromFirst
	}
	if s.deniedBefore {
		delete(m.deniedURLs, s.url)
	}
	m.serveWaiters()
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
	m.cancelWaits(s)
	m.firstBytesUsed -= s.firstBytesHeld
	s.firstBytesHeld, s.aheadUnused, s.closed = 0, 0, true
	m.deallocate(s, s.mainHeld)
	m.serveWaiters()
}
