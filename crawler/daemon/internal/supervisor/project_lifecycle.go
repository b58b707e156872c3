package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// errCommandChanged is the cause with which a new command ends a run.
var errCommandChanged = errors.New("the command of the project has changed")

// A runnerTarget is the command of a runner: the state that a project should be in. The runner
// carries out the revisions in order, and skips one that a newer revision has replaced.
type runnerTarget struct {
	revision          int // 0: no command yet
	desired           desiredState
	lastValidProject  *loadedProject // nil: the project never had a valid file
	projectFileError  string         // why the present file is invalid; "": it is valid
	isProjectFileGone bool           // the project has no file at present
	mustQuit          bool           // the daemon ends, or the project is deleted
}

// blockedReason returns why the project cannot run, or "" if it can.
func (o *runnerTarget) blockedReason() string {
	switch {
	case o.isProjectFileGone:
		return "its file is gone: put it back, or delete the project"
	case o.lastValidProject == nil:
		return o.projectFileError
	}
	return ""
}

// A projectLifecycle holds the command of a projectRunner and the state that its project is in. API
// calls and reloads change the command. The goroutine of the runner waits for commands and reports
// the state.
type projectLifecycle struct {
	name       string
	log        *slog.Logger
	events     *eventBroker
	stateStore *daemonStateStore    // records the desired state
	stats      *projectStatsTracker // its limits are reset when a user starts the project

	// mu guards all fields below: command, interruptRun, wereURLsAddedDuringRun, state, reason, since,
	// lastReadDigest and loadedProjectDigest.
	mu                     sync.Mutex
	commandChanged         sync.Cond // on mu; signals a new command.revision
	command                runnerTarget
	interruptRun           func(error) // ends the current run; nil: no run
	wereURLsAddedDuringRun bool        // during the current run
	state                  api.ProjectState
	reason                 string    // why the project is in state; "": that needs no reason
	since                  time.Time // when state or reason changed last
	lastReadDigest         string    // of the file that was read last: see projectFilesDigest
	loadedProjectDigest    string    // of the file that command.lastValidProject was read from
}

// newProjectLifecycle returns the lifecycle of a stopped project whose file has not been read yet.
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

// updateCommand changes the command and interrupts the current run. The run finishes its active
// visits; then the runner carries out the new command.
func (rs *projectLifecycle) updateCommand(update func(*runnerTarget)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.updateCommandLocked(update)
}

// updateCommandLocked is updateCommand. The caller holds rs.mu.
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

// waitForCommand waits until the revision of the command differs from version, and returns the command.
func (rs *projectLifecycle) waitForCommand(version int) runnerTarget {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for rs.command.revision == version {
		rs.commandChanged.Wait()
	}
	return rs.command
}

// beginRunIfLatest records that a run for revision version begins, and that interruptRun ends it. It
// returns false, and records nothing, if the command has a newer revision.
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

// markDoneUnlessURLsAdded ends a run that has no URL left. If URLs were added during the run, perhaps
// after it had looked for the last time, another run follows instead.
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

// resumeIfDone starts a new run of a project that is done, because another process has queued URLs for
// it.
func (rs *projectLifecycle) resumeIfDone() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.state == api.StateDone {
		rs.updateCommandLocked(func(*runnerTarget) {})
	}
}

// resumeForNewURLs starts a new run, because URLs were added. If they were added through the engine of
// the current run (toPresentRun), that run finds them; markDoneUnlessURLsAdded covers a run that was
// already ending.
func (rs *projectLifecycle) resumeForNewURLs(toPresentRun bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.interruptRun != nil && toPresentRun {
		rs.wereURLsAddedDuringRun = true
		return
	}
	rs.updateCommandLocked(func(*runnerTarget) {})
}

// projectToInspect returns the last valid project file (nil: none), whether the project runs, and why
// it cannot run ("": it can).
func (rs *projectLifecycle) projectToInspect() (loaded *loadedProject, isRunning bool, blockedReason string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.command.lastValidProject, rs.interruptRun != nil, rs.command.blockedReason()
}

// isRunning reports whether the project has a current run.
func (rs *projectLifecycle) isRunning() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.interruptRun != nil
}

