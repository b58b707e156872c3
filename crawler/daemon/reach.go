package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// A reach says whether the servers that keep a project's state answer. It is that
// of the runner, which guards it by its lock.
type reach struct {
	ctx  context.Context // done while they do not: its cause says why
	lose context.CancelCauseFunc
}

func newReach() reach {
	ctx, lose := context.WithCancelCause(context.Background())
	return reach{ctx, lose}
}

// retryServers is how long after servers did not answer they are asked again.
const retryServers = 2 * time.Second

// stalled takes note that the project's state cannot be used for now, or, if err is
// nil, that it can again.
func (r *runner) stalled(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := context.Cause(r.reach.ctx)
	if (was == nil) == (err == nil) {
		return
	}
	if err == nil {
		r.reach = newReach()
		r.app.log.Info("the project goes on: its state can be used again")
		r.hub.tell(api.Event{Type: "state", Project: r.name, State: r.state, Message: "its state can be used again"})
		return
	}
	lost := r.blame(err)
	r.reach.lose(lost)
	r.app.log.Error("the project waits", "why", lost)
	r.hub.tell(api.Event{Type: "state", Project: r.name, State: r.state, Message: lost.Error()})
}

// forgetReach is the end of waiting for a state that is not used any more.
func (r *runner) forgetReach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reach.ctx.Err() != nil {
		r.reach = newReach()
	}
}

// blame says what to do about a state that is out of reach. It needs r.mu.
func (r *runner) blame(err error) error {
	if r.orders.edition == nil || !r.orders.edition.project.Store.Redis.isUsed() {
		return fmt.Errorf("its state cannot be written for now; it goes on by itself when it can: %w", err)
	}
	return fmt.Errorf("the servers of store.redis (%s) do not answer, or are not in order: nothing is visited until they are, and then the project goes on by itself; see that they run, and that they can be reached from here: %w",
		strings.Join(r.orders.edition.project.Store.Redis.Addresses, ", "), err)
}

// withinReach returns a context that is done, too, when the project's state cannot
// be used.
func (r *runner) withinReach(ctx context.Context) (_ context.Context, stop func()) {
	r.mu.Lock()
	reach := r.reach.ctx
	r.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(reach, func() { cancel(context.Cause(reach)) })
	return ctx, func() { unwatch(); cancel(nil) }
}

// lost returns why the project's state cannot be used for now, nil if it can.
func (r *runner) lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return context.Cause(r.reach.ctx)
}

// unavailable returns an error about the project's state as the API tells it, if it
// is that the state is out of reach.
func (r *runner) unavailable(err error) error {
	if lost := r.lost(); lost != nil || errors.Is(err, storage.ErrStalled) {
		return api.Unavailable("%s: %w", r.name, cmp.Or(lost, err))
	}
	return err
}

// tryAgain has the orders carried out again in a while: what they need is out of
// reach.
func (r *runner) tryAgain(why error) {
	r.stalled(why)
	r.is(api.StateRunning, "")
	time.AfterFunc(retryServers, func() { r.change(func(*orders) {}) })
}

// isRemote reports whether the project's state is where others work on it.
func (r *runner) isRemote() bool {
	ed := r.edition()
	return ed != nil && ed.project.Store.Redis.isUsed()
}
