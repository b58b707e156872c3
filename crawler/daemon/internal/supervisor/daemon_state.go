package supervisor

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
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
)

// A desiredState is the state that a user, or a limit, wants a project to be in.
type desiredState struct {
	State  api.ProjectState `json:"wanted"`        // running, paused or stopped
	Reason string           `json:"why,omitempty"` // if no user asked for it: the limit that was reached
}

// A daemonStateStore keeps on the disk what a daemon must know after it was killed: the desired
// states of projects, brakes and the files of projects from the API.
type daemonStateStore struct {
	filePath string

	mu         sync.Mutex // guards the fields below
	state      daemonState
	needsWrite bool // the disk lacks a part of state: see markDaemonRunning and setDesiredStateEvenIfFull
}

// daemonState is the content of the file.
type daemonState struct {
	DesiredStates map[string]desiredState `json:"projects"`
	Brakes        []api.Brake             `json:"brakes"`
	// LastSharedBrakes are the brakes that each Redis store had when it was read last: one that it
	// has no longer was lifted by another process.
	LastSharedBrakes map[string]map[string]string `json:"shared,omitempty"`
	// APIProjects holds, for each project from the API, the record of its files.
	APIProjects map[string]apiProjectOwnedFiles `json:"api,omitempty"`
	EndedAt     time.Time                       `json:"ended,omitzero"` // when the daemon ended in order; zero: it runs, or was killed
}

// openDaemonStateStore reads the state that a daemon left in a file. Without a file it is empty.
func openDaemonStateStore(file string) (*daemonStateStore, error) {
	w := &daemonStateStore{filePath: file, state: daemonState{DesiredStates: map[string]desiredState{}}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &w.state)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what the daemon was told: %w\nRepair %s, or move it away: then "+
			"no project runs, no brake is on, and project files that came by the API count as your own", err, file)
	}
	if w.state.DesiredStates == nil { // edited by hand
		w.state.DesiredStates = map[string]desiredState{}
	}
	return w, nil
}

// markDaemonRunning records that the daemon runs, and returns when the previous one ended: now if
// it was killed at an unknown time, zero if there was none. On a full disk it leaves
// the write to retryWrite, so that the daemon can start and say why its projects wait.
func (w *daemonStateStore) markDaemonRunning(now time.Time) (previousEnd time.Time, err error) {
	switch _, err := os.Stat(w.filePath); {
	case errors.Is(err, fs.ErrNotExist):
	case w.state.EndedAt.IsZero() || w.state.EndedAt.After(now):
		previousEnd = now
	default:
		previousEnd = w.state.EndedAt
	}
	err = w.update(func(t *daemonState) { t.EndedAt = time.Time{} })
	if !previousEnd.IsZero() && disk.IsFull(err) {
		w.mu.Lock()
		w.needsWrite = true
		w.mu.Unlock()
		err = nil
	}
	return previousEnd, err
}

// retryWrite writes the records for which markDaemonRunning and setDesiredStateEvenIfFull found no room. No visit may
// begin until it returns nil.
func (w *daemonStateStore) retryWrite() error {
	w.mu.Lock()
	needsWrite := w.needsWrite
	w.mu.Unlock()
	if !needsWrite {
		return nil
	}
	if err := w.update(func(t *daemonState) { t.EndedAt = time.Time{} }); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.needsWrite = false
	return nil
}

// update makes a change that is on the disk when it returns; or, if it returns an
// error, was not made.
func (w *daemonStateStore) update(apply func(*daemonState)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.state
	next.DesiredStates, next.Brakes, next.LastSharedBrakes = maps.Clone(next.DesiredStates), slices.Clone(next.Brakes), maps.Clone(next.LastSharedBrakes)
	next.APIProjects = maps.Clone(next.APIProjects)
	apply(&next)
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = datadir.WriteFileAtomic(w.filePath, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot keep what the daemon was told: %w", err)
	}
	w.state = next
	return nil
}

// desiredState returns the desired state of a project: stopped if none is recorded.
func (w *daemonStateStore) desiredState(project string) desiredState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if desired, ok := w.state.DesiredStates[project]; ok {
		return desired
	}
	return desiredState{State: api.StateStopped}
}

// hasDesiredState reports whether a desired state of a project is recorded.
func (w *daemonStateStore) hasDesiredState(project string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.state.DesiredStates[project]
	return ok
}

// setDesiredState records the desired state of a project.
func (w *daemonStateStore) setDesiredState(project string, desired desiredState) error {
	return w.update(func(t *daemonState) { t.DesiredStates[project] = desired })
}

// setDesiredStateEvenIfFull is setDesiredState, but does not fail on a full disk: the state takes
// effect, and the next change writes it.
func (w *daemonStateStore) setDesiredStateEvenIfFull(project string, desired desiredState) error {
	err := w.setDesiredState(project, desired)
	if !disk.IsFull(err) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.DesiredStates = maps.Clone(w.state.DesiredStates)
	w.state.DesiredStates[project] = desired
	w.needsWrite = true
	return nil
}

// deleteProject removes all records of a project.
func (w *daemonStateStore) deleteProject(project string) error {
	return w.update(func(t *daemonState) { delete(t.DesiredStates, project); delete(t.APIProjects, project) })
}

// projectNames returns the names of all projects with a desired state, sorted.
func (w *daemonStateStore) projectNames() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.state.DesiredStates))
}

// lastSharedBrakes returns the brakes that a Redis store had when it was read last.
func (w *daemonStateStore) lastSharedBrakes(redisKey string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.LastSharedBrakes[redisKey]
}

// brakes returns the brakes that are on.
func (w *daemonStateStore) brakes() []api.Brake {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.state.Brakes)
}
