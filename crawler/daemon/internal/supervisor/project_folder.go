package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// projectExt is how the names of project files end.
const projectExt = ".yaml"

// reloadProjects reads all project files, and has the projects follow those that changed.
func (s *Supervisor) reloadProjects() []api.ProjectReloadResult {
	s.projectFilesMu.Lock()
	defer s.projectFilesMu.Unlock()
	if s.isShuttingDown {
		return nil
	}
	entries, err := os.ReadDir(s.ProjectFilesDir)
	s.reportProjectFilesDirError(err)
	if err != nil {
		return nil // the projects go on as they are
	}
	names := map[string]bool{}
	foreign := map[string]string{}
	for _, e := range entries {
		switch name, why := parseProjectFileName(e.Name()); {
		case why != "":
			foreign[e.Name()] = why
		case name != "":
			names[name] = true
		}
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
	return append(result, s.reportNonProjectFiles(foreign)...)
}

// parseProjectFileName returns the project whose file has a name; or why it is no project's
// though it looks like one.
func parseProjectFileName(file string) (name, why string) {
	name, isProject := strings.CutSuffix(file, projectExt)
	switch {
	case strings.HasPrefix(file, "."): // an editor's
		return "", ""
	case strings.HasSuffix(file, ".yml"):
		return "", fmt.Sprintf("project files are named NAME%s", projectExt)
	case !isProject:
		return "", ""
	case !project.NamePattern.MatchString(name):
		return "", fmt.Sprintf("%q is not a project's name: expected 1 to 64 of a-z, 0-9 and -", name)
	}
	return name, ""
}

// reportProjectFilesDirError tells of a folder that cannot be read, and that it can be again.
func (s *Supervisor) reportProjectFilesDirError(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	s.mu.Lock()
	changed := problem != s.projectFilesDirError
	s.projectFilesDirError = problem
	s.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		s.env.Log.Error("the folder of project files cannot be read; projects go on as they are", "error", err)
		s.eventBroker.publish(api.Event{Type: "file", Message: "the folder of project files cannot be read: " + problem})
	default:
		s.env.Log.Info("the folder of project files can be read again")
		s.eventBroker.publish(api.Event{Type: "file", Message: "the folder of project files can be read again"})
	}
}

// reportNonProjectFiles tells, once each, of files that are no project's.
func (s *Supervisor) reportNonProjectFiles(foreign map[string]string) (result []api.ProjectReloadResult) {
	for _, file := range slices.Sorted(maps.Keys(foreign)) {
		if s.nonProjectFiles[file] == "" {
			s.env.Log.Warn("a file in the folder of project files is passed by", "file", file, "why", foreign[file])
		}
		result = append(result, api.ProjectReloadResult{Project: file, Outcome: "refused", Error: foreign[file]})
	}
	s.nonProjectFiles = foreign
	return result
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
