package bodymem

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// A VisitShare is the part of a Budget that one visit holds. The zero VisitShare holds nothing;
// Budget.OpenShare makes it usable. Only one goroutine at a time may reserve; Close may be called
// at any time. Budget.mu guards the fields that change after OpenShare.
type VisitShare struct {
	memory                  *Budget // nil: the share is not open
	url                     string  // URL of the visit
	arrivalNumber           uint64  // smaller numbers are older
	deniedBefore            bool    // an earlier visit to the URL was ended
	isReservingAhead        bool    // the share waits in ReserveAheadIfNeeded
	hasReservedAhead        bool    // all bytes that the visit may need were reserved ahead
	exemptFromLimit         bool    // the visit is never ended: it may overdraw the memory
	bytesFromFirstBytesPool int64   // held bytes of the part for first bytes
	bytesFromMainPool       int64   // held bytes of the main pool
	unusedReservedBytes     int64   // part of bytesFromMainPool that was reserved ahead and is unused
	waiterCount             int     // waits of the share, in Budget.waiters
	pooledBuffer            []byte  // of ReadAllReusing; nil: Close gives no buffer back
	err                     error   // the *FullError that ended the visit; nil: it was not ended
	closed                  bool    // Close was called; the share can hold no more bytes
}

// OpenShare makes s the share of a visit to url. If an earlier visit to url was ended, s has the
// age of that visit.
func (m *Budget) OpenShare(s *VisitShare, url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastArrivalNumber++
	*s = VisitShare{memory: m, url: url, arrivalNumber: m.lastArrivalNumber}
	if age, ended := m.deniedURLAges[url]; ended {
		s.arrivalNumber, s.deniedBefore = age, true
	}
}

// ReserveAheadIfNeeded reserves n bytes, which must be all that the visit may need, before the
// visit sends its request. It does nothing unless always is set or an earlier visit to the URL was
// ended. It waits at most five seconds, and then returns a *FullError. A visit with always is not
// ended later: if it needs more than n bytes, it overdraws the memory.
func (s *VisitShare) ReserveAheadIfNeeded(ctx context.Context, n int64, always bool) error {
	if !always && !s.deniedBefore {
		return nil
	}
	s.memory.mu.Lock()
	s.isReservingAhead = true
	err := s.reserveBeyondFirstBytes(ctx, min(n, s.memory.mainPoolSize), reserveAheadTimeout)
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.isReservingAhead = false; err == nil {
		s.hasReservedAhead, s.unusedReservedBytes, s.exemptFromLimit = true, s.bytesFromMainPool, always
	}
	return err
}

// Reserve reserves n more bytes. It waits until they are free. It returns a *FullError if the visit
// gets none, the cause of ctx if ctx is canceled first, and an error if n exceeds the whole memory
// or s is closed.
func (s *VisitShare) Reserve(ctx context.Context, n int64) error {
	m := s.memory
	m.mu.Lock()
	n = s.reserveWithoutWait(n)
	if n > 0 && s.exemptFromLimit && !s.closed {
		m.allocateFromMainPool(s, n)
		n = 0
	}
	if n == 0 {
		m.mu.Unlock()
		return nil
	}
	return s.reserveBeyondFirstBytes(ctx, n, 0)
}

// reserveWithoutWait reserves as many of n bytes as it can without waiting: from the bytes reserved
// ahead, and from the part for first bytes. It returns how many are missing. The caller holds the
// Budget's mu.
func (s *VisitShare) reserveWithoutWait(n int64) int64 {
	if s.closed {
		return n
	}
	fromAhead := min(n, s.unusedReservedBytes)
	s.unusedReservedBytes -= fromAhead
	n -= fromAhead
	m := s.memory
	if part := min(n, firstBytes-s.bytesFromFirstBytesPool); part > 0 &&
		m.firstBytesUsed+part <= m.size-m.mainPoolSize {
		s.bytesFromFirstBytesPool += part
		m.firstBytesUsed += part
		n -= part
		m.updatePeak()
	}
	return n
}

// reserveBeyondFirstBytes reserves n bytes of the main pool, or waits for them. The caller holds
// the Budget's mu, which reserveBeyondFirstBytes releases.
func (s *VisitShare) reserveBeyondFirstBytes(ctx context.Context, n int64, limit time.Duration) error {
	m := s.memory
	if s.err != nil || s.closed || s.bytesFromMainPool+n > m.mainPoolSize {
		defer m.mu.Unlock()
		if s.closed {
			return cmp.Or(s.err, errClosed)
		}
		return cmp.Or(s.err, errTooLong)
	}
	if m.mainPoolUsed+n <= m.mainPoolSize &&
		(len(m.waiters) == 0 || s.arrivalNumber < m.waiters[0].share.arrivalNumber) {
		m.allocateFromMainPool(s, n)
		m.mu.Unlock()
		return nil
	}
	return m.wait(ctx, s, n, limit)
}

