package cli

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/memlimit"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// While memory is low, the daemon refuses a project's links to new hosts with a reason, and queues
// those to known hosts. The test's limit of one byte is always reached.
func TestLowMemoryRefusesNewHosts(t *testing.T) {
	var log bytes.Buffer
	a := &program{Env: command.Env{Dependencies: engine.Dependencies{Log: slog.New(slog.NewTextHandler(&log, nil))}}}
	p := project.Default()
	p.Agent.Contact, p.Seeds, p.Scope.ScopeMode = "mailto:a@b.test", []string{"http://a.test/"}, "any"
	seedPerOrigin, err := p.FirstSeedPerOrigin(os.Open)
	if err != nil {
		t.Fatal(err)
	}
	g := engine.Config{Stores: datadir.CrawlStores{Frontier: memory.New(memory.Config{}),
		Robots: memory.New(memory.Config{})}, Log: a.Log}
	g.MemoryPressureMonitor = engine.NewMemoryPressureMonitor(memlimit.Limit{Bytes: 1, Source: memlimit.Cgroup}, a.Log)
	r, err := g.NewWithoutCrawler(p, seedPerOrigin, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(source storage.Source, urls ...string) (added int) {
		for _, text := range urls {
			u, err := decorum.ParseURL(text)
			if err != nil {
				t.Fatal(err)
			}
			n, err := r.Frontier.Discover(t.Context(), storage.Entry{URL: u, Source: source})
			if err != nil {
				t.Fatal(err)
			}
			added += n
		}
		return added
	}
	if n := add(storage.SourceSeed, "http://a.test/"); n != 1 {
		t.Error("a seed is refused")
	}
	if n := add(storage.SourceLink, "http://a.test/1", "http://b.test/", "http://c.test/"); n != 1 {
		t.Errorf("%d links were queued, want that to the host of the seed", n)
	}
	if n := r.Frontier.RefusalsByReason()[frontier.LowMemory]; n != 2 {
		t.Errorf("%d were refused, want 2", n)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "memory is nearly used up") {
		t.Errorf("%d lines: %s", n, log.String())
	}
}
