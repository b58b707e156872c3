package bolt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

// manualCommitOptions returns options with which only commitAndCheckpoint writes.
func manualCommitOptions(hosts int) Options {
	return Options{MaxHostsInMemory: hosts, FlushEvery: time.Hour, FlushAfterChanges: 1 << 30,
		MaxBufferedChanges: 1 << 24, noSync: true,
		Now: func() time.Time { return openTime }}
}

func openManualCommit(t testing.TB, path string, hosts int) *Store {
	t.Helper()
	s, err := Open(path, manualCommitOptions(hosts))
	must(t, err)
	return s
}

// commitAndCheckpoint writes and checkpoints all changes.
func commitAndCheckpoint(t testing.TB, s *Store) {
	t.Helper()
	for range 1000 {
		if ok, _ := s.engine.committer.commit(); !ok {
			t.Fatal("cannot write")
		}
		if s.engine.journal.bufferedChangeCount == 0 {
			return
		}
	}
	t.Fatalf("%d changes are left", s.engine.journal.bufferedChangeCount)
}

// addHosts adds an http URL of each of n hosts, and an https URL of every seventh.
func addHosts(t testing.TB, s *Store, n int) {
	t.Helper()
	var batch []storage.Entry
	for i := range n {
		for _, scheme := range []string{"http", "https"}[:1+(i+1)%7/6] {
			u, err := decorum.ParseURL(fmt.Sprintf("%s://h%d.example/", scheme, i))
			must(t, err)
			batch = append(batch, storage.Entry{URL: u, Source: storage.SourceLink, PriorityClass: storage.ClassNormal})
		}
	}
	for len(batch) > 0 {
		k := min(len(batch), 1000)
		_, err := s.Add(t.Context(), batch[:k], 0)
		must(t, err)
		batch = batch[k:]
	}
}

// spreadHosts makes the hosts due at different times.
func spreadHosts(t testing.TB, s *Store, n int) {
	t.Helper()
	leases, _, err := s.Lease(t.Context(), openTime, time.Hour, n)
	must(t, err)
	for _, l := range leases {
		var i int
		_, err := fmt.Sscanf(l.URL.Origin().Host(), "h%d.", &i)
		must(t, err)
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Requeue,
			HostState: &storage.HostState{Due: openTime.Add(time.Duration(i) * 100 * time.Millisecond)}}}))
	}
}

// TestEvictedHostsKeepTheirTurns: a store with evicted hosts leases the same URLs at the same times as a
// store with all hosts in memory, through visits, retries, revisits, holds and restarts.
func TestEvictedHostsKeepTheirTurns(t *testing.T) {
	const hosts, steps = 300, 1500
	paths := [2]string{filepath.Join(t.TempDir(), "idle.db"), filepath.Join(t.TempDir(), "all.db")}
	limits := [2]int{5, 1 << 20}
	var stores [2]*Store
	for i := range stores {
		stores[i] = openManualCommit(t, paths[i], limits[i])
		addHosts(t, stores[i], hosts)
		spreadHosts(t, stores[i], hosts)
		commitAndCheckpoint(t, stores[i])
	}
	random := rand.New(rand.NewPCG(7, 7))
	now, minInMemory, visits := openTime, hosts, 0
	for step := range steps {
		now = now.Add(time.Duration(random.IntN(300)) * time.Millisecond)
		// The times differ to the nanosecond: hosts that are due together may go in either order.
		outcome := []storage.AckOutcome{storage.Done, storage.RetryAt, storage.RevisitAt,
			storage.Requeue}[random.IntN(4)]
		wait := time.Duration(random.Int64N(int64(time.Minute)))
		hold := random.IntN(20) == 0
		var got [2]string
		for i, s := range stores {
			leases, next, err := s.Lease(t.Context(), now, time.Hour, 1)
			must(t, err)
			counts, err := s.Counts(t.Context())
			must(t, err)
			got[i] = fmt.Sprint(next, counts)
			for _, l := range leases {
				got[i] += l.URL.String()
				visits++
				must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: outcome, NotBefore: now.Add(wait / 2),
					HostState: &storage.HostState{Due: now.Add(wait + time.Duration(step)), LostVisitDelay: wait}}}))
			}
			if hold {
				u, err := decorum.ParseURL(fmt.Sprintf("http://h%d.example/", step%hosts))
				must(t, err)
				must(t, s.Hold(t.Context(), u.Origin(), now.Add(wait), step%2 == 0))
			}
			if step%40 == 0 {
				commitAndCheckpoint(t, s)
			}
			if step%400 == 399 {
				must(t, s.Close())
				stores[i] = openManualCommit(t, paths[i], limits[i])
			}
		}
		if got[0] != got[1] {
			t.Fatalf("step %d: with evicted hosts %s, without %s", step, got[0], got[1])
		}
		minInMemory = min(minInMemory, len(stores[0].engine.index.hosts))
	}
	if visits < steps {
		t.Errorf("%d visits in both stores, want most of %d", visits, 2*steps)
	}
	if minInMemory > 100 {
		t.Errorf("never less than %d of %d hosts were in memory", minInMemory, hosts)
	}
	for _, s := range stores {
		must(t, s.Close())
	}
}

