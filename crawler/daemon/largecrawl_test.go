package daemon

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/memory"
)

var (
	largeHosts = flag.Int("large-hosts", 2000, "how many hosts the crawl of TestLargeCrawl has")
	largeDir   = flag.String("large-dir", "", "write the crawl of TestLargeCrawl to this empty directory, and keep it")
)

// writeLargeCrawl writes the data directory of a crawl that met many hosts of one
// domain and visited few: the first fiftieth. Each has one origin and one URL.
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
	fillLargeCrawl(t, store, hosts)
}

// fillLargeCrawl queues a URL of each host, a batch at a time, and visits some.
func fillLargeCrawl(t testing.TB, store storage.Store, hosts int) {
	t.Helper()
	const batch = 1000
	for first := 0; first < hosts; first += batch {
		entries := make([]storage.Entry, 0, batch)
		for i := first; i < min(first+batch, hosts); i++ {
			u, err := decorum.ParseURL(fmt.Sprintf("https://h%d.wildcard.example/page/%d", i, i%7))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, storage.Entry{URL: u, Source: storage.SourceLink})
		}
		if _, err := store.Add(context.Background(), entries, 0); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	leases, _, err := store.Lease(context.Background(), now, time.Hour, hosts/50)
	if err != nil {
		t.Fatal(err)
	}
	hostStats := []byte{1} // the version; then pages, begun, requests, failures, bytes, status, last visit, address
	for _, n := range []int64{1, 1, 2, 0, 1000, 200, now.UnixNano(), 0, 5e8, 0, 1e9, 0, 0, 0, 0, 0} {
		hostStats = binary.AppendUvarint(hostStats, uint64(n))
	}
	for i, l := range leases {
		outcome := []storage.AckOutcome{storage.Done, storage.RetryAt, storage.RevisitAt}[i%3]
		host := storage.HostState{Due: now.Add(time.Duration(i) * time.Second), LostVisitDelay: time.Second, EncodedStats: hostStats}
		ack := storage.Ack{Lease: l, Outcome: outcome, NotBefore: now.Add(time.Hour), HostState: &host}
		err := store.Ack(context.Background(), []storage.Ack{ack})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// heapInUse returns how many bytes of the heap are reachable.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLargeCrawl opens a large crawl as the commands do, and checks their numbers. With
// -v it logs what they take. For a crawl of 600,000 hosts, in a directory that decorum
// report --data reads, too:
//
//	go test ./crawler/daemon -run TestLargeCrawl -large-hosts 600000 -large-dir DIR -v
func TestLargeCrawl(t *testing.T) {
	dir := *largeDir
	if dir == "" {
		dir = t.TempDir()
	}
	writeLargeCrawl(t, dir, *largeHosts)
	before, begin := heapInUse(), time.Now()
	reportStep := func(name string) (heap int64) {
		took := time.Since(begin).Round(time.Millisecond)
		heap = heapInUse() - before
		t.Logf("%s: %v, then %d bytes of heap are in use a host", name, took, heap/int64(*largeHosts))
		begin = time.Now()
		return heap
	}
	a := &program{stdout: NewStickyErrorWriter(io.Discard), stderr: NewStatusLineWriter(io.Discard), Dependencies: Dependencies{Log: slog.New(slog.DiscardHandler)}}
	k, err := a.openStoppedCrawl(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	opened := reportStep("open")
	stats, err := k.countFrontier(t.Context())
	if err != nil || stats.HostCount != *largeHosts {
		t.Errorf("stats: %v, want %d hosts: %+v", err, *largeHosts, stats)
	}
	reportStep("frontier stats")
	s, err := k.StreamedReport(t.Context(), "", 0, MaxHostsInMemory)
	if err != nil || s.Totals.HostCount != *largeHosts {
		t.Fatalf("report: %v, want %d hosts", err, *largeHosts)
	}
	reportStep("report, the totals")
	if err := writeReportJSON(t.Context(), s, io.Discard); err != nil {
		t.Error(err)
	}
	// The store keeps the origins that were read in memory, up to its limit, and the report as many hosts.
	const whole = 2 * MaxHostsInMemory * 2048
	if more := reportStep("report, written as JSON") - opened; more > whole+150*int64(*largeHosts) {
		t.Errorf("the report takes %d bytes of heap for %d hosts", more, *largeHosts)
	}
	runtime.KeepAlive(s)
}

// What a report keeps of a host is what it takes to sort it and to read it again. With
// a limit, and for the numbers of the frontier, nothing grows with the hosts but a hash
// of each, which is gone in the end. A list of hosts keeps what it takes to sort them.
func TestReportMemory(t *testing.T) {
	const hosts = 5000
	store := memory.New(memory.Config{})
	fillLargeCrawl(t, store, hosts)
	p := project.Default()
	gate, err := p.GateConfig()
	if err != nil {
		t.Fatal(err)
	}
	q := &Inspector{Project: p, FrontierStore: store, Gate: robots.NewGate(gate, memory.New(memory.Config{})), Time: time.Now()}
	report := func(limit, maxInMemory int) func() any {
		return func() any {
			s, err := q.StreamedReport(t.Context(), "", limit, maxInMemory)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			err = s.ForEachReportedHost(t.Context(), func(*api.Host) error { n++; return nil })
			if err != nil || limit == 0 && n != hosts {
				t.Fatalf("%d hosts: %v", n, err)
			}
			return s
		}
	}
	stats := func() any {
		s, err := (&stoppedCrawl{Inspector: *q}).countFrontier(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	listHosts := func() any {
		r, err := q.NewHostList(t.Context())
		if err == nil {
			_, _, err = r.Page(t.Context(), q, api.HostQuery{Sort: "requests", Limit: 50})
		}
		if err != nil {
			t.Fatal(err)
		}
		r.cachedReports = nil // these are few, whatever the number of hosts
		return r
	}
	for _, tt := range []struct {
		name        string
		do          func() any
		least, most int64 // bytes a host; other tests may free some meanwhile
	}{
		{"held", report(0, hosts), 500, 4000}, // so that the others mean something
		{"all hosts", report(0, 0), -100, 150},
		{"20 hosts", report(20, 0), -100, 50},
		{"stats", stats, -100, 50},
		{"roster", listHosts, -100, 150},
	} {
		before := heapInUse()
		result := tt.do()
		took := (heapInUse() - before) / hosts
		runtime.KeepAlive(result)
		if took < tt.least || took > tt.most {
			t.Errorf("%s: %d bytes a host, want from %d to %d", tt.name, took, tt.least, tt.most)
		}
	}
}
