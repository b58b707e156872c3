package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// projectExt is how the names of project files end.
const projectExt = ".yaml"

// scan reads all project files, and has the projects follow those that changed.
func (s *supervisor) scan() []api.ReloadResult {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	if s.isShuttingDown {
		return nil
	}
	entries, err := os.ReadDir(s.folder)
	s.note(err)
	if err != nil {
		return nil // the projects go on as they are
	}
	here := map[string]bool{}
	strange := map[string]string{}
	for _, e := range entries {
		switch name, why := projectOf(e.Name()); {
		case why != "":
			strange[e.Name()] = why
		case name != "":
			here[name] = true
		}
	}
	for _, name := range s.knownProjects() {
		here[name] = true
	}
	for _, r := range s.all() {
		here[r.name] = true
	}
	var result []api.ReloadResult
	for _, name := range slices.Sorted(maps.Keys(here)) {
		result = append(result, s.follow(name))
	}
	return append(result, s.wonder(strange)...)
}

// projectOf returns the project whose file has a name; or why it is no project's
// though it looks like one.
func projectOf(file string) (name, why string) {
	name, isProject := strings.CutSuffix(file, projectExt)
	switch {
	case strings.HasPrefix(file, "."): // an editor's
		return "", ""
	case strings.HasSuffix(file, ".yml"):
		return "", fmt.Sprintf("project files are named NAME%s", projectExt)
	case !isProject:
		return "", ""
	case !projectName.MatchString(name):
		return "", fmt.Sprintf("%q is not a project's name: expected 1 to 64 of a-z, 0-9 and -", name)
	}
	return name, ""
}

// note tells of a folder that cannot be read, and that it can be again.
func (s *supervisor) note(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	s.mu.Lock()
	changed := trouble != s.trouble
	s.trouble = trouble
	s.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		s.app.log.Error("the folder of project files cannot be read; projects go on as they are", "error", err)
		s.hub.tell(api.Event{Type: "file", Message: "the folder of project files cannot be read: " + trouble})
	default:
		s.app.log.Info("the folder of project files can be read again")
		s.hub.tell(api.Event{Type: "file", Message: "the folder of project files can be read again"})
	}
}

// wonder tells, once each, of files that are no project's.
func (s *supervisor) wonder(strange map[string]string) (result []api.ReloadResult) {
	for _, file := range slices.Sorted(maps.Keys(strange)) {
		if s.strange[file] == "" {
			s.app.log.Warn("a file in the folder of project files is passed by", "file", file, "why", strange[file])
		}
		result = append(result, api.ReloadResult{Project: file, Change: "refused", Error: strange[file]})
	}
	s.strange = strange
	return result
}

// follow has a project follow its file as it is now, and says what changed.
func (s *supervisor) follow(name string) api.ReloadResult {
	r, err := s.find(name)
	if err == nil {
		return s.update(r)
	}
	r = s.newRunner(name)
	result := s.update(r)
	if s.startNew && result.Change == "new" && !s.wishes.knows(name) {
		if err := r.demand(api.StateRunning); err != nil {
			r.app.log.Error("the new project is not started", "error", err)
		}
	}
	s.enlist(r)
	return result
}

// update reads the file of a project, and changes its orders.
func (s *supervisor) update(r *runner) api.ReloadResult {
	text, err := readLimited(s.projectFile(r.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.lose(func() *edition { return s.lastGood(r.name) })
	case err != nil:
		return r.refuse(err.Error(), "", r.edition())
	}
	byAPI := s.wishes.apiWrote(r.name, text)
	stampOf := func(text []byte, ed *edition) string { return stampOf(text, byAPI, ed) }
	if known := r.unchangedReload(stampOf(text, r.edition())); known != nil {
		return *known
	}
	ed, err := s.edit(r.name, text, byAPI)
	if err != nil {
		last := r.edition()
		if last == nil {
			last = s.lastGood(r.name)
		}
		return r.refuse(err.Error(), stampOf(text, last), last)
	}
	return r.follow(ed, stampOf(text, ed))
}

// readLimited reads a project file, or a little more than one may be long.
func readLimited(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // of a pipe, nobody knows when something comes
		return nil, fmt.Errorf("%s is no regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxProjectFile+1))
	return text, errors.Join(err, f.Close())
}