var (
	// errTooLong is the error of a reservation that exceeds the whole Budget.
	errTooLong = errors.New("the body is longer than the memory for all bodies")
	// errClosed is the error of a reservation after the visit: a goroutine of net/http may read
	// from a connection for a moment longer than the visit lasts.
	errClosed = errors.New("the visit is over")
)

// allocateFromMainPool gives n bytes of the main pool to s, free or not. The caller holds m.mu.
func (m *Budget) allocateFromMainPool(s *VisitShare, n int64) {
	if s.bytesFromMainPool == 0 {
		m.mainPoolHolders[s] = struct{}{}
		if s.waiterCount > 0 {
			m.blockedHolderCount++
		}
	}
	s.bytesFromMainPool += n
	m.mainPoolUsed += n
	m.changedSinceTick = true
	m.updatePeak()
}

// updatePeak updates m.peak. The caller holds m.mu.
func (m *Budget) updatePeak() { m.peak = max(m.peak, m.mainPoolUsed+m.firstBytesUsed) }

// releaseToMainPool takes n bytes of the main pool back from s. The caller holds m.mu.
func (m *Budget) releaseToMainPool(s *VisitShare, n int64) {
	if n == 0 {
		return
	}
	s.bytesFromMainPool -= n
	m.mainPoolUsed -= n
	m.changedSinceTick = true
	if s.bytesFromMainPool == 0 {
		delete(m.mainPoolHolders, s)
		if s.waiterCount > 0 {
			m.blockedHolderCount--
		}
	}
}

// Charge counts n bytes for a copy of a body, without waiting. It may overdraw the memory until
// other visits release bytes. It does nothing on a nil or unopened VisitShare.
func (s *VisitShare) Charge(n int64) {
	if s == nil || s.memory == nil {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.closed {
		return
	}
	if n = s.reserveWithoutWait(n); n > 0 {
		s.memory.allocateFromMainPool(s, n)
	}
}

// Release releases n reserved bytes. If the visit reserved ahead, they stay reserved for this visit.
func (s *VisitShare) Release(n int64) {
	if s == nil || s.memory == nil {
		return
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.hasReservedAhead {
		s.unusedReservedBytes = min(s.unusedReservedBytes+n, s.bytesFromMainPool)
		return
	}
	m.releaseToMainPool(s, min(n, s.bytesFromMainPool))
	m.serveOrEndWaiters()
}

// ShrinkTo releases all but n bytes, the size of the finished body. Close releases these.
func (s *VisitShare) ShrinkTo(n int64) {
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	s.hasReservedAhead, s.unusedReservedBytes = false, 0
	if extra := s.bytesFromFirstBytesPool + s.bytesFromMainPool - n; extra > 0 {
		fromMain := min(extra, s.bytesFromMainPool)
		m.releaseToMainPool(s, fromMain)
		fromFirst := min(extra-fromMain, s.bytesFromFirstBytesPool)
		s.bytesFromFirstBytesPool -= fromFirst
		m.firstBytesUsed -= fromFirst
	}
	if s.deniedBefore {
		delete(m.deniedURLAges, s.url)
	}
	m.serveOrEndWaiters()
}

// Err returns the *FullError that ended the visit, or nil.
func (s *VisitShare) Err() error {
	if s == nil || s.memory == nil {
		return nil
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return s.err
}

// setPooledBuffer lets Close give b to another visit.
func (s *VisitShare) setPooledBuffer(b []byte) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if !s.closed {
		s.pooledBuffer = b
	}
}

// Close releases all bytes and ends a wait for more. The body of ReadAllReusing then belongs to
// another visit. Close may be called more than once.
func (s *VisitShare) Close() {
	if s == nil || s.memory == nil {
		return
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.buffers.put(s.pooledBuffer)
	s.pooledBuffer = nil
	m.cancelWaitsOfShare(s)
	m.firstBytesUsed -= s.bytesFromFirstBytesPool
	s.bytesFromFirstBytesPool, s.unusedReservedBytes, s.closed = 0, 0, true
	m.releaseToMainPool(s, s.bytesFromMainPool)
	m.serveOrEndWaiters()
}
