package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// ReloadProjects reads all project files again, and applies those that changed. If the folder
// cannot be read, the projects go on as they are.
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
	// Projects without a file are looked at, too: it may be gone since.
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

// reloadProject applies the file of a project as it is now, and returns what changed. It starts
// the runner of a new project.
func (s *Supervisor) reloadProject(name string) api.ProjectReloadResult {
	r, err := s.runners.find(name)
	if err == nil {
		return s.reloadProjectFile(r)
	}
	r = s.newProjectRunner(name)
	result := s.reloadProjectFile(r)
	_, hasDesiredState := s.stateStore.current().DesiredStates[name]
	if s.startNewProjects && result.Outcome == "new" && !hasDesiredState {
		if err := r.state.setDesired(api.StateRunning); err != nil {
			r.env.Log.Error("the new project is not started", "error", err)
		}
	}
	s.runners.addAndStart(r)
	return result
}

// reloadProjectFile reads the file of a project, and changes the command of its runner.
func (s *Supervisor) reloadProjectFile(r *projectRunner) api.ProjectReloadResult {
	text, err := readProjectFileBytes(s.projectFilePath(r.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.state.handleProjectFileGone(func() *loadedProject { return s.loader.lastValidProject(r.name) })
	case err != nil:
		return r.state.rejectFile(err.Error(), "", r.state.loadedProject())
	}
	// Leave a file that is as it was, with the seed and key files that it names.
	byAPI := s.stateStore.isProjectFileFromAPI(r.name, text)
	digestOf := func(text []byte, loaded *loadedProject) string { return projectFilesDigest(text, byAPI, loaded) }
	if unchanged := r.state.resultIfFileUnchanged(digestOf(text, r.state.loadedProject())); unchanged != nil {
		return *unchanged
	}
	// Apply it if it is valid; otherwise the project goes on with the last valid one.
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

// resultIfFileUnchanged returns a result if the file with a digest is the one that was read last;
// else nil. It returns nil for an invalid file, too: the cause may be another file that it
// names, and that is there now.
func (rs *runnerState) resultIfFileUnchanged(digest string) *api.ProjectReloadResult {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.lastReadDigest != digest || rs.command.isProjectFileGone || rs.command.projectFileError != "" {
		return nil
	}
	return &api.ProjectReloadResult{Project: rs.name, Outcome: "none"}
}

// applyReloadedProject has the project follow a valid file: the present run ends, and another
// follows the file. If the file is again what it was before an invalid one, the run goes on.
func (rs *runnerState) applyReloadedProject(loaded *loadedProject, digest string) api.ProjectReloadResult {
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

// rejectFile records that the file is invalid, for a reason; the project goes on as it was.
// lastValid is what a project follows that has followed no file in this process; nil: there
// is none.
func (rs *runnerState) rejectFile(reason, digest string, lastValid *loadedProject) api.ProjectReloadResult {
	result := api.ProjectReloadResult{Project: rs.name, Outcome: "refused", Error: reason}
	rs.mu.Lock()
	isKnown, hasNoRevision := rs.lastReadDigest == digest && rs.command.projectFileError == reason, rs.command.lastValidProject == nil && (lastValid != nil || rs.command.revision == 0) || rs.command.isProjectFileGone
	rs.command.projectFileError, rs.lastReadDigest = reason, digest
	rs.mu.Unlock()
	if isKnown && !hasNoRevision {
		return result
	}
	// Give the runner its first command, or one that knows that there is a file again.
	if hasNoRevision {
		rs.updateCommand(func(o *runnerTarget) {
			o.isProjectFileGone = false
			o.lastValidProject = cmp.Or(o.lastValidProject, lastValid)
		})
	}
	// Report each error once.
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

// handleProjectFileGone stops the project, whose file is gone. Its data is kept, and if it ran it
// goes on when the file is back. lastValid returns the file by which a project that is new in
// this process is inspected.
func (rs *runnerState) handleProjectFileGone(lastValid func() *loadedProject) api.ProjectReloadResult {
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

// projectExt is how the names of project files end.
const projectExt = ".yaml"

// A projectFolder is the directory of project files. It knows which file belongs to which
// project, and reports changes of what it cannot use once.
type projectFolder struct {
	path   string
	events *eventBroker
	log    *slog.Logger

	// Supervisor.projectFilesMu guards the fields below.
	readError       string            // why the folder cannot be read; "": it can
	nonProjectFiles map[string]string // files that no project has, and why
}

// list returns the names of the projects that have a file, and the files that look like one
// and belong to no project, with the reason.
func (d *projectFolder) list() (names map[string]bool, nonProject map[string]string, err error) {
	entries, err := os.ReadDir(d.path)
	d.reportReadError(err)
	if err != nil {
		return nil, nil, err
	}
	names, nonProject = map[string]bool{}, map[string]string{}
	for _, e := range entries {
		switch name, why := parseProjectFileName(e.Name()); {
		case why != "":
			nonProject[e.Name()] = why
		case name != "":
			names[name] = true
		}
	}
	return names, nonProject, nil
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

// reportReadError reports, once each, that the folder cannot be read, and that it can be again.
func (d *projectFolder) reportReadError(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	changed := problem != d.readError
	d.readError = problem
	switch {
	case !changed:
	case err != nil:
		d.log.Error("the folder of project files cannot be read; projects go on as they are", "error", err)
		d.events.publish(api.Event{Type: "file", Message: "the folder of project files cannot be read: " + problem})
	default:
		d.log.Info("the folder of project files can be read again")
		d.events.publish(api.Event{Type: "file", Message: "the folder of project files can be read again"})
	}
}

// reportNonProjectFiles warns, once each, of files that look like project files and belong to no
// project, and returns them as refused. nonProject says why, by file.
func (d *projectFolder) reportNonProjectFiles(nonProject map[string]string) (result []api.ProjectReloadResult) {
	for _, file := range slices.Sorted(maps.Keys(nonProject)) {
		if d.nonProjectFiles[file] == "" {
			d.log.Warn("a file in the folder of project files is passed by", "file", file, "why", nonProject[file])
		}
		result = append(result, api.ProjectReloadResult{Project: file, Outcome: "refused", Error: nonProject[file]})
	}
	d.nonProjectFiles = nonProject
	return result
}

// How project files are watched.
const (
	settleDelay    = 200 * time.Millisecond // an editor writes a file in several steps
	maxSettleDelay = 2 * time.Second        // the wait for further steps is no longer
	rescanInterval = 30 * time.Second       // for folders without notifications of changes, as on a network
)

// watch calls reload when files in the folder have changed, and every rescanInterval, until ctx
// is done.
func (d *projectFolder) watch(ctx context.Context, reload func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		d.log.Warn("the folder of project files is looked at now and then only", "every", rescanInterval, "error", err)
		w = &fsnotify.Watcher{} // sends no events
	} else {
		defer w.Close()
	}
	// Each change puts off the rescan by settleDelay, up to maxSettleDelay after the first.
	rescan := time.NewTimer(0) // what changed before the watch began is seen, too
	defer rescan.Stop()
	var firstChange time.Time // of the changes that were not looked at
	for {
		select {
		case e := <-w.Events:
			if e.Op == fsnotify.Chmod {
				continue
			}
		case <-w.Errors: // changes were missed
		case <-rescan.C:
			if err == nil {
				_ = w.Add(d.path) // again and again: it may be another folder of that name
			}
			reload()
			firstChange = time.Time{}
			rescan.Reset(rescanInterval)
			continue
		case <-ctx.Done():
			return
		}
		if firstChange.IsZero() {
			firstChange = time.Now()
		}
		rescan.Reset(min(settleDelay, time.Until(firstChange.Add(maxSettleDelay))))
	}
}
