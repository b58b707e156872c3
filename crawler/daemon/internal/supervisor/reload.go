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
		if err := r.setDesiredState(api.StateRunning); err != nil {
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
		return r.handleProjectFileGone(func() *loadedProject { return s.loader.lastValidProject(r.name) })
	case err != nil:
		return r.rejectFile(err.Error(), "", r.loadedProject())
	}
	byAPI := s.stateStore.isProjectFileFromAPI(r.name, text)
	digestOf := func(text []byte, loaded *loadedProject) string { return projectFilesDigest(text, byAPI, loaded) }
	if unchanged := r.reloadResultIfUnchanged(digestOf(text, r.loadedProject())); unchanged != nil {
		return *unchanged
	}
	loaded, err := s.loader.parseAndValidateProject(r.name, text, byAPI)
	if err != nil {
		lastValid := r.loadedProject()
		if lastValid == nil {
			lastValid = s.loader.lastValidProject(r.name)
		}
		return r.rejectFile(err.Error(), digestOf(text, lastValid), lastValid)
	}
	return r.applyReloadedProject(loaded, digestOf(text, loaded))
}

// reloadResultIfUnchanged returns what is known of the file with a stamp; nil if that is news, or
// if the file made no sense: that may be for the sake of another file, which it names
// and which is there now.
func (r *projectRunner) reloadResultIfUnchanged(digest string) *api.ProjectReloadResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastReadDigest != digest || r.command.isProjectFileGone || r.command.projectFileError != "" {
		return nil
	}
	return &api.ProjectReloadResult{Project: r.name, Outcome: "none"}
}

// applyReloadedProject makes the project one of another edition: a run that goes on is ended in
// order, and goes on as that says. It is not if the file is again what it was
// before it made no sense.
func (r *projectRunner) applyReloadedProject(loaded *loadedProject, digest string) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: r.name, Outcome: "changed"}
	if r.clearFileErrorIfReverted(digest) {
		result.Outcome = "none"
		return result
	}
	r.updateRunnerCommand(func(o *runnerCommand) {
		if o.lastValidProject == nil {
			result.Outcome = "new"
		}
		o.lastValidProject, o.projectFileError, o.isProjectFileGone, r.lastReadDigest, r.loadedProjectDigest = loaded, "", false, digest, digest
	})
	r.env.Log.Info("the project file is followed")
	r.eventBroker.publish(api.Event{Type: "file", Project: r.name, Message: result.Outcome})
	return result
}

// clearFileErrorIfReverted takes back that the file is not followed, if its stamp is that of the
// edition that is.
func (r *projectRunner) clearFileErrorIfReverted(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loadedProjectDigest != digest || r.command.isProjectFileGone {
		return false
	}
	r.command.projectFileError, r.lastReadDigest = "", digest
	return true
}

// rejectFile has the project go on as it was: its file makes no sense. last is the
// edition for a project that has followed none in this process; nil: there is none.
func (r *projectRunner) rejectFile(reason, digest string, lastValid *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: r.name, Outcome: "refused", Error: reason}
	r.mu.Lock()
	isKnown, hasNoRevision := r.lastReadDigest == digest && r.command.projectFileError == reason, r.command.lastValidProject == nil && (lastValid != nil || r.command.revision == 0) || r.command.isProjectFileGone
	r.command.projectFileError, r.lastReadDigest = reason, digest
	r.mu.Unlock()
	if isKnown && !hasNoRevision {
		return result
	}
	if hasNoRevision {
		r.updateRunnerCommand(func(o *runnerCommand) {
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
		r.env.Log.Error("the project file is not followed; "+outcome, "error", reason)
		r.eventBroker.publish(api.Event{Type: "file", Project: r.name, Message: reason})
	}
	return result
}

// handleProjectFileGone stops the project, whose file is gone. Its state is kept, and if it ran it
// goes on when the file is back. last is the edition to look into its state by.
func (r *projectRunner) handleProjectFileGone(lastValid func() *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: r.name, Outcome: "gone"}
	r.mu.Lock()
	isNew, wasGone := r.command.revision == 0, r.command.isProjectFileGone
	r.mu.Unlock()
	switch {
	case isNew:
		loaded := lastValid()
		r.updateRunnerCommand(func(o *runnerCommand) { o.lastValidProject = loaded })
	case wasGone:
		return result
	default:
		r.updateRunnerCommand(func(o *runnerCommand) { o.isProjectFileGone = true })
	}
	r.env.Log.Warn("the project file is gone: the project is stopped, and its state kept")
	r.eventBroker.publish(api.Event{Type: "file", Project: r.name, Message: "the project file is gone"})
	return result
}
