package supervisortest

import (
	"io"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor"
)

// A SupervisorFixture is a web on loopback and a supervisor that crawls it.
type SupervisorFixture struct {
	*supervisor.Supervisor
	*daemontest.DaemonFixture
}

// NewFixture starts a web of sites, and makes the directories of a daemon. The caller starts the
// supervisor with Start.
func NewFixture(t *testing.T, sites ...crawltest.Site) *SupervisorFixture {
	t.Helper()
	return NewFixtureOn(t, crawltest.New(sites...))
}

// NewFixtureOn is NewFixture for an existing web.
func NewFixtureOn(t *testing.T, web *crawltest.Web) *SupervisorFixture {
	t.Helper()
	return &SupervisorFixture{DaemonFixture: daemontest.NewDaemonFixture(t, web)}
}

// Start opens and runs the supervisor until Stop, or until the test ends. startNewProjects is
// supervisor.Options.StartNewProjects.
func (f *SupervisorFixture) Start(startNewProjects bool) {
	f.T.Helper()
	s, err := supervisor.Open(&engine.Dependencies{StandardOutput: io.Discard, Log: f.Logger()}, supervisor.Options{
		DataDir: f.WebFixture.DataDir(), ProjectFilesDir: f.ProjectFilesPath(), StartNewProjects: startNewProjects,
		APIProjectRestrictions: supervisor.APIProjectRestrictions{AllowPrivate: true},
	})
	if err != nil {
		f.T.Fatal(err)
	}
	f.Supervisor = s
	f.DaemonFixture.Run(s)
}
