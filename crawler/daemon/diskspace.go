package daemon

import "sync"

// A diskFullState records which files wait for room on the disk.
type diskFullState struct {
	mu      sync.Mutex // guards the fields below
	waiting int        // writes of outputs that wait
	output  error      // why the last of them began to wait
	state   error      // why the state cannot be written; nil: it can
}

// ofOutput records that a write of an output waits, or, if err is nil, that it no
// longer waits.
func (s *diskFullState) ofOutput(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.waiting--
		return
	}
	s.waiting++
	s.output = err
}

// ofState records that the state cannot be written, or, if err is nil, that it can be
// written again.
func (s *diskFullState) ofState(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = err
}

// why returns the error of a file that waits for room; nil if no file waits. Another
// failure of the state is not a shortage: it makes the project fail.
func (s *diskFullState) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waiting > 0:
		return s.output
	case passing(s.state):
		return s.state
	}
	return nil
}
