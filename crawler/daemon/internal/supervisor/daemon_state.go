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

// A desiredState is the state that a project should be in, as a user or a limit has set it.
type desiredState struct {
	State api.ProjectState `json:"wanted"` // running, paused or stopped
	// Reason says why, if no user set State: the limit that was reached, or the memory kills.
	Reason string `json:"why,omitempty"`
}

// A daemonStateStore keeps daemon.json: what a daemon must know after it was killed. These are the
// desired states of projects, the brakes, and the records of projects from the API.
type daemonStateStore struct {
	filePath string

	mu         sync.Mutex // guards state and needsWrite
	state      savedDaemonState
	needsWrite bool // the file lacks a part of state: see updateEvenIfFull
}

// savedDaemonState is the content of daemon.json.
type savedDaemonState struct {
	DesiredStates map[string]desiredState `json:"projects"`
	Brakes        []api.Brake             `json:"brakes"`
	// LastSharedBrakes are the brakes that each Redis store held when it was read last, encoded, by
	// StoreID and host. If the store no longer holds one of them, another process has lifted it.
	LastSharedBrakes map[string]map[string]string `json:"shared,omitempty"`
	// APIProjects holds, for each project from the API, the record of its files.
	APIProjects map[string]apiProjectRecord `json:"api,omitempty"`
	// EndedAt is when the daemon ended in order. It is zero while the daemon runs, and after a kill.
	EndedAt time.Time `json:"ended,omitzero"`
}

// openDaemonStateStore reads the state that the previous daemon left in a file. If the file does not
// exist, the state is empty.
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
		return nil, fmt.Errorf("cannot read the daemon's state: %w\nRepair %s, or move it away: then "+
			"no project runs, no brake is set, and project files that came by the API count as your own", err, file)
	}
	return w, nil
}

// markDaemonRunning records that the daemon runs, and returns when the previous daemon ended: now if
// that one was killed at an unknown time, zero if this is the first one. On a full disk it leaves the
// write to retryWrite, so that the daemon can start and say why its projects wait. The caller is the only
// user of w.
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

// retryWrite writes the changes that updateEvenIfFull could not write on a full disk. A visit may begin
// only after it has returned nil.
func (w *daemonStateStore) retryWrite() error {
	w.mu.Lock()
	needsWrite := w.needsWrite
	w.mu.Unlock()
	if !needsWrite {
		return nil
	}
	return w.update(func(*savedDaemonState) {})
}

// update applies a change and writes it to the disk. If it returns an error, the change was not made.
func (w *daemonStateStore) update(apply func(*savedDaemonState)) error {
	return w.updateOrKeep(apply, false)
}

// updateEvenIfFull is update, except that on a full disk the change takes effect without an error. The
// next update writes it.
func (w *daemonStateStore) updateEvenIfFull(apply func(*savedDaemonState)) error {
	return w.updateOrKeep(apply, true)
}

// updateOrKeep implements update and, with evenIfFull, updateEvenIfFull.
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
		return fmt.Errorf("cannot save the daemon's state: %w", err)
	}
	w.state, w.needsWrite = next, err != nil
	return nil
}

// current returns the present state. The caller must not modify its maps and slices: update replaces
// them with copies.
func (w *daemonStateStore) current() savedDaemonState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// desiredState returns the desired state of a project, which is stopped if none is recorded.
func (w *daemonStateStore) desiredState(project string) desiredState {
	if desired, ok := w.current().DesiredStates[project]; ok {
		return desired
	}
	return desiredState{State: api.StateStopped}
}

// cloneOrMakeMap returns a copy of m. The copy is not nil even if m is.
func cloneOrMakeMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
