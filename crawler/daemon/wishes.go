package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A wish is what somebody wants of a project.
type wish struct {
	State api.ProjectState `json:"wanted"`        // running, paused or stopped
	Why   string           `json:"why,omitempty"` // if nobody asked for it: the limit that was reached
}

// Wishes are what a daemon was told and must not forget, whenever it is killed.
type wishes struct {
	file string

	mu   sync.Mutex // guards the fields below
	told daemonState
	due  bool // the disk lacks a part of told: see begin and wantNow
}

// daemonState is the content of the file.
type daemonState struct {
	Projects map[string]wish `json:"projects"`
	Brakes   []api.Brake     `json:"brakes"`
	// Shared are the brakes that were on each board when it was seen last: one that is
	// not there any more was lifted elsewhere.
	Shared map[string]map[string]string `json:"shared,omitempty"`
	// API holds, for each project from the API, the record of its files.
	API   map[string]apiProjectRecord `json:"api,omitempty"`
	Ended time.Time                   `json:"ended,omitzero"` // when the daemon ended in order; zero: it runs, or was killed
}

// openWishes reads what a daemon was told before.
func openWishes(file string) (*wishes, error) {
	w := &wishes{file: file, told: daemonState{Projects: map[string]wish{}}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &w.told)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what the daemon was told: %w\nRepair %s, or move it away: then "+
			"no project runs, no brake is on, and project files that came by the API count as your own", err, file)
	}
	if w.told.Projects == nil { // edited by hand
		w.told.Projects = map[string]wish{}
	}
	return w, nil
}

// begin records that the daemon runs, and returns when the previous one ended: now if
// it was killed at an unknown time, zero if there was none. On a full disk it leaves
// the write to begun, so that the daemon can start and say why its projects wait.
func (w *wishes) begin(now time.Time) (before time.Time, err error) {
	switch _, err := os.Stat(w.file); {
	case errors.Is(err, fs.ErrNotExist):
	case w.told.Ended.IsZero() || w.told.Ended.After(now):
		before = now
	default:
		before = w.told.Ended
	}
	err = w.change(func(t *daemonState) { t.Ended = time.Time{} })
	if !before.IsZero() && passing(err) {
		w.mu.Lock()
		w.due = true
		w.mu.Unlock()
		err = nil
	}
	return before, err
}

// begun writes the records for which begin and wantNow found no room. No visit may
// begin until it returns nil.
func (w *wishes) begun() error {
	w.mu.Lock()
	due := w.due
	w.mu.Unlock()
	if !due {
		return nil
	}
	if err := w.change(func(t *daemonState) { t.Ended = time.Time{} }); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = false
	return nil
}

// change makes a change that is on the disk when it returns; or, if it returns an
// error, was not made.
func (w *wishes) change(change func(*daemonState)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.told
	next.Projects, next.Brakes, next.Shared = maps.Clone(next.Projects), slices.Clone(next.Brakes), maps.Clone(next.Shared)
	next.API = maps.Clone(next.API)
	change(&next)
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = writeWhole(w.file, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot keep what the daemon was told: %w", err)
	}
	w.told = next
	return nil
}

// of returns what is wanted of a project: it is stopped if nobody said.
func (w *wishes) of(project string) wish {
	w.mu.Lock()
	defer w.mu.Unlock()
	if it, ok := w.told.Projects[project]; ok {
		return it
	}
	return wish{State: api.StateStopped}
}

// knows reports whether somebody said what is wanted of a project.
func (w *wishes) knows(project string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.told.Projects[project]
	return ok
}

// want keeps what is wanted of a project.
func (w *wishes) want(project string, it wish) error {
	return w.change(func(t *daemonState) { t.Projects[project] = it })
}

// wantNow is want, but does not fail on a full disk: the wish takes effect, and the
// next change writes it.
func (w *wishes) wantNow(project string, it wish) error {
	err := w.want(project, it)
	if !passing(err) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.Projects = maps.Clone(w.told.Projects)
	w.told.Projects[project] = it
	w.due = true
	return nil
}

// forget forgets a project.
func (w *wishes) forget(project string) error {
	return w.change(func(t *daemonState) { delete(t.Projects, project); delete(t.API, project) })
}

// projects returns the names of all projects of which something is wanted.
func (w *wishes) projects() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.told.Projects))
}

// shared returns the brakes that were on a board when it was seen last.
func (w *wishes) shared(board string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told.Shared[board]
}

// brakes returns the brakes that are on.
func (w *wishes) brakes() []api.Brake {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told.Brakes)
}
