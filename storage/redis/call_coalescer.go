package redis

import (
	"sync"
)

// A callCoalescer lets concurrent callers share calls of a function. Each caller gets the result of
// a call that began after it asked.
type callCoalescer struct {
	callMu      sync.Mutex     // serialises calls of fn; it is locked before mu
	mu          sync.Mutex     // guards pendingCall
	pendingCall *coalescedCall // the next call, if callers wait for one; nil otherwise
}

// A coalescedCall is one call of the function, shared by several callers.
type coalescedCall struct {
	once sync.Once
	err  error
}

// do returns the error of a call of fn that begins after do was called. All callers pass the same
// fn.
func (b *callCoalescer) do(fn func() error) error {
	b.mu.Lock()
	if b.pendingCall == nil {
		b.pendingCall = &coalescedCall{}
	}
	p := b.pendingCall
	b.mu.Unlock()
	p.once.Do(func() {
		b.callMu.Lock() // while another call runs, more callers join pendingCall
		defer b.callMu.Unlock()
		b.mu.Lock()
		b.pendingCall = nil
		b.mu.Unlock()
		p.err = fn()
	})
	return p.err
}
