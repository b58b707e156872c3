package supervisor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// ReloadProjects reads all project files again, applies those that changed, and returns one result
// for each project. If the folder cannot be read, it returns an error and changes no project. After
// Close has begun it does nothing.
func (s *Supervisor) ReloadProjects(context.Context) ([]api.ProjectReloadResult, error) {
	s.projectFilesMu.Lock()
	defer s.projectFilesMu.Unlock()
	if s.isShuttingDown {
		return nil, nil
	}
	names, nonProject, err := s.folder.list()
	if err != nil {
		return nil, api.Conflict("the folder of project files cannot be read: %s", err)
	}
	// Include the projects whose file is gone: they must stop.
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
	return append(result, s.folder.reportNonProjectFiles(nonProject)...), nil
}

// reloadProject applies the present file of a project, and returns what changed. It adds a runner for
// a project that has none. The caller holds s.projectFilesMu.
func (s *Supervisor) reloadProject(name string) api.ProjectReloadResult {
	// Set up a new project completely before its goroutine starts.
	r, err := s.runners.find(name)
	isNew := err != nil
	if isNew {
		r = s.newProjectRunner(name)
	}
	result := s.reloadProjectFile(r)
	if _, hasDesiredState := s.stateStore.current().DesiredStates[name]; result.Outcome == "new" && !hasDesiredState {
		s.startOrExplainNewProject(r)
	}
	if isNew {
		s.runners.addAndStart(r)
	}
	return result
}

// startOrExplainNewProject starts a project that was never started, if new projects start at once. Otherwise
// it logs the command that starts the project.
func (s *Supervisor) startOrExplainNewProject(r *projectRunner) {
	if !s.startNewProjects {
		r.env.Log.Info("the new project is stopped until you start it", "command",
			"decorum start "+r.name+" --data "+plaintext.ShellQuote(string(s.DataDir)))
		return
	}
	if err := r.state.setDesired(api.StateRunning); err != nil {
		r.env.Log.Error("the new project is not started", "error", err)
	}
}

// reloadProjectFile reads the file of a project, and changes the command of its runner if the file, or a
// seed or key file that it names, has changed.
func (s *Supervisor) reloadProjectFile(r *projectRunner) api.ProjectReloadResult {
	text, err := readProjectFileBytes(s.projectFilePath(r.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.state.handleProjectFileGone(func() *loadedProject { return s.loader.lastValidProject(r.name) })
	case err != nil:
		return r.state.rejectFile(err.Error(), "", r.state.loadedProject())
	}
	// Skip a file that is unchanged, with the seed and key files that it names.
	byAPI := s.stateStore.isProjectFileFromAPI(r.name, text)
	digestOf := func(text []byte, loaded *loadedProject) string { return projectFilesDigest(text, byAPI, loaded) }
	if unchanged := r.state.resultIfFileUnchanged(digestOf(text, r.state.loadedProject())); unchanged != nil {
		return *unchanged
	}
	// Apply a valid file. An invalid one leaves the project on its last valid file.
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

// resultIfFileUnchanged returns a result if digest is that of the valid file that was read last, and
// nil otherwise. An invalid file returns nil, too: the cause may be a file that it names, which can
// exist by now.
func (rs *projectLifecycle) resultIfFileUnchanged(digest string) *api.ProjectReloadResult {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.lastReadDigest != digest || rs.command.isProjectFileGone || rs.command.projectFileError != "" {
		return nil
	}
	return &api.ProjectReloadResult{Project: rs.name, Outcome: "none"}
}

// applyReloadedProject makes the project follow a valid file: the current run ends, and the next run
// uses the file. If the file equals the one that the run uses already, because an invalid version was
// undone, the run continues.
func (rs *projectLifecycle) applyReloadedProject(loaded *loadedProject, digest string) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "changed"}
	rs.mu.Lock()
	if rs.loadedProjectDigest == digest && !rs.command.isProjectFileGone {
		rs.command.projectFileError, rs.lastReadDigest = "", digest
		rs.mu.Unlock()
		result.Outcome = "none"
		return result
	}
	rs.updateCommandLocked(func(o *runnerTarget) {
		if o.lastValidProject == nil {
			result.Outcome = "new"
		}
		o.lastValidProject, o.projectFileError, o.isProjectFileGone = loaded, "", false
		rs.lastReadDigest, rs.loadedProjectDigest = digest, digest
	})
	rs.mu.Unlock()
	rs.log.Info("the project file is followed")
	rs.events.publish(api.Event{Type: "file", Project: rs.name, Message: result.Outcome})
	return result
}

// rejectFile records the reason for which the file is invalid. The project keeps its last valid file.
// A project that has followed no file in this process follows lastValid; nil: it cannot run.
func (rs *projectLifecycle) rejectFile(reason, digest string, lastValid *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "refused", Error: reason}
	rs.mu.Lock()
	isKnown, hasNoRevision := rs.lastReadDigest == digest && rs.command.projectFileError == reason,
		rs.command.lastValidProject == nil && (lastValid != nil || rs.command.revision == 0) ||
			rs.command.isProjectFileGone
	rs.command.projectFileError, rs.lastReadDigest = reason, digest
	rs.mu.Unlock()
	if isKnown && !hasNoRevision {
		return result
	}
	// Give the runner its first command, or end the state "file gone".
	if hasNoRevision {
		rs.updateCommand(func(o *runnerTarget) {
			o.isProjectFileGone = false
			o.lastValidProject = cmp.Or(o.lastValidProject, lastValid)
		})
	}
	// Report each error once.
	if !isKnown {
		outcome := "the project keeps its last valid file"
		if hasNoRevision && lastValid == nil {
			outcome = "the project waits for a valid file"
		}
		rs.log.Error("the project file is invalid; "+outcome, "error", reason)
		rs.events.publish(api.Event{Type: "file", Project: rs.name, Message: reason})
	}
	return result
}

// handleProjectFileGone stops a project whose file is gone. Its data and its desired state stay: a
// project that ran resumes when the file is back. For a project that is new in this process, queries
// use the file that lastValid returns.
func (rs *projectLifecycle) handleProjectFileGone(lastValid func() *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "gone"}
	rs.mu.Lock()
	isNew, wasGone := rs.command.revision == 0, rs.command.isProjectFileGone
	rs.mu.Unlock()
	switch {
	case isNew:
		loaded := lastValid()
		rs.updateCommand(func(o *runnerTarget) { o.lastValidProject = loaded })
	case wasGone:
		return result
	default:
		rs.updateCommand(func(o *runnerTarget) { o.isProjectFileGone = true })
	}
	rs.log.Warn("the project file is gone: the project is stopped, and its state kept")
	rs.events.publish(api.Event{Type: "file", Project: rs.name, Message: "the project file is gone"})
	return result
}
