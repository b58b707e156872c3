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

// projectExt is the extension of project files.
const projectExt = ".yaml"

// A projectFilesFolder lists and watches the directory of project files. It reports a file that belongs
// to no project, and a folder that cannot be read, once until that changes.
type projectFilesFolder struct {
	path   string
	events *eventBroker
	log    *slog.Logger

	// Supervisor.projectFilesMu guards readError and nonProjectFiles.
	readError       string            // why the folder cannot be read; "": it can
	nonProjectFiles map[string]string // reason by file name: see parseProjectFileName
}

// list returns the names of the projects that have a file, and the files that resemble a project file
// but belong to no project, each with the reason.
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

// parseProjectFileName returns the name of the project to which a file belongs. For a file that only
// resembles a project file it returns why; for any other file it returns two empty strings.
func parseProjectFileName(file string) (name, why string) {
	name, isProject := strings.CutSuffix(file, projectExt)
	switch {
	case strings.HasPrefix(file, "."): // an editor's temporary file
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

// reportReadError reports that the folder cannot be read, or that it can be read again. It reports each
// change once.
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
		d.log.Error("the folder of project files cannot be read; projects stay as they are", "error", err)
		d.events.publish(api.Event{Type: "file", Message: "the folder of project files cannot be read: " + problem})
	default:
		d.log.Info("the folder of project files can be read again")
		d.events.publish(api.Event{Type: "file", Message: "the folder of project files can be read again"})
	}
}

// reportNonProjectFiles returns the files in nonProject, which resemble project files but belong to no
// project, as refused, and logs each new one. nonProject holds the reason by file name.
func (d *projectFilesFolder) reportNonProjectFiles(nonProject map[string]string) (result []api.ProjectReloadResult) {
	for _, file := range slices.Sorted(maps.Keys(nonProject)) {
		if d.nonProjectFiles[file] == "" {
			d.log.Warn("a file in the folder of project files is ignored", "file", file, "why", nonProject[file])
		}
		result = append(result, api.ProjectReloadResult{Project: file, Outcome: "refused", Error: nonProject[file]})
	}
	d.nonProjectFiles = nonProject
	return result
}

// How project files are watched.
const (
	settleDelay    = 200 * time.Millisecond // wait after a change: an editor writes a file in several steps
	maxSettleDelay = 2 * time.Second        // limit of that wait, from the first change on
	rescanInterval = 30 * time.Second       // for folders that send no notifications, such as network mounts
)

// watch calls reload at once, when files in the folder have changed, and every rescanInterval, until
// ctx is done.
func (d *projectFilesFolder) watch(ctx context.Context, reload func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		d.log.Warn("the folder of project files is polled for changes", "every", rescanInterval, "error", err)
		w = &fsnotify.Watcher{} // sends no events
	} else {
		defer w.Close()
	}
	// Each change postpones the rescan by settleDelay, up to maxSettleDelay after the first change.
	rescan := time.NewTimer(0) // the first rescan finds changes from before the watch
	defer rescan.Stop()
	var firstChange time.Time // since the last rescan
	for {
		select {
		case e := <-w.Events:
			if e.Op == fsnotify.Chmod {
				continue
			}
		case <-w.Errors: // the watcher missed changes: rescan
		case <-rescan.C:
			// Add the path each time: it may name another folder by now.
			if err == nil {
				_ = w.Add(d.path)
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
