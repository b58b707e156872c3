//go:build unix

package server

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor/supervisortest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// Other users can read none of the files that a daemon creates.
func TestModesOfDaemon(t *testing.T) {
	f := supervisortest.NewFixture(t, daemontest.ShopSite())
	f.Start(false)
	if _, err := loadOrCreateDaemonTokens(f.Supervisor.DataDir); err != nil {
		t.Fatal(err)
	}
	audit, err := api.OpenAuditLog(f.Supervisor.DataDir.Path(datadir.AuditFile), api.AuditRotationLimits{})
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	if _, err := f.PutProject(t.Context(), "p",
		[]byte(f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML,
			"output: {warc: archive, bodies: true}"))); err != nil {
		t.Fatal(err)
	}
	f.DoActions("p", api.ActionStart)
	f.WaitForState("p", api.StateDone)
	testfile.CheckModes(t, string(f.Supervisor.DataDir), 0o700, 0o600)
	if _, err := f.PutProject(t.Context(), "q",
		[]byte(f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p", "q"} { // q has not run, and has no directory
		if err := f.DeleteProject(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	testfile.CheckModes(t, string(f.Supervisor.DataDir), 0o700, 0o600)
}