// apiState returns the fields of api.Project that rs knows, and the last valid project file.
func (rs *projectLifecycle) apiState() (api.Project, *loadedProject) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	p := api.Project{
		Name: rs.name, State: rs.state, StateReason: rs.reason, StateSince: rs.since,
		FileError: rs.command.projectFileError,
	}
	return p, rs.command.lastValidProject
}

// publishMessage publishes a message about the project together with its state. It holds rs.mu
// throughout, so that a later state is published after it. message receives the last valid project
// file, which may be nil, and must not call methods of rs.
func (rs *projectLifecycle) publishMessage(message func(*loadedProject) string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	text := message(rs.command.lastValidProject)
	rs.events.publish(api.Event{Type: "state", Project: rs.name, State: rs.state, Message: text})
}

// clearRunInterrupt records that the run has ended.
func (rs *projectLifecycle) clearRunInterrupt() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.interruptRun = nil
}

// setLocked records, logs and publishes a change of the state. The caller holds rs.mu.
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

// set records, logs and publishes a change of the state.
func (rs *projectLifecycle) set(s api.ProjectState, reason string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.setLocked(s, reason)
}

// setDesired records that the project should run, pause or stop, and makes it do so. A pause or a stop
// takes effect even if it cannot be recorded: the error then says that it may not survive the daemon.
// It returns an api.Conflict error for a project that cannot start, or that would pause while stopped.
func (rs *projectLifecycle) setDesired(s api.ProjectState) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	// Refuse impossible transitions, and return if nothing changes. A start of a project that is
	// recorded as running but has ended its run counts as a change.
	o := rs.command
	if reason := o.blockedReason(); reason != "" && s == api.StateRunning {
		return api.Conflict("%s cannot start: %s", rs.name, reason)
	}
	if s == api.StatePaused && o.desired.State == api.StateStopped {
		return api.Conflict("%s is stopped: only a running project can pause", rs.name)
	}
	isSaved := rs.stateStore.desiredState(rs.name).State == s
	if isSaved && o.desired.State == s && (s != api.StateRunning || rs.interruptRun != nil) {
		return nil
	}
	// Record the desired state first. A start that cannot be recorded does not happen; a pause or a
	// stop happens all the same.
	err := rs.stateStore.update(func(t *savedDaemonState) { t.DesiredStates[rs.name] = desiredState{State: s} })
	switch {
	case err != nil && s == api.StateRunning:
		return err
	case err != nil:
		err = fmt.Errorf("%s is %s, which may not survive the daemon: %w", rs.name, s, err)
	}
	// Change the command. rs.mu keeps the runner from seeing a start before the limits are reset.
	rs.updateCommandLocked(func(o *runnerTarget) { o.desired = desiredState{State: s} })
	if s == api.StateRunning {
		rs.stats.resetLimitUsage()
		rs.setLocked(s, "")
	}
	return err
}

// current returns the state of the project and the reason for it.
func (rs *projectLifecycle) current() (api.ProjectState, string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.state, rs.reason
}

// redisStoreIdentity returns the identity of the Redis store that the project file names, or "" for a
// project in local files.
func (rs *projectLifecycle) redisStoreIdentity() string {
	if loaded := rs.loadedProject(); loaded != nil {
		return loaded.project.Store.Redis.StoreIdentity()
	}
	return ""
}

// loadedProject returns the last valid project file, or nil if the project never had one.
func (rs *projectLifecycle) loadedProject() *loadedProject {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.command.lastValidProject
}

// setInactive sets the state of a project that does not run under command o.
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

// setFailed reports that the project cannot continue. Other projects are not affected.
func (rs *projectLifecycle) setFailed(err error) {
	rs.log.Error("the project has failed; remove the cause, then start it again", "error", err)
	rs.set(api.StateFailed, err.Error())
}

// pauseAtLimit pauses a project that has reached a limit, and records that. It does nothing if the
// command has a newer revision than version.
func (rs *projectLifecycle) pauseAtLimit(version int, limit error) {
	desired := desiredState{State: api.StatePaused, Reason: limit.Error()}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.command.revision != version {
		return
	}
	if err := rs.stateStore.update(func(t *savedDaemonState) { t.DesiredStates[rs.name] = desired }); err != nil {
		rs.log.Error("after a restart the project continues beyond its limit", "error", err)
	}
	rs.command.desired = desired
	rs.setLocked(api.StatePaused, desired.Reason)
}
