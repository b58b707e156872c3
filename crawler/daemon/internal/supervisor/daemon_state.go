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
	state      savedDaemonState
	needsWrite bool // the disk lacks a part of state: see updateEvenIfFull
}

// savedDaemonState is the content of the file.
type savedDaemonState struct {
	DesiredStates map[string]desiredState `json:"projects"`
	Brakes        []api.Brake             `json:"brakes"`
	// LastSharedBrakes are the brakes that each Redis store had when it was read last: one that it
	// has no longer was lifted by another process.
	LastSharedBrakes map[string]map[string]string `json:"shared,omitempty"`
	// APIProjects holds, for each project from the API, the record of its files.
	APIProjects map[string]apiProjectRecord `json:"api,omitempty"`
	EndedAt     time.Time                   `json:"ended,omitzero"` // when the daemon ended in order; zero: it runs, or was killed
}

// openDaemonStateStore reads the state that a daemon left in a file. Without a file it is empty.
func openDaemonStateStore(file string) (*daemonStateStore, error) {
	w := &daemonStateStore{filePath: file}
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
	update := w.updateEvenIfFull
	if previousEnd.IsZero() {
		update = w.update
	}
	return previousEnd, update(func(t *savedDaemonState) { t.EndedAt = time.Time{} })
}

// retryWrite writes the changes for which updateEvenIfFull found no room. No visit may begin until it
// returns nil.
func (w *daemonStateStore) retryWrite() error {
	w.mu.Lock()
	needsWrite := w.needsWrite
	w.mu.Unlock()
	if !needsWrite {
		return nil
	}
	return w.update(func(*savedDaemonState) {})
}

// update makes a change that is on the disk when it returns; or, if it returns an
// error, was not made.
func (w *daemonStateStore) update(apply func(*savedDaemonState)) error {
	return w.updateOrKeep(apply, false)
}

// updateEvenIfFull is update, but does not fail on a full disk: the change takes effect, and the next
// one writes it.
func (w *daemonStateStore) updateEvenIfFull(apply func(*savedDaemonState)) error {
	return w.updateOrKeep(apply, true)
}

// updateOrKeep is update, or, if evenIfFull is set, updateEvenIfFull.
func (w *daemonStateStore) updateOrKeep(apply func(*savedDaemonState), evenIfFull bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.state
	next.DesiredStates, next.APIProjects = cloneOrMakeMap(next.DesiredStates), cloneOrMakeMap(next.APIProjects)
	next.Brakes, next.LastSharedBrakes = slices.Clone(next.Brakes), cloneOrMakeMap(next.LastSharedBrakes)
	apply(&next)
	text, err := json.MarshalIndent(next, "", "  ")
	if err == nil {
		err = datadir.WriteFileAtomic(w.filePath, append(text, '\n'))
	}
	if err != nil && !(evenIfFull && disk.IsFull(err)) {
		return fmt.Errorf("cannot keep what the daemon was told: %w", err)
	}
	w.state, w.needsWrite = next, err != nil
	return nil
}

// current returns the state as it is now, to be read only: update replaces it.
func (w *daemonStateStore) current() savedDaemonState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// desiredState returns the desired state of a project: stopped if none is recorded.
func (w *daemonStateStore) desiredState(project string) desiredState {
	if desired, ok := w.current().DesiredStates[project]; ok {
		return desired
	}
	return desiredState{State: api.StateStopped}
}

// cloneOrMakeMap returns a copy of a map, which is not nil even if m is.
func cloneOrMakeMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
