package supervisor

import (
	"sync"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A diskFullState records which files wait for room on the disk.
type diskFullState struct {
	mu            sync.Mutex // guards the fields below
	waitingWrites int        // writes of outputs that wait
	lastOutputErr error      // why the last of them began to wait
	storeErr      error      // why the state cannot be written; nil: it can
}

// updateWaitingWrites records that a write of an output waits, or, if err is nil, that it no
// longer waits.
func (s *diskFullState) updateWaitingWrites(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.waitingWrites--
		return
	}
	s.waitingWrites++
	s.lastOutputErr = err
}

// setStoreError records that the state cannot be written, or, if err is nil, that it can be
// written again.
func (s *diskFullState) setStoreError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeErr = err
}

// currentError returns the error of a file that waits for room; nil if no file waits. Another
// failure of the state is not a shortage: it makes the project fail.
func (s *diskFullState) currentError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waitingWrites > 0:
		return s.lastOutputErr
	case disk.IsFull(s.storeErr):
		return s.storeErr
	}
	return nil
}
