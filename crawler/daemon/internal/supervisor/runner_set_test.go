package supervisor

import (
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/project"
)

// A runnerSet finds runners by name, lists them sorted by name, and names the project that writes a
// file.
func TestRunnerSet(t *testing.T) {
	rs := newRunnerSet()
	for name, output := range map[string]string{"shop": "/a.jsonl", "blog": "/b.jsonl", "new": ""} {
		r := &projectRunner{name: name, state: newTestRunnerState(t, name), ended: make(chan struct{})}
		if output != "" {
			r.state.command.lastValidProject = &loadedProject{project: project.Project{Name: name,
				Output: project.OutputSettings{JSONL: output}}}
		}
		r.state.updateCommand(func(c *runnerTarget) { c.mustQuit = true }) // the goroutine ends at once
		rs.addAndStart(r)
		<-r.ended
	}
	var names []string
	for _, r := range rs.all() {
		names = append(names, r.name)
	}
	if want := []string{"blog", "new", "shop"}; !slices.Equal(names, want) {
		t.Errorf("runners %v, want %v", names, want)
	}
	if n := len(rs.loadedProjects()); n != 2 {
		t.Errorf("%d projects have a valid file, want 2", n)
	}
	if got := rs.jsonlOutputOwner("/b.jsonl"); got != "blog" {
		t.Errorf("/b.jsonl is written by %q", got)
	}
	if r, err := rs.find("shop"); err != nil || r.name != "shop" {
		t.Errorf("shop: %v", err)
	}
	rs.remove("shop")
	if _, err := rs.find("shop"); err == nil {
		t.Error("a removed runner is found")
	}
	if got := rs.jsonlOutputOwner("/a.jsonl"); got != "" {
		t.Errorf("/a.jsonl is written by %q, which is removed", got)
	}
}
