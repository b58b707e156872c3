package client

import (
	"context"
	"sync"

	"github.com/decorum-crawler/decorum/storage"
)

// A callTracker says which calls may begin and run: all, until it is closed. Closing it
// ends calls that wait for a server, and waits for the end of all.
type callTracker struct {
	closing context.Context // done with ErrClosed once close was called
	cancel  context.CancelCauseFunc

	mu     sync.RWMutex // guards closed; calls hold it for reading until they end
	closed bool
}

func newCallTracker() *callTracker {
	t := &callTracker{}
	t.closing, t.cancel = context.WithCancelCause(context.Background())
	return t
}

// BeginCall begins a call, unless ctx is done or the tracker is closed. The context that it
// returns is done when either is. The caller must call end when the call is over.
func (t *callTracker) BeginCall(ctx context.Context) (_ context.Context, end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	t.mu.RLock()
	if t.closed {
		t.mu.RUnlock()
		return nil, nil, storage.ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.closing, func() { cancel(context.Cause(t.closing)) })
	return ctx, func() {
		stop()
		cancel(nil)
		t.mu.RUnlock()
	}, nil
}

// close cancels the calls that run, waits for their end, and calls last. It returns
// storage.ErrClosed if it was called before.
func (t *callTracker) close(last func() error) error {
	t.cancel(storage.ErrClosed)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return storage.ErrClosed
	}
	t.closed = true
	return last()
}
