//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
)

// Where no daemon runs, its token is not sent to what listens at the default address.
func TestTokenOfAnIdleDaemonStays(t *testing.T) {
	dir := datadir.StateDir(t.TempDir())
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteFileAtomic(dir.Path(server.TokenFile), []byte("secret")); err != nil {
		t.Fatal(err)
	}
	r := daemonClientOptions{serverURL: defaultServer, dataDir: string(dir), flagSet: newBrakeCommand(&Env{}).Flags()}
	if c, err := r.newClient(t.Context()); err != nil || c.Token != "secret" {
		t.Errorf("while it runs without a socket: %+v, %v", c, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := r.newClient(t.Context()); err == nil || !strings.Contains(err.Error(), "decorum serve") {
		t.Errorf("when it has ended: %+v, %v; want an error that says what to do", c, err)
	}
}
