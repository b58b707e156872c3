package supervisor

import (
	"sync"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A diskFullState records which writes wait for space on the disk.
type diskFullState struct {
	mu            sync.Mutex // guards waitingWrites, lastOutputErr and storeErr
	waitingWrites int        // writes of outputs that wait
	lastOutputErr error      // why the last of them began to wait
	storeErr      error      // why the store cannot be written; nil: it can
}

// updateWaitingWrites records that a write of an output begins to wait because of err or, if err is
// nil, that its wait has ended.
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

// setStoreError records why the store cannot be written or, if err is nil, that it can be written
// again.
func (s *diskFullState) setStoreError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeErr = err
}

// currentError returns why a write waits for space on the disk, or nil if none waits. It ignores other
// failures of the store: those make the project fail.
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
