package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// errCommandChanged ends a run because its project is to do something else.
var errCommandChanged = errors.New("there are new orders")

// A runnerTarget is what a project is to do. Its runner carries out one revision after the other,
// and may skip some.
type runnerTarget struct {
	revision          int
	desired           desiredState
	lastValidProject  *loadedProject // the last that made sense; nil: there is none
	projectFileError  string         // why the file, as it is now, is not followed
	isProjectFileGone bool           // there is no project file
	mustQuit          bool           // the daemon ends, or the project is deleted
}

// blockedReason returns why the project cannot run, empty if it can.
func (o *runnerTarget) blockedReason() string {
	switch {
	case o.isProjectFileGone:
		return "its file is gone: put it back, or delete the project"
	case o.lastValidProject == nil:
		return o.projectFileError
	}
	return ""
}

// A projectLifecycle is the command of a projectRunner and the state that its project is in. Users
// change the command; the goroutine of the runner waits for it and reports the state.
type projectLifecycle struct {
	name       string
	log        *slog.Logger
	events     *eventBroker
	stateStore *daemonStateStore    // keeps the desired state
	stats      *projectStatsTracker // whose limits begin anew when a user starts the project

	mu                     sync.Mutex // guards the fields below
	commandChanged         sync.Cond  // on mu: command has another revision
	command                runnerTarget
	interruptRun           func(error) // ends the present run; nil: there is none
	wereURLsAddedDuringRun bool        // URLs were added to the present run
	state                  api.ProjectState
	reason                 string // why state is what it is; "" if that needs no reason
	since                  time.Time
	lastReadDigest         string // of the file as it was read last: see projectFilesDigest
	loadedProjectDigest    string // of the file that command.lastValidProject was read from
}

// newProjectLifecycle returns the state of a stopped project. It has no project file until one is
// applied.
func newProjectLifecycle(
	name string, log *slog.Logger, events *eventBroker, stateStore *daemonStateStore, stats *projectStatsTracker,
) *projectLifecycle {
	rs := &projectLifecycle{
		name: name, log: log, events: events, stateStore: stateStore, stats: stats,
		state: api.StateStopped, since: time.Now().UTC(),
	}
	rs.commandChanged.L = &rs.mu
	rs.command.desired, rs.command.isProjectFileGone = stateStore.desiredState(name), true
	if rs.command.desired.State == api.StateStopped {
		rs.reason = rs.command.desired.Reason
	}
	return rs
}

// updateCommand changes the command. It interrupts the present run, which finishes its visits
// under way; the runner then carries the new command out.
func (rs *projectLifecycle) updateCommand(update func(*runnerTarget)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.updateCommandLocked(update)
}

// updateCommandLocked is updateCommand for callers that hold rs.mu.
func (rs *projectLifecycle) updateCommandLocked(update func(*runnerTarget)) {
	update(&rs.command)
	rs.command.revision++
	if rs.interruptRun != nil {
		if o := rs.command; o.mustQuit || o.desired.State != api.StateRunning || o.blockedReason() != "" {
			rs.setLocked(api.StatePausing, "")
		}
		rs.interruptRun(errCommandChanged)
	}
	rs.commandChanged.Broadcast()
}

// waitForCommand waits until the command has another revision than version, and returns it.
func (rs *projectLifecycle) waitForCommand(version int) runnerTarget {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for rs.command.revision == version {
		rs.commandChanged.Wait()
	}
	return rs.command
}

// beginRunIfLatest begins a run for the revision version of the command, which interruptRun ends;
// it returns false if there is a newer one.
func (rs *projectLifecycle) beginRunIfLatest(version int, interruptRun func(error)) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.command.revision != version {
		return false
	}
	rs.interruptRun, rs.wereURLsAddedDuringRun = interruptRun, false
	rs.setLocked(api.StateRunning, "")
	return true
}

// markDoneUnlessURLsAdded ends a run that has found nothing more to do. If URLs were added to it,
// perhaps too late, another run looks for them.
func (rs *projectLifecycle) markDoneUnlessURLsAdded() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.interruptRun = nil
	if rs.wereURLsAddedDuringRun {
		rs.updateCommandLocked(func(*runnerTarget) {})
		return
	}
	rs.setLocked(api.StateDone, "")
}

// resumeIfDone has a project that is done go on, for another process has found URLs for it.
func (rs *projectLifecycle) resumeIfDone() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.state == api.StateDone {
		rs.updateCommandLocked(func(*runnerTarget) {})
	}
}

// resumeForNewURLs has a project go on that had nothing left, for URLs were added to it. If they
// were added to the present run, it goes on itself, unless it was at its end.
func (rs *projectLifecycle) resumeForNewURLs(toPresentRun bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.interruptRun != nil && toPresentRun {
		rs.wereURLsAddedDuringRun = true
		return
	}
	rs.updateCommandLocked(func(*runnerTarget) {})
}

// projectToInspect returns the last valid project file, nil if there is none, with the reason;
// and whether a run goes on.
func (rs *projectLifecycle) projectToInspect() (loaded *loadedProject, isRunning bool, blockedReason string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.command.lastValidProject, rs.interruptRun != nil, rs.command.blockedReason()
}

