package supervisor

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// reloadProjects reads all project files, and has the projects follow those that changed.
func (s *Supervisor) reloadProjects() []api.ProjectReloadResult {
	s.projectFilesMu.Lock()
	defer s.projectFilesMu.Unlock()
	if s.isShuttingDown {
		return nil
	}
	names, nonProject, err := s.folder.list()
	if err != nil {
		return nil // the projects go on as they are
	}
	for _, name := range s.projectNamesWithData() {
		names[name] = true
	}
	for _, r := range s.runners.all() {
		names[r.name] = true
	}
	var result []api.ProjectReloadResult
	for _, name := range slices.Sorted(maps.Keys(names)) {
		result = append(result, s.reloadProject(name))
	}
	return append(result, s.folder.reportNonProjectFiles(nonProject)...)
}

// reloadProject has a project follow its file as it is now, and says what changed.
func (s *Supervisor) reloadProject(name string) api.ProjectReloadResult {
	r, err := s.runners.find(name)
	if err == nil {
		return s.reloadProjectFile(r)
	}
	r = s.newProjectRunner(name)
	result := s.reloadProjectFile(r)
	if s.startNewProjects && result.Outcome == "new" && !s.stateStore.hasDesiredState(name) {
		if err := r.state.setDesired(api.StateRunning); err != nil {
			r.env.Log.Error("the new project is not started", "error", err)
		}
	}
	s.runners.addAndStart(r)
	return result
}

// reloadProjectFile reads the file of a project, and changes its orders.
func (s *Supervisor) reloadProjectFile(r *projectRunner) api.ProjectReloadResult {
	text, err := readProjectFileBytes(s.projectFilePath(r.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.state.handleProjectFileGone(func() *loadedProject { return s.loader.lastValidProject(r.name) })
	case err != nil:
		return r.state.rejectFile(err.Error(), "", r.state.loadedProject())
	}
	byAPI := s.stateStore.isProjectFileFromAPI(r.name, text)
	digestOf := func(text []byte, loaded *loadedProject) string { return projectFilesDigest(text, byAPI, loaded) }
	if unchanged := r.state.reloadResultIfUnchanged(digestOf(text, r.state.loadedProject())); unchanged != nil {
		return *unchanged
	}
	loaded, err := s.loader.parseAndValidateProject(r.name, text, byAPI)
	if err != nil {
		lastValid := r.state.loadedProject()
		if lastValid == nil {
			lastValid = s.loader.lastValidProject(r.name)
		}
		return r.state.rejectFile(err.Error(), digestOf(text, lastValid), lastValid)
	}
	return r.state.applyReloadedProject(loaded, digestOf(text, loaded))
}

// reloadResultIfUnchanged returns what is known of the file with a stamp; nil if that is news, or
// if the file made no sense: that may be for the sake of another file, which it names
// and which is there now.
func (rs *runnerState) reloadResultIfUnchanged(digest string) *api.ProjectReloadResult {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.lastReadDigest != digest || rs.command.isProjectFileGone || rs.command.projectFileError != "" {
		return nil
	}
	return &api.ProjectReloadResult{Project: rs.name, Outcome: "none"}
}

// applyReloadedProject makes the project one of another edition: a run that goes on is ended in
// order, and goes on as that says. It is not if the file is again what it was
// before it made no sense.
func (rs *runnerState) applyReloadedProject(loaded *loadedProject, digest string) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "changed"}
	if rs.clearFileErrorIfReverted(digest) {
		result.Outcome = "none"
		return result
	}
	rs.updateCommand(func(o *runnerCommand) {
		if o.lastValidProject == nil {
			result.Outcome = "new"
		}
		o.lastValidProject, o.projectFileError, o.isProjectFileGone, rs.lastReadDigest, rs.loadedProjectDigest = loaded, "", false, digest, digest
	})
	rs.log.Info("the project file is followed")
	rs.events.publish(api.Event{Type: "file", Project: rs.name, Message: result.Outcome})
	return result
}

// clearFileErrorIfReverted takes back that the file is not followed, if its stamp is that of the
// edition that is.
func (rs *runnerState) clearFileErrorIfReverted(digest string) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.loadedProjectDigest != digest || rs.command.isProjectFileGone {
		return false
	}
	rs.command.projectFileError, rs.lastReadDigest = "", digest
	return true
}

// rejectFile has the project go on as it was: its file makes no sense. last is the
// edition for a project that has followed none in this process; nil: there is none.
func (rs *runnerState) rejectFile(reason, digest string, lastValid *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "refused", Error: reason}
	rs.mu.Lock()
	isKnown, hasNoRevision := rs.lastReadDigest == digest && rs.command.projectFileError == reason, rs.command.lastValidProject == nil && (lastValid != nil || rs.command.revision == 0) || rs.command.isProjectFileGone
	rs.command.projectFileError, rs.lastReadDigest = reason, digest
	rs.mu.Unlock()
	if isKnown && !hasNoRevision {
		return result
	}
	if hasNoRevision {
		rs.updateCommand(func(o *runnerCommand) {
			o.isProjectFileGone = false
			if o.lastValidProject == nil {
				o.lastValidProject = lastValid
			}
		})
	}
	if !isKnown {
		outcome := "the project goes on as it was"
		if hasNoRevision && lastValid == nil {
			outcome = "the project waits for one that makes sense"
		}
		rs.log.Error("the project file is not followed; "+outcome, "error", reason)
		rs.events.publish(api.Event{Type: "file", Project: rs.name, Message: reason})
	}
	return result
}

// handleProjectFileGone stops the project, whose file is gone. Its state is kept, and if it ran it
// goes on when the file is back. last is the edition to look into its state by.
func (rs *runnerState) handleProjectFileGone(lastValid func() *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "gone"}
	rs.mu.Lock()
	isNew, wasGone := rs.command.revision == 0, rs.command.isProjectFileGone
	rs.mu.Unlock()
	switch {
	case isNew:
		loaded := lastValid()
		rs.updateCommand(func(o *runnerCommand) { o.lastValidProject = loaded })
	case wasGone:
		return result
	default:
		rs.updateCommand(func(o *runnerCommand) { o.isProjectFileGone = true })
	}
	rs.log.Warn("the project file is gone: the project is stopped, and its state kept")
	rs.events.publish(api.Event{Type: "file", Project: rs.name, Message: "the project file is gone"})
	return result
}
