package bodymem

import (
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/memlimit"
)

const (
	// MinSize is the least size of a Budget, in bytes: it holds a robots.txt and its copies.
	MinSize = 8 << 20
	// fallbackSize is the size of a Budget if the process's memory limit is unknown.
	fallbackSize = 256 << 20
	// firstBytes is how many bytes of each visit come from the part for first bytes.
	firstBytes = 64 << 10
	// stallTimeout is how long visits wait while no memory is reserved or released; then one ends.
	stallTimeout = time.Second
	// reserveAheadTimeout is how long a visit waits for memory before its request is sent.
	reserveAheadTimeout = 5 * time.Second
	// maxDeniedURLs is how many URLs with an ended visit are remembered.
	maxDeniedURLs = 1 << 14
	// warnInterval is how long no visit must have ended for the next one to be worth a warning.
	warnInterval = 10 * time.Minute
)

// A Budget is the memory that all bodies together may take. Its methods are safe for concurrent use.
type Budget struct {
	size         int64
	mainPoolSize int64 // part of size for bytes beyond the first bytes of each visit
	buffers      bufferPools

	// mu guards firstBytesUsed, mainPoolUsed, peak, mainPoolHolders, blockedHolderCount, waiters,
	// changedSinceTick, stallTimer, lastArrivalNumber, deniedURLAges, deniedVisitCount, lastDenialTime
	// and the fields of each VisitShare of the Budget that change after OpenShare.
	mu                 sync.Mutex
	firstBytesUsed     int64                    // reserved bytes of the part for first bytes
	mainPoolUsed       int64                    // reserved bytes of mainPoolSize
	peak               int64                    // the largest sum of both
	mainPoolHolders    map[*VisitShare]struct{} // shares that hold bytes of the main pool
	blockedHolderCount int                      // mainPoolHolders that wait for more
	waiters            []*waiter                // oldest visit first
	changedSinceTick   bool                     // memory was reserved or released since stallTimer last fired
	stallTimer         *time.Timer              // calls denyYoungestWaiterIfStalled; nil: it is not running
	lastArrivalNumber  uint64                   // arrival number of the newest VisitShare
	deniedURLAges      map[string]uint64        // arrival numbers of URLs with an ended visit, for their next visit
	deniedVisitCount   int64                    // ended visits
	lastDenialTime     time.Time                // when the last visit was ended
}

// New returns a Budget of size bytes. It returns an error if size is below MinSize.
func New(size int64) (*Budget, error) {
	if size < MinSize {
		return nil, fmt.Errorf("%d bytes are too few for the bodies of responses: at least %d MiB are needed", size,
			MinSize>>20)
	}
	return &Budget{size: size, mainPoolSize: size - size/8, mainPoolHolders: map[*VisitShare]struct{}{},
		deniedURLAges: map[string]uint64{}}, nil
}

// NewDefault returns a Budget of DefaultSize.
func NewDefault() *Budget {
	m, err := New(DefaultSize())
	if err != nil {
		panic(err) // unreachable: DefaultSize is at least MinSize
	}
	return m
}

// DefaultSize returns a quarter of the memory that the process may use, in bytes, but at least
// MinSize. The memory is the least of GOMEMLIMIT, the control group and the machine. DefaultSize
// returns 256 MiB if none of these is known.
func DefaultSize() int64 {
	if limit := memlimit.Get().Bytes; limit > 0 {
		return max(limit/4, MinSize)
	}
	return fallbackSize
}

// Size returns how many bytes all bodies together may take.
func (m *Budget) Size() int64 { return m.size }

// MaxBodyLen returns the length in bytes of the longest body that the whole memory can hold in the
// given number of copies. It accounts for the larger buffer into which a growing body is copied.
func (m *Budget) MaxBodyLen(copies int64) int64 { return m.mainPoolSize / (2 * copies) }

// Usage is the current use of a Budget.
type Usage struct {
	Bytes, PeakBytes int64 // reserved now, and the most at any time
	WaitingVisits    int   // visits that wait for memory
	DeniedVisits     int64 // visits that were ended because they got no memory
}

// Usage returns the current use of the Budget. That of a nil Budget is zero.
func (m *Budget) Usage() Usage {
	if m == nil {
		return Usage{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return Usage{Bytes: m.firstBytesUsed + m.mainPoolUsed, PeakBytes: m.peak, WaitingVisits: len(m.waiters),
		DeniedVisits: m.deniedVisitCount}
}

// A FullError is the error of a visit that got no memory for its body, because it waited too long
// or because all visits with memory waited. It is of Kind decorum.LocalFailure.
type FullError struct {
	MemorySize    int64 // size of the Budget, in bytes
	FirstInSeries bool  // no visit was ended in the ten minutes before
}

// Error says that the memory is full and what happens to the URL.
func (f *FullError) Error() string {
	return fmt.Sprintf("the bodies of other visits take all of their memory (%d MiB); the URL is visited again later",
		f.MemorySize>>20)
}

// Unwrap returns decorum.LocalFailure, for errors.Is.
func (*FullError) Unwrap() error { return decorum.LocalFailure }

// denyShare records that the visit of s got no memory, and returns its error. The caller holds m.mu.
func (m *Budget) denyShare(s *VisitShare) error {
	now := time.Now()
	s.err = &FullError{MemorySize: m.size,
		FirstInSeries: m.lastDenialTime.IsZero() || now.Sub(m.lastDenialTime) > warnInterval}
	m.lastDenialTime = now
	m.deniedVisitCount++
	// Remember the URL's age for its next visit; if there are too many URLs, drop arbitrary ones.
	for key := range m.deniedURLAges {
		if len(m.deniedURLAges) < maxDeniedURLs {
			break
		}
		delete(m.deniedURLAges, key)
	}
	m.deniedURLAges[s.url] = s.arrivalNumber
	return s.err
}