// isRunning reports whether a run goes on.
func (rs *projectLifecycle) isRunning() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.interruptRun != nil
}

// apiState returns the part of api.Project that the state is, and the last valid project file.
func (rs *projectLifecycle) apiState() (api.Project, *loadedProject) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	p := api.Project{
		Name: rs.name, State: rs.state, StateReason: rs.reason, StateSince: rs.since, FileError: rs.command.projectFileError,
	}
	return p, rs.command.lastValidProject
}

// publishMessage publishes a message about the project with its state. It holds rs.mu until then, so
// that no later state is published before it. message gets the last valid project file, which may be
// nil, and must not call rs.
func (rs *projectLifecycle) publishMessage(message func(*loadedProject) string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	text := message(rs.command.lastValidProject)
	rs.events.publish(api.Event{Type: "state", Project: rs.name, State: rs.state, Message: text})
}

// clearRunInterrupt records that no run goes on.
func (rs *projectLifecycle) clearRunInterrupt() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.interruptRun = nil
}

// setLocked records, logs and publishes a change of the state. It needs rs.mu.
func (rs *projectLifecycle) setLocked(s api.ProjectState, reason string) {
	if rs.state == s && rs.reason == reason {
		return
	}
	rs.state, rs.reason, rs.since = s, reason, time.Now().UTC()
	log := rs.log
	if reason != "" {
		log = log.With("why", reason)
	}
	log.Info("the project is " + string(s))
	rs.events.publish(api.Event{Type: "state", Project: rs.name, State: s, Message: reason})
}

// set is setLocked for callers that do not hold rs.mu.
func (rs *projectLifecycle) set(s api.ProjectState, reason string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.setLocked(s, reason)
}

// setDesired has the project run, pause or stop, and records it. A pause or a stop takes effect
// even if it cannot be recorded: the error then says that it may not survive the daemon.
func (rs *projectLifecycle) setDesired(s api.ProjectState) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	// Refuse what cannot be, and leave what is so already.
	o := rs.command
	if reason := o.blockedReason(); reason != "" && s == api.StateRunning {
		return api.Conflict("%s cannot start: %s", rs.name, reason)
	}
	if s == api.StatePaused && o.desired.State == api.StateStopped {
		return api.Conflict("%s is stopped: only what runs can pause", rs.name)
	}
	isSaved := rs.stateStore.desiredState(rs.name).State == s
	if isSaved && o.desired.State == s && (s != api.StateRunning || rs.interruptRun != nil) {
		return nil
	}
	// Record the desired state. A start that is not recorded does not happen; a pause or a stop
	// does.
	err := rs.stateStore.update(func(t *savedDaemonState) { t.DesiredStates[rs.name] = desiredState{State: s} })
	switch {
	case err != nil && s == api.StateRunning:
		return err
	case err != nil:
		err = fmt.Errorf("%s is %s, which may not survive the daemon: %w", rs.name, s, err)
	}
	// Change the command. The limits of the project begin anew before the runner sees the start.
	rs.updateCommandLocked(func(o *runnerTarget) { o.desired = desiredState{State: s} })
	if s == api.StateRunning {
		rs.stats.resetLimitUsage()
		rs.setLocked(s, "")
	}
	return err
}

// current returns the state of the project, and its reason.
func (rs *projectLifecycle) current() (api.ProjectState, string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.state, rs.reason
}

// redisStoreIdentity returns which Redis store the project file names; "" if it names none.
func (rs *projectLifecycle) redisStoreIdentity() string {
	if loaded := rs.loadedProject(); loaded != nil {
		return loaded.project.Store.Redis.StoreIdentity()
	}
	return ""
}

// loadedProject returns the last valid project file; nil if there is none.
func (rs *projectLifecycle) loadedProject() *loadedProject {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.command.lastValidProject
}

// setInactive sets the state of a project that, by o, does not run.
func (rs *projectLifecycle) setInactive(o runnerTarget) {
	switch reason := o.blockedReason(); {
	case o.isProjectFileGone:
		rs.set(api.StateStopped, reason)
	case o.desired.State == api.StateRunning:
		rs.set(api.StateFailed, reason)
	case o.desired.State == api.StatePaused:
		rs.set(api.StatePaused, o.desired.Reason)
	default:
		rs.set(api.StateStopped, o.desired.Reason)
	}
}

// setFailed reports that the project cannot go on. Others do.
func (rs *projectLifecycle) setFailed(err error) {
	rs.log.Error("the project fails; when the cause is removed, start it again", "error", err)
	rs.set(api.StateFailed, err.Error())
}

// pauseAtLimit pauses a project that has reached a limit, and records it, unless the command has
// another revision than version.
func (rs *projectLifecycle) pauseAtLimit(version int, limit error) {
	desired := desiredState{State: api.StatePaused, Reason: limit.Error()}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.command.revision != version {
		return
	}
	if err := rs.stateStore.update(func(t *savedDaemonState) { t.DesiredStates[rs.name] = desired }); err != nil {
		rs.log.Error("after a restart the project goes on beyond its limit", "error", err)
	}
	rs.command.desired = desired
	rs.setLocked(api.StatePaused, desired.Reason)
}