// TestEvictedHostsAreInspected: Origins yields the same for evicted origins as for those in memory.
func TestEvictedHostsAreInspected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frontier.db")
	infos := func(hosts int) (list []string) {
		s := openManualCommit(t, path, hosts)
		defer func() { must(t, s.Close()) }()
		if hosts == 1 && len(s.engine.index.hosts) > 10 {
			t.Errorf("%d hosts are in memory", len(s.engine.index.hosts))
		}
		must(t, s.Origins(t.Context(), func(o storage.OriginInfo) bool {
			list = append(list, fmt.Sprintf("%+v", o))
			return true
		}))
		return list
	}
	s := openManualCommit(t, path, 1)
	addHosts(t, s, 100)
	for i := range 50 {
		leases, _, err := s.Lease(t.Context(), openTime.Add(time.Duration(i)), time.Hour, 1)
		must(t, err)
		outcome := []storage.AckOutcome{storage.RevisitAt, storage.RetryAt}[i%2]
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: leases[0], Outcome: outcome,
			NotBefore: openTime.Add(time.Hour),
			HostState: &storage.HostState{Due: openTime.Add(time.Minute)}}}))
	}
	commitAndCheckpoint(t, s)
	must(t, s.Close())
	evicted, all := infos(1), infos(1<<20)
	for i := range all {
		if evicted[i] != all[i] {
			t.Fatalf("evicted:   %s\nin memory: %s", evicted[i], all[i])
		}
	}
}

// TestIdleHostsTakeLittleMemory: an evicted host takes at most a quarter of the memory of a host in
// memory.
func TestIdleHostsTakeLittleMemory(t *testing.T) {
	const hosts = 20_000
	path := filepath.Join(t.TempDir(), "frontier.db")
	s := openManualCommit(t, path, 1)
	addHosts(t, s, hosts)
	commitAndCheckpoint(t, s)
	if n := len(s.engine.index.hosts); n > 100 {
		t.Errorf("%d hosts are in memory after all checkpoints, want a few", n)
	}
	must(t, s.Close())
	bytesOf := func(limit int) int64 {
		before := liveHeap()
		s := openManualCommit(t, path, limit)
		after := liveHeap()
		if c, err := s.Counts(t.Context()); err != nil || c.QueuedHosts != hosts {
			t.Errorf("%d hosts (%v), want %d", c.QueuedHosts, err, hosts)
		}
		must(t, s.Close())
		return (after - before) / hosts
	}
	evicted, all := bytesOf(1), bytesOf(1<<20)
	t.Logf("a host takes %d bytes, an evicted one %d", all, evicted)
	if evicted*4 > all {
		t.Errorf("an evicted host takes %d bytes, one in memory %d", evicted, all)
	}
}

// TestVisitedHostsAreEvicted: hosts are evicted again after their visits.
func TestVisitedHostsAreEvicted(t *testing.T) {
	const hosts = 3000
	s := openManualCommit(t, filepath.Join(t.TempDir(), "frontier.db"), 1)
	addHosts(t, s, hosts)
	commitAndCheckpoint(t, s)
	now := openTime
	for i := range hosts {
		now = now.Add(time.Millisecond)
		leases, _, err := s.Lease(t.Context(), now, time.Hour, 1)
		must(t, err)
		for _, l := range leases {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.RetryAt,
				NotBefore: now.Add(10 * time.Second),
				HostState: &storage.HostState{Due: now.Add(time.Second)}}}))
		}
		if i%100 == 0 {
			commitAndCheckpoint(t, s)
		}
	}
	commitAndCheckpoint(t, s)
	if hosts, heads := len(s.engine.index.hosts), len(s.engine.heads.origins); hosts > 100 || heads > 100 {
		t.Errorf("%d hosts and %d origins with a head are in memory, want a few", hosts, heads)
	}
	must(t, s.Close())
}

// A checkpointingStore checkpoints all changes at every third call of Counts, so that hosts are evicted
// all the time.
type checkpointingStore struct {
	*Store
	t       testing.TB
	calls   int
	evicted *atomic.Int64 // sum of the numbers of evicted hosts after each checkpoint
}

func (s *checkpointingStore) Counts(ctx context.Context) (storage.Counts, error) {
	if s.calls++; s.calls%3 == 0 {
		commitAndCheckpoint(s.t, s.Store)
		for n := range s.Store.engine.index.lastOriginNumber {
			if s.Store.engine.index.schedule.EvictedHostByNumber(n+1) != nil {
				s.evicted.Add(1)
			}
		}
	}
	return s.Store.Counts(ctx)
}

// TestStoreOfEvictedHosts runs the durable suite, with its random calls and restarts, on a store that
// evicts hosts all the time.
func TestStoreOfEvictedHosts(t *testing.T) {
	var evicted atomic.Int64
	t.Cleanup(func() {
		if n := evicted.Load(); n < 1000 {
			t.Errorf("hosts were evicted %d times: the test sees too little", n)
		}
	})
	storagetest.RunDurable(t, func(t testing.TB, dir string) storage.Store {
		opts := manualCommitOptions(1)
		opts.Now = nil
		return &checkpointingStore{Store: openStore(t, dir, opts), t: t, evicted: &evicted}
	})
}

// TestEvictedHostsStayEvicted: adding known URLs does not restore evicted hosts.
func TestEvictedHostsStayEvicted(t *testing.T) {
	s := openManualCommit(t, filepath.Join(t.TempDir(), "frontier.db"), 1)
	addHosts(t, s, 500)
	commitAndCheckpoint(t, s)
	evicted := func() (hosts []*schedule.EvictedHostStub) {
		for n := range s.engine.index.lastOriginNumber {
			hosts = append(hosts, s.engine.index.schedule.EvictedHostByNumber(n+1))
		}
		return hosts
	}
	before := evicted()
	addHosts(t, s, 500)
	restored := 0
	for n, h := range evicted() { // a restored host has another stub when it is evicted again
		if h != before[n] {
			restored++
		}
	}
	if restored > 10 {
		t.Errorf("%d hosts were restored", restored)
	}
	if c := must1(s.Counts(t.Context())); c.QueuedHosts != 500 || c.QueuedURLs != c.SeenURLs {
		t.Errorf("counts %+v: a known page was queued again", c)
	}
	must(t, s.Close())
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
