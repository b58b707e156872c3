package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// A storeAvailability says whether the state of a project can be used: whether the servers that
// keep it answer, and its file can be written. Its lock is taken before that of state.
type storeAvailability struct {
	state *projectLifecycle // names the project and the servers in messages, and publishes them

	mu               sync.Mutex              // guards the fields below
	availableContext context.Context         // done while the state cannot be used: its cause says why
	setUnavailable   context.CancelCauseFunc // ends availableContext
}

func newStoreAvailability(state *projectLifecycle) *storeAvailability {
	a := &storeAvailability{state: state}
	a.setAvailableLocked()
	return a
}

// setAvailableLocked begins a time in which the state can be used. It needs a.mu.
func (a *storeAvailability) setAvailableLocked() {
	a.availableContext, a.setUnavailable = context.WithCancelCause(context.Background())
}

// record takes note that the project's state cannot be used for now, or, if err is nil, that it
// can again.
func (a *storeAvailability) record(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if previous := context.Cause(a.availableContext); (previous == nil) == (err == nil) {
		return
	}
	a.state.publishMessage(func(loaded *loadedProject) string {
		if err == nil {
			a.setAvailableLocked()
			a.state.log.Info("the project goes on: its state can be used again")
			return "its state can be used again"
		}
		cause := explainStoreError(err, loaded)
		a.setUnavailable(cause)
		a.state.log.Error("the project waits", "why", cause)
		return cause.Error()
	})
}

// reset ends the wait for a state that is not used any more.
func (a *storeAvailability) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.availableContext.Err() != nil {
		a.setAvailableLocked()
	}
}

// explainStoreError says what to do about the state of a project that is out of reach.
func explainStoreError(err error, loaded *loadedProject) error {
	if loaded == nil || !loaded.project.Store.Redis.IsUsed() {
		return fmt.Errorf("its state cannot be written for now; it goes on by itself when it can: %w", err)
	}
	return fmt.Errorf("the servers of store.redis (%s) do not answer, or are not in order: nothing is visited until they are, and then the project goes on by itself; see that they run, and that they can be reached from here: %w",
		strings.Join(loaded.project.Store.Redis.Addresses, ", "), err)
}

// contextWhileAvailable returns a context that is done, too, when the project's state cannot be
// used.
func (a *storeAvailability) contextWhileAvailable(ctx context.Context) (_ context.Context, stop func()) {
	a.mu.Lock()
	availabilityCtx := a.availableContext
	a.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stopWatching := context.AfterFunc(availabilityCtx, func() { cancel(context.Cause(availabilityCtx)) })
	return ctx, func() { stopWatching(); cancel(nil) }
}

// err returns why the project's state cannot be used for now; nil if it can.
func (a *storeAvailability) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return context.Cause(a.availableContext)
}

// wrapIfUnavailable returns an error about the project's state as the API reports it, if the
// state is out of reach; else err.
func (a *storeAvailability) wrapIfUnavailable(err error) error {
	if cause := a.err(); cause != nil || errors.Is(err, storage.ErrWriteStalled) {
		return api.Unavailable("%s: %w", a.state.name, cmp.Or(cause, err))
	}
	return err
}
