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

// A Daemon is run by a DaemonFixture. *supervisor.Supervisor implements it; the interface avoids an import
// cycle.
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
	Log slog.Handler // for the daemon's log; nil: nothing is logged

	daemon Daemon       // nil before Run
	close  func() error // ends Run and closes the daemon, once
}

// NewDaemonFixture starts a server for web, and creates the directories of a daemon.
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

// Logger returns the logger for the daemon: it writes to f.Log.
func (f *DaemonFixture) Logger() *slog.Logger {
	if f.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(f.Log)
}

// Run runs a daemon in a goroutine, until Stop or until the test ends.
func (f *DaemonFixture) Run(d Daemon) {
	ctx, cancel := context.WithCancel(context.Background())
	var ran sync.WaitGroup
	ran.Go(func() { d.Run(ctx) })
	f.daemon = d
	f.close = sync.OnceValue(func() error { cancel(); ran.Wait(); return d.Close() })
	f.T.Cleanup(func() { f.Stop() })
}

// Stop closes the daemon. The test fails if that returns an error. It may be called more than once.
func (f *DaemonFixture) Stop() {
	f.T.Helper()
	if err := f.close(); err != nil {
		f.T.Errorf("the daemon ended with %v", err)
	}
}

// PutProjectFile writes the file of a project into the folder of project files, atomically.
func (f *DaemonFixture) PutProjectFile(name, text string) {
	f.T.Helper()
	if err := datadir.WriteFileAtomic(filepath.Join(f.ProjectFilesPath(), name+".yaml"), []byte(text)); err != nil {
		f.T.Fatal(err)
	}
}

// ReloadAndFind makes the daemon read the project files again, and returns the result for one project.
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

// DoActions sends actions for a project to the daemon, such as start and pause.
func (f *DaemonFixture) DoActions(name string, actions ...api.ProjectAction) {
	f.T.Helper()
	for _, a := range actions {
		if err := f.daemon.ControlProject(f.T.Context(), name, a); err != nil {
			f.T.Fatalf("%s %s: %v", a, name, err)
		}
	}
}

// GetProject returns a project as the API shows it.
func (f *DaemonFixture) GetProject(name string) api.Project {
	f.T.Helper()
	p, err := f.daemon.Project(f.T.Context(), name)
	if err != nil {
		f.T.Fatal(err)
	}
	return *p
}

// WaitForState waits up to a minute until a project is in state s, and returns the project.
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
