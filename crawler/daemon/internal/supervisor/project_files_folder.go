package supervisor

import (
	"context"
	"fmt"
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

// projectExt is how the names of project files end.
const projectExt = ".yaml"

// A projectFilesFolder is the directory of project files. It knows which file belongs to which
// project, and reports changes of what it cannot use once.
type projectFilesFolder struct {
	path   string
	events *eventBroker
	log    *slog.Logger

	// Supervisor.projectFilesMu guards the fields below.
	readError       string            // why the folder cannot be read; "": it can
	nonProjectFiles map[string]string // files that no project has, and why
}

// list returns the names of the projects that have a file, and the files that look like one
// and belong to no project, with the reason.
func (d *projectFilesFolder) list() (names map[string]bool, nonProject map[string]string, err error) {
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
func (d *projectFilesFolder) reportReadError(err error) {
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
func (d *projectFilesFolder) reportNonProjectFiles(nonProject map[string]string) (result []api.ProjectReloadResult) {
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
func (d *projectFilesFolder) watch(ctx context.Context, reload func()) {
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
