//go:build unix

package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// A pipe or a directory is refused as a project file, without waiting for its content.
func TestServeReadsRegularFilesOnly(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ShopSite())
	if err := syscall.Mkfifo(filepath.Join(f.ProjectFilesPath(), "pipe"+projectExt), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(f.ProjectFilesPath(), "folder"+projectExt), 0o755); err != nil {
		t.Fatal(err)
	}
	f.PutProjectFile("shop", f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML))
	started := make(chan struct{})
	go func() {
		defer close(started)
		f.start(true)
	}()
	select {
	case <-started:
	case <-time.After(30 * time.Second):
		t.Fatal("the daemon waits for a pipe")
	}
	f.WaitForState("shop", api.StateDone)
	for _, name := range []string{"pipe", "folder"} {
		if r := f.ReloadAndFind(name); r.Outcome != "refused" || r.Error == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
