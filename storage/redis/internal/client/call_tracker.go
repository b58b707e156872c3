package client

import (
	"context"
	"sync"

	"github.com/decorum-crawler/decorum/storage"
)

// A callTracker lets calls begin until it is closed. Closing it cancels the calls that run, and
// waits for their end.
type callTracker struct {
	closing context.Context // done with storage.ErrClosed after close was called
	cancel  context.CancelCauseFunc

	mu     sync.RWMutex // guards closed; calls hold it for reading until they end
	closed bool
}

func newCallTracker() *callTracker {
	t := &callTracker{}
	t.closing, t.cancel = context.WithCancelCause(context.Background())
	return t
}

// BeginCall begins a call. It returns an error if ctx is done, and storage.ErrClosed if the tracker
// is closed. The returned context is done when ctx is, or when the tracker is closed. The caller must
// call end when the call is over.
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

// close cancels the calls that run, waits for their end, and calls last, whose error it returns. It
// returns storage.ErrClosed if it was called before.
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
