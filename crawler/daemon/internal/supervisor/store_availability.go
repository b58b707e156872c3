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

// A storeAvailability records whether the store of a project is available: its Redis servers answer, or
// its file can be written.
type storeAvailability struct {
	state *projectLifecycle // names the project and the servers in messages, and publishes them

	mu               sync.Mutex              // guards availableContext and setUnavailable
	availableContext context.Context         // done while the store is unavailable; its cause says why
	setUnavailable   context.CancelCauseFunc // ends availableContext
}

func newStoreAvailability(state *projectLifecycle) *storeAvailability {
	a := &storeAvailability{state: state}
	a.setAvailableLocked()
	return a
}

// setAvailableLocked marks the store as available. The caller holds a.mu, or is the only user of a.
func (a *storeAvailability) setAvailableLocked() {
	a.availableContext, a.setUnavailable = context.WithCancelCause(context.Background())
}

// record records that the store is unavailable because of err or, if err is nil, that it is available
// again. It logs and publishes each change once.
func (a *storeAvailability) record(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if previous := context.Cause(a.availableContext); (previous == nil) == (err == nil) {
		return
	}
	a.state.publishMessage(func(loaded *loadedProject) string {
		if err == nil {
			a.setAvailableLocked()
			a.state.log.Info("the project continues: its state is available again")
			return "its state is available again"
		}
		cause := explainStoreError(err, loaded)
		a.setUnavailable(cause)
		a.state.log.Error("the project waits", "why", cause)
		return cause.Error()
	})
}

// reset marks the store as available, without a message, because the project no longer uses it.
func (a *storeAvailability) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.availableContext.Err() != nil {
		a.setAvailableLocked()
	}
}

// explainStoreError returns err with an explanation for the operator: what happens next, and what to
// do about a store that is unavailable.
func explainStoreError(err error, loaded *loadedProject) error {
	if loaded == nil || !loaded.project.Store.Redis.IsUsed() {
		return fmt.Errorf("its state cannot be written for now; it continues by itself when the state can be "+
			"written: %w", err)
	}
	return fmt.Errorf("the servers of store.redis (%s) do not answer, or report an error: the project visits nothing "+
		"until they work, and then continues by itself; check that they run, and that this machine can reach them: %w",
		strings.Join(loaded.project.Store.Redis.Addresses, ", "), err)
}

// contextWhileAvailable returns a context that also ends when the store becomes unavailable. The caller
// must call stop.
func (a *storeAvailability) contextWhileAvailable(ctx context.Context) (_ context.Context, stop func()) {
	a.mu.Lock()
	availabilityCtx := a.availableContext
	a.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stopWatching := context.AfterFunc(availabilityCtx, func() { cancel(context.Cause(availabilityCtx)) })
	return ctx, func() { stopWatching(); cancel(nil) }
}

// err returns why the store is unavailable, or nil if it is available.
func (a *storeAvailability) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return context.Cause(a.availableContext)
}

// wrapIfUnavailable returns an api.Unavailable error if the store is unavailable, and err otherwise.
func (a *storeAvailability) wrapIfUnavailable(err error) error {
	if cause := a.err(); cause != nil || errors.Is(err, storage.ErrWriteStalled) {
		return api.Unavailable("%s: %w", a.state.name, cmp.Or(cause, err))
	}
	return err
}
