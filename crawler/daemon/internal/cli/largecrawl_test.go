package cli

import (
	"flag"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

var (
	largeHosts = flag.Int("large-hosts", 2000, "how many hosts the crawl of TestLargeCrawl has")
	largeDir   = flag.String("large-dir", "", "write the crawl of TestLargeCrawl to this empty directory, and keep it")
)

// writeLargeCrawl writes the data directory of a crawl that found many hosts of one domain and visited
// only the first fiftieth of them. Each host has one origin and one URL.
func writeLargeCrawl(t testing.TB, dir string, hosts int) {
	t.Helper()
	p := project.Default()
	p.Store.Path = dir
	if err := datadir.StateDir(dir).SaveProject(p, false); err != nil {
		t.Fatal(err)
	}
	robots, err := bolt.Open(filepath.Join(dir, datadir.RobotsFile), bolt.Options{})
	if err == nil {
		err = robots.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(filepath.Join(dir, datadir.StoreFile), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	daemontest.FillLargeCrawl(t, store, hosts)
}

// TestLargeCrawl opens a large crawl as the commands do, and checks their numbers. With -v it logs
// their time and memory. For a crawl of 600,000 hosts, in a directory that decorum report --data can
// read too:
//
//	go test ./crawler/daemon/internal/cli -run TestLargeCrawl -large-hosts 600000 -large-dir DIR -v
func TestLargeCrawl(t *testing.T) {
	dir := *largeDir
	if dir == "" {
		dir = t.TempDir()
	}
	writeLargeCrawl(t, dir, *largeHosts)
	before, begin := daemontest.HeapInUse(), time.Now()
	reportStep := func(name string) (heap int64) {
		took := time.Since(begin).Round(time.Millisecond)
		heap = daemontest.HeapInUse() - before
		t.Logf("%s: %v, then %d bytes of heap are in use a host", name, took, heap/int64(*largeHosts))
		begin = time.Now()
		return heap
	}
	env := &command.Env{Stdout: terminal.NewStickyErrorWriter(io.Discard),
		Stderr:       terminal.NewStatusLineWriter(io.Discard),
		Dependencies: engine.Dependencies{Log: slog.New(slog.DiscardHandler)}}
	k, err := stoppedcrawl.Open(env, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	opened := reportStep("open")
	stats, err := k.FrontierStats(t.Context())
	if err != nil || stats.HostCount != *largeHosts {
		t.Errorf("stats: %v, want %d hosts: %+v", err, *largeHosts, stats)
	}
	reportStep("frontier stats")
	err = k.Report(t.Context(), api.ReportQuery{}, func(s *api.StreamedReport) error {
		if s.Totals.HostCount != *largeHosts {
			t.Errorf("report: %d hosts, want %d", s.Totals.HostCount, *largeHosts)
		}
		reportStep("report, the totals")
		err := s.WriteJSON(io.Discard)
		// The store keeps origins in memory, up to its limit, and the report keeps as many hosts.
		const whole = 2 * inspect.MaxHostsInMemory * 2048
		if more := reportStep("report, written as JSON") - opened; more > whole+150*int64(*largeHosts) {
			t.Errorf("the report takes %d bytes of heap for %d hosts", more, *largeHosts)
		}
		runtime.KeepAlive(s)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
