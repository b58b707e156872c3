package supervisor

import (
	"maps"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A runnerSet holds the runners of all projects, by name.
type runnerSet struct {
	mu      sync.Mutex // guards runners
	runners map[string]*projectRunner
}

func newRunnerSet() *runnerSet { return &runnerSet{runners: map[string]*projectRunner{}} }

// addAndStart adds a runner, which must have its first command, and starts its goroutine.
func (rs *runnerSet) addAndStart(r *projectRunner) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.runners[r.name] = r
	go r.runCommandLoop()
}

// remove removes the runner of a project. The runner must have ended.
func (rs *runnerSet) remove(name string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.runners, name)
}

// find returns the runner of a project, or an api.NotFound error.
func (rs *runnerSet) find(name string) (*projectRunner, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r, ok := rs.runners[name]; ok {
		return r, nil
	}
	return nil, api.NotFound("project %q does not exist", name)
}

// all returns the runners, sorted by name.
func (rs *runnerSet) all() []*projectRunner {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var runners []*projectRunner
	for _, name := range slices.Sorted(maps.Keys(rs.runners)) {
		runners = append(runners, rs.runners[name])
	}
	return runners
}

// loadedProjects returns the last valid file of each project that had one.
func (rs *runnerSet) loadedProjects() (all []*loadedProject) {
	for _, r := range rs.all() {
		if loaded := r.state.loadedProject(); loaded != nil {
			all = append(all, loaded)
		}
	}
	return all
}

// jsonlOutputOwner returns the name of the project that writes the JSONL file at an absolute path,
// or "" if no project writes it.
func (rs *runnerSet) jsonlOutputOwner(output string) string {
	for _, loaded := range rs.loadedProjects() {
		if loaded.project.Output.JSONL == output {
			return loaded.project.Name
		}
	}
	return ""
}

// requestSigningKeys returns the signing keys of each project.
func (rs *runnerSet) requestSigningKeys() (all []requestSigningKeys) {
	for _, r := range rs.all() {
		all = append(all, r.state.requestSigningKeys())
	}
	return all
}

// anyProjectMayReachPrivateAddrs reports whether any project of the daemon may connect to addresses
// that are not public: directly, by fetch.connect_to or through a proxy.
func (rs *runnerSet) anyProjectMayReachPrivateAddrs() bool {
	return slices.ContainsFunc(rs.loadedProjects(), func(p *loadedProject) bool {
		fetch := &p.project.Fetch
		return fetch.AllowPrivate || len(fetch.ConnectToRules) > 0 || fetch.Proxy != ""
	})
}
