// Package bodymem bounds the memory that the bodies of answers take.
//
// All visits of a process share one Budget. Each visit has a VisitShare of it: the visit
// reserves bytes before it reads them, and holds them until its body is no longer used.
// A visit that needs more bytes than are free waits. If every visit that holds memory
// waits, no visit could end; the youngest then ends with a *FullError, which charges
// neither its host nor its URL. The URL keeps its age, and its next visit reserves all
// that it may need before it sends the request. So a URL's visit is ended at most once,
// and the oldest visit is never ended.
//
// An eighth of the memory is for the first 64 KiB of each visit, so that long bodies
// do not keep short ones waiting.
package bodymem

import (
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/memlimit"
)

const (
	// MinSize is the least size of a Budget: it holds a robots.txt and its copies.
	MinSize = 8 << 20
	// fallbackSize is the size of a Budget if the process's memory limit is unknown.
	fallbackSize = 256 << 20
	// firstBytes is how many bytes of a visit are reserved in the part for first bytes.
	firstBytes = 64 << 10
	// stallTimeout is how long waiters may wait while no memory is given back.
	stallTimeout = time.Second
	// reserveAheadTimeout is how long a visit waits for memory before its request is sent.
	reserveAheadTimeout = 5 * time.Second
	// maxDeniedURLs is how many URLs are remembered whose visit was ended.
	maxDeniedURLs = 1 << 14
	// warnInterval is how long no visit is ended before the next one ended is worth a warning.
	warnInterval = 10 * time.Minute
)

// A Budget is the memory that all bodies together may take. Its methods may be called
// concurrently.
type Budget struct {
	size         int64
	mainPoolSize int64 // bytes of size for what exceeds the first bytes

	mu                 sync.Mutex               // guards the fields below, and those of each VisitShare
	firstBytesUsed     int64                    // bytes in use, of the part for the first bytes
	mainPoolUsed       int64                    // bytes in use, of the other part
	peak               int64                    // the most of both
	mainPoolHolders    map[*VisitShare]struct{} // that hold bytes beyond the first
	blockedHolderCount int                      // of the holders, those that wait
	waiters            []*waiter                // the oldest first
	changedSinceTick   bool                     // memory was reserved or given back since the last tick
	stallTimer         *time.Timer              // calls tick while a share waits; nil: it does not run
	lastArrivalNumber  uint64                   // of the last VisitShare
	deniedURLAges      map[string]uint64        // ages of URLs whose visit was ended
	deniedVisitCount   int64                    // visits that were ended
	lastDenialTime     time.Time                // when the last of them was
}

// New returns a Budget of size bytes. A size below MinSize is an error.
func New(size int64) (*Budget, error) {
	if size < MinSize {
		return nil, fmt.Errorf("%d bytes are too few for the bodies of answers: at least %d MiB are needed", size, MinSize>>20)
	}
	return &Budget{size: size, mainPoolSize: size - size/8, mainPoolHolders: map[*VisitShare]struct{}{}, deniedURLAges: map[string]uint64{}}, nil
}

// NewDefault returns a Budget of DefaultSize.
func NewDefault() *Budget {
	m, err := New(DefaultSize())
	if err != nil {
		panic(err) // never: it is at least MinSize
	}
	return m
}

// DefaultSize returns a quarter of the memory that the process may use, by GOMEMLIMIT,
// its control group or the machine, whichever is least, but not less than MinSize; 256 MiB
// where that is unknown.
func DefaultSize() int64 {
	if limit := memlimit.Get().Bytes; limit > 0 {
		return max(limit/4, MinSize)
	}
	return fallbackSize
}

// Size returns how many bytes bodies may take together.
func (m *Budget) Size() int64 { return m.size }

// MaxBodyLen returns the length of the longest body that the whole memory can hold in
// copies copies, including the larger buffer into which a growing body is copied.
func (m *Budget) MaxBodyLen(copies int64) int64 { return m.mainPoolSize / (2 * copies) }

// Usage is the present use of a Budget.
type Usage struct {
	Bytes, PeakBytes int64 // reserved now, and at most
	WaitingVisits    int   // visits that wait for memory
	DeniedVisits     int64 // visits that got none and were ended
}

// Usage returns the present use of the memory. That of a nil Budget is zero.
func (m *Budget) Usage() Usage {
	if m == nil {
		return Usage{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return Usage{Bytes: m.firstBytesUsed + m.mainPoolUsed, PeakBytes: m.peak, WaitingVisits: len(m.waiters), DeniedVisits: m.deniedVisitCount}
}

// FullError is the error of a visit that got no memory for its body, because the wait took
// too long or because all visits with memory waited. It is of Kind decorum.LocalFailure.
type FullError struct {
	MemorySize    int64 // of the Budget
	FirstInSeries bool  // no visit was ended for ten minutes before this one
}

// Error says what is full.
func (f *FullError) Error() string {
	return fmt.Sprintf("the bodies of other visits take all of their memory (%d MiB); the URL is visited again later",
		f.MemorySize>>20)
}

// Unwrap lets errors.Is see the Kind.
func (*FullError) Unwrap() error { return decorum.LocalFailure }

// denyShare counts a visit that got no memory, and returns its error.
func (m *Budget) denyShare(s *VisitShare) error {
	now := time.Now()
	s.err = &FullError{MemorySize: m.size, FirstInSeries: m.lastDenialTime.IsZero() || now.Sub(m.lastDenialTime) > warnInterval}
	m.lastDenialTime = now
	m.deniedVisitCount++
	for key := range m.deniedURLAges {
		if len(m.deniedURLAges) < maxDeniedURLs {
			break
		}
		delete(m.deniedURLAges, key)
	}
	m.deniedURLAges[s.url] = s.arrivalNumber
	return s.err
}
