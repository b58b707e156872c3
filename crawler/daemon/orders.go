package daemon

import (
	"errors"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// errOrders ends a run because its project is to do something else.
var errOrders = errors.New("there are new orders")

// Orders are what a project is to do. Its runner carries them out one version
// after the other, and may skip some.
type orders struct {
	version int
	wish    wish
	edition *edition // the last that made sense; nil: there is none
	fault   string   // why the file, as it is now, is not followed
	gone    bool     // the file is
	quit    bool     // the daemon ends, or the project is deleted
}

// may returns why the project cannot run, empty if it can.
func (o *orders) may() string {
	switch {
	case o.gone:
		return "its file is gone: put it back, or delete the project"
	case o.edition == nil:
		return o.fault
	}
	return ""
}

// change changes the orders. A run that goes on is ended in order, with what it
// has in hand, and followed by what is wanted now.
func (r *runner) change(change func(*orders)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command(change)
}

// command is change for who holds r.mu.
func (r *runner) command(change func(*orders)) {
	change(&r.orders)
	r.orders.version++
	if r.interrupt != nil {
		if o := r.orders; o.quit || o.wish.State != api.StateRunning || o.may() != "" {
			r.enter(api.StatePausing, "")
		}
		r.interrupt(errOrders)
	}
	r.changed.Broadcast()
}

// await returns the orders as soon as they are others than those of a version.
func (r *runner) await(version int) orders {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.orders.version == version {
		r.changed.Wait()
	}
	return r.orders
}

// begin makes interrupt end the run that carries a version of the orders out;
// false if that is not the newest any more.
func (r *runner) begin(version int, interrupt func(error)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.orders.version != version {
		return false
	}
	r.interrupt, r.stirred = interrupt, false
	r.enter(api.StateRunning, "")
	return true
}

// done is the end of a run that has left nothing: unless URLs were added to it,
// perhaps too late. Another looks for them.
func (r *runner) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt = nil
	if r.stirred {
		r.command(func(*orders) {})
		return
	}
	r.enter(api.StateDone, "")
}

// wakeUp has a project that is done go on: another process has found more for it.
func (r *runner) wakeUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == api.StateDone {
		r.command(func(*orders) {})
	}
}

// end is the end of a run.
func (r *runner) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt = nil
}

// enter notes what the project does from now on, and tells. It needs r.mu.
func (r *runner) enter(s api.ProjectState, why string) {
	if r.state == s && r.why == why {
		return
	}
	r.state, r.why, r.since = s, why, r.now()
	r.app.log.Info("the project is "+string(s), withWhy(why)...)
	r.hub.tell(api.Event{Type: "state", Project: r.name, State: s, Message: why})
}

func withWhy(why string) []any {
	if why == "" {
		return nil
	}
	return []any{"why", why}
}

// is is enter for who does not hold r.mu.
func (r *runner) is(s api.ProjectState, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(s, why)
}
