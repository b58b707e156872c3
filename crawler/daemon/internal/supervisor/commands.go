package supervisor

import (
	"errors"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// errCommandChanged ends a run because its project is to do something else.
var errCommandChanged = errors.New("there are new orders")

// Orders are what a project is to do. Its runner carries them out one version
// after the other, and may skip some.
type runnerCommand struct {
	revision          int
	desired           desiredState
	lastValidProject  *loadedProject // the last that made sense; nil: there is none
	projectFileError  string         // why the file, as it is now, is not followed
	isProjectFileGone bool           // the file is
	mustQuit          bool           // the daemon ends, or the project is deleted
}

// blockedReason returns why the project cannot run, empty if it can.
func (o *runnerCommand) blockedReason() string {
	switch {
	case o.isProjectFileGone:
		return "its file is gone: put it back, or delete the project"
	case o.lastValidProject == nil:
		return o.projectFileError
	}
	return ""
}

// updateRunnerCommand changes the orders. A run that goes on is ended in order, with what it
// has in hand, and followed by what is wanted now.
func (r *projectRunner) updateRunnerCommand(update func(*runnerCommand)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updateRunnerCommandLocked(update)
}

// updateRunnerCommandLocked is change for who holds r.mu.
func (r *projectRunner) updateRunnerCommandLocked(update func(*runnerCommand)) {
	update(&r.command)
	r.command.revision++
	if r.interruptRun != nil {
		if o := r.command; o.mustQuit || o.desired.State != api.StateRunning || o.blockedReason() != "" {
			r.setStateLocked(api.StatePausing, "")
		}
		r.interruptRun(errCommandChanged)
	}
	r.commandChanged.Broadcast()
}

// waitForCommand returns the orders as soon as they are others than those of a version.
func (r *projectRunner) waitForCommand(version int) runnerCommand {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.command.revision == version {
		r.commandChanged.Wait()
	}
	return r.command
}

// beginRunIfLatest makes interrupt end the run that carries a version of the orders out;
// false if that is not the newest any more.
func (r *projectRunner) beginRunIfLatest(version int, interruptRun func(error)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.command.revision != version {
		return false
	}
	r.interruptRun, r.wereURLsAddedDuringRun = interruptRun, false
	r.setStateLocked(api.StateRunning, "")
	return true
}

// markDoneUnlessURLsAdded is the end of a run that has left nothing: unless URLs were added to it,
// perhaps too late. Another looks for them.
func (r *projectRunner) markDoneUnlessURLsAdded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interruptRun = nil
	if r.wereURLsAddedDuringRun {
		r.updateRunnerCommandLocked(func(*runnerCommand) {})
		return
	}
	r.setStateLocked(api.StateDone, "")
}

// resumeIfDone has a project that is done go on: another process has found more for it.
func (r *projectRunner) resumeIfDone() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state == api.StateDone {
		r.updateRunnerCommandLocked(func(*runnerCommand) {})
	}
}

// clearRunInterrupt is the end of a run.
func (r *projectRunner) clearRunInterrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interruptRun = nil
}

// setStateLocked notes what the project does from now on, and tells. It needs r.mu.
func (r *projectRunner) setStateLocked(s api.ProjectState, reason string) {
	if r.state == s && r.stateReason == reason {
		return
	}
	r.state, r.stateReason, r.stateSince = s, reason, r.now()
	r.env.Log.Info("the project is "+string(s), reasonAttrs(reason)...)
	r.eventBroker.publish(api.Event{Type: "state", Project: r.name, State: s, Message: reason})
}

func reasonAttrs(reason string) []any {
	if reason == "" {
		return nil
	}
	return []any{"why", reason}
}

// setState is enter for who does not hold r.mu.
func (r *projectRunner) setState(s api.ProjectState, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setStateLocked(s, reason)
}
