package stoppedcrawl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
)

// A project without a crawl opens with an empty frontier, and its directory is not created.
func TestOpenProjectWithoutCrawl(t *testing.T) {
	p := project.Default()
	p.Store.Path = filepath.Join(t.TempDir(), "data")
	k, err := OpenProject(&command.Env{}, p)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := k.FrontierStats(t.Context())
	if err != nil || stats.HostCount != 0 || k.Dir != datadir.StateDir(p.Store.Path) {
		t.Errorf("%+v of %s, %v; want an empty frontier", stats, k.Dir, err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.Store.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was created: %v", err)
	}
	if _, err := Open(&command.Env{}, p.Store.Path); err == nil {
		t.Error("Open succeeded in a directory without a crawl")
	}
}

// The directory of an open crawl is locked. A signal cancels the use of the crawl, which is then
// closed.
func TestOpenAndDo(t *testing.T) {
	p := project.Default()
	p.Agent.Contact, p.Seeds, p.Store.Path = "mailto:a@b.example", []string{"http://a.example/"}, t.TempDir()
	dir := datadir.StateDir(p.Store.Path)
	if err := dir.SaveProject(p, false); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	env := &command.Env{Signals: signals}
	stores, err := datadir.OpenStores(p, env.BoltOptions(p, nil))
	if err == nil {
		err = stores.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	err = OpenAndDo(t.Context(), env, p.Store.Path, func(ctx context.Context, k *Crawl) error {
		if _, err := dir.Lock(); err == nil {
			t.Error("the directory is not locked")
		}
		if err := k.FrontierStore.Origins(ctx, func(storage.OriginInfo) bool { return true }); err != nil {
			t.Error(err)
		}
		signals <- os.Interrupt
		<-ctx.Done()
		return ctx.Err()
	})
	if command.ExitCode(err) != command.ExitStopped {
		t.Errorf("error %v, want the exit code of a signal", err)
	}
	lock, err := dir.Lock()
	if err != nil {
		t.Fatal("the directory is locked after the end:", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}
