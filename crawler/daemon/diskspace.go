package daemon

import "sync"

// A roomWait says whether files wait for room on the disk.
type roomWait struct {
	mu      sync.Mutex // guards the fields below
	waiting int        // writes of outputs that wait
	output  error      // why the last of them began to wait
	state   error      // why the state cannot be written; nil: it can
}

// ofOutput takes note that a write of an output waits, or, if err is nil, that one
// that waited has ended to.
func (s *roomWait) ofOutput(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.waiting--
		return
	}
	s.waiting++
	s.output = err
}

// ofState takes note that the state cannot be written, or, if err is nil, that it can
// again.
func (s *roomWait) ofState(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = err
}

// why returns what waits for room, nil if nothing does. A state that cannot be written
// for another reason is not a shortage: its project fails.
func (s *roomWait) why() error {
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
