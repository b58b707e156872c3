package redis

import (
	"sync"
)

// A callCoalescer has many wait for one call of a func that begins after they came.
type callCoalescer struct {
	callMu      sync.Mutex // held while fn is called; it comes before mu
	mu          sync.Mutex // guards pendingCall
	pendingCall *coalescedCall
}

type coalescedCall struct {
	once sync.Once
	err  error
}

// do returns the error of a call of fn that begins after do was called.
func (b *callCoalescer) do(fn func() error) error {
	b.mu.Lock()
	if b.pendingCall == nil {
		b.pendingCall = &coalescedCall{}
	}
	p := b.pendingCall
	b.mu.Unlock()
	p.once.Do(func() {
		b.callMu.Lock() // while another runs, more gather here
		defer b.callMu.Unlock()
		b.mu.Lock()
		b.pendingCall = nil
		b.mu.Unlock()
		p.err = fn()
	})
	return p.err
}
