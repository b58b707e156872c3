package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/storage"
)

// A storeAvailability says whether the servers that keep a project's state answer. It is that
// of the runner, which guards it by its lock.
type storeAvailability struct {
	availableContext context.Context // done while they do not: its cause says why
	setUnavailable   context.CancelCauseFunc
}

func newStoreAvailability() storeAvailability {
	ctx, setUnavailable := context.WithCancelCause(context.Background())
	return storeAvailability{ctx, setUnavailable}
}

// recordStoreAvailability takes note that the project's state cannot be used for now, or, if err is
// nil, that it can again.
func (r *projectRunner) recordStoreAvailability(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	previous := context.Cause(r.storeAvailability.availableContext)
	if (previous == nil) == (err == nil) {
		return
	}
	if err == nil {
		r.storeAvailability = newStoreAvailability()
		r.env.Log.Info("the project goes on: its state can be used again")
		r.eventBroker.publish(api.Event{Type: "state", Project: r.name, State: r.state, Message: "its state can be used again"})
		return
	}
	cause := r.explainStoreError(err)
	r.storeAvailability.setUnavailable(cause)
	r.env.Log.Error("the project waits", "why", cause)
	r.eventBroker.publish(api.Event{Type: "state", Project: r.name, State: r.state, Message: cause.Error()})
}

// resetStoreAvailability is the end of waiting for a state that is not used any more.
func (r *projectRunner) resetStoreAvailability() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.storeAvailability.availableContext.Err() != nil {
		r.storeAvailability = newStoreAvailability()
	}
}

// explainStoreError says what to do about a state that is out of reach. It needs r.mu.
func (r *projectRunner) explainStoreError(err error) error {
	if r.command.lastValidProject == nil || !r.command.lastValidProject.project.Store.Redis.IsUsed() {
		return fmt.Errorf("its state cannot be written for now; it goes on by itself when it can: %w", err)
	}
	return fmt.Errorf("the servers of store.redis (%s) do not answer, or are not in order: nothing is visited until they are, and then the project goes on by itself; see that they run, and that they can be reached from here: %w",
		strings.Join(r.command.lastValidProject.project.Store.Redis.Addresses, ", "), err)
}

// contextWhileStoreAvailable returns a context that is done, too, when the project's state cannot
// be used.
func (r *projectRunner) contextWhileStoreAvailable(ctx context.Context) (_ context.Context, stop func()) {
	r.mu.Lock()
	availabilityCtx := r.storeAvailability.availableContext
	r.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stopWatching := context.AfterFunc(availabilityCtx, func() { cancel(context.Cause(availabilityCtx)) })
	return ctx, func() { stopWatching(); cancel(nil) }
}

// storeAvailabilityError returns why the project's state cannot be used for now, nil if it can.
func (r *projectRunner) storeAvailabilityError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return context.Cause(r.storeAvailability.availableContext)
}

// wrapErrorIfUnavailable returns an error about the project's state as the API tells it, if it
// is that the state is out of reach.
func (r *projectRunner) wrapErrorIfUnavailable(err error) error {
	if cause := r.storeAvailabilityError(); cause != nil || errors.Is(err, storage.ErrWriteStalled) {
		return api.Unavailable("%s: %w", r.name, cmp.Or(cause, err))
	}
	return err
}

// retryCommandLater has the orders carried out again in a while: what they need is out of
// reach.
func (r *projectRunner) retryCommandLater(cause error) {
	r.recordStoreAvailability(cause)
	r.setState(api.StateRunning, "")
	time.AfterFunc(engine.UnavailableRetryInterval, func() { r.updateRunnerCommand(func(*runnerCommand) {}) })
}

// hasRemoteStore reports whether the project's state is where others work on it.
func (r *projectRunner) hasRemoteStore() bool {
	loaded := r.loadedProject()
	return loaded != nil && loaded.project.Store.Redis.IsUsed()
}
