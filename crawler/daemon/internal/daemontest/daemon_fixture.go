package daemontest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// A Daemon is what a DaemonFixture runs: a supervisor of projects.
type Daemon interface {
	api.Daemon
	Run(ctx context.Context)
	Close() error
}

// A DaemonFixture is a web on loopback and a daemon that crawls it. The caller opens the
// daemon and passes it to Run.
type DaemonFixture struct {
	WebFixture
	T   *testing.T
	Log slog.Handler // of the daemon; nil: nothing is logged

	daemon Daemon       // nil: it has not been started
	close  func() error // closes the daemon
}

// NewDaemonFixture starts a web, and makes the directories of a daemon.
func NewDaemonFixture(t *testing.T, web *crawltest.Web) *DaemonFixture {
	t.Helper()
	f := &DaemonFixture{WebFixture: newFixture(t, web), T: t}
	if err := os.Mkdir(f.ProjectFilesPath(), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// ProjectFilesPath returns the directory of the project files.
func (f *DaemonFixture) ProjectFilesPath() string { return filepath.Join(f.Dir, "projects") }

// Logger returns where the daemon logs.
func (f *DaemonFixture) Logger() *slog.Logger {
	if f.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(f.Log)
}

// Run runs a daemon. It ends with the test, or by Stop.
func (f *DaemonFixture) Run(d Daemon) {
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { d.Run(ctx) })
	f.daemon = d
	f.close = sync.OnceValue(func() error { cancel(); ran.Wait(); return d.Close() })
	f.T.Cleanup(func() { f.Stop() })
}

// Stop ends the daemon in order.
func (f *DaemonFixture) Stop() {
	f.T.Helper()
	if err := f.close(); err != nil {
		f.T.Errorf("the daemon ended with %v", err)
	}
}

// PutProjectFile writes the file of a project, as an editor does.
func (f *DaemonFixture) PutProjectFile(name, text string) {
	f.T.Helper()
	if err := datadir.WriteFileAtomic(filepath.Join(f.ProjectFilesPath(), name+".yaml"), []byte(text)); err != nil {
		f.T.Fatal(err)
	}
}

// ReloadAndFind has the daemon read the project files again, and returns what became of
// one.
func (f *DaemonFixture) ReloadAndFind(name string) api.ProjectReloadResult {
	f.T.Helper()
	all, err := f.daemon.ReloadProjects(f.T.Context())
	if err != nil {
		f.T.Fatal(err)
	}
	i := slices.IndexFunc(all, func(r api.ProjectReloadResult) bool { return r.Project == name })
	if i < 0 {
		return api.ProjectReloadResult{}
	}
	return all[i]
}

// DoActions has the daemon do what a user asks of a project.
func (f *DaemonFixture) DoActions(name string, actions ...api.ProjectAction) {
	f.T.Helper()
	for _, a := range actions {
		if err := f.daemon.ControlProject(f.T.Context(), name, a); err != nil {
			f.T.Fatalf("%s %s: %v", a, name, err)
		}
	}
}

// GetProject returns a project as the daemon shows it.
func (f *DaemonFixture) GetProject(name string) api.Project {
	f.T.Helper()
	p, err := f.daemon.Project(f.T.Context(), name)
	if err != nil {
		f.T.Fatal(err)
	}
	return *p
}

// WaitForState waits until a project is in a state.
func (f *DaemonFixture) WaitForState(name string, s api.ProjectState) api.Project {
	f.T.Helper()
	var p api.Project
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if p = f.GetProject(name); p.State == s {
			return p
		}
	}
	f.T.Fatalf("%s is %s (%s) for a minute, want %s", name, p.State, p.StateReason, s)
	return p
}
