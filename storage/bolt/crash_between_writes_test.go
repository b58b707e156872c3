package bolt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// openTime is the time of Open in these tests, long before the hosts are due.
var openTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// TestCrashAfterEachTransaction: after a crash behind any transaction, whatever it wrote of the log and
// of checkpoints, the file has the state of all calls up to that transaction and of no later call. A
// transaction that fails changes nothing, and is repeated.
func TestCrashAfterEachTransaction(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("STORAGETEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("STORAGETEST_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	opts := Options{FlushEvery: time.Hour, FlushAfterChanges: 1 << 30, MaxBufferedChanges: 60, MaxCachedURLs: 10,
		PrefetchCount: 2, noSync: true, maxCheckpointPages: 8, MaxHostsInMemory: 1,
		Now: func() time.Time { return openTime }}
	s := openWithoutCommitter(t, dir, opts)
	w := &randomCaller{T: t, rand: r, store: s, now: openTime.AddDate(100, 0, 0)}
	durable := dumpStore(t, s)
	var pendingDump []string
	trims, partial, carriedOver := 0, 0, 0
	for round := range 100 {
		for range r.IntN(14) {
			w.callRandom()
		}
		for range 1 + r.IntN(4) { // only the first write has new calls, the others checkpoint
			if r.IntN(4) == 0 {
				s.setUpdate(diskFullUpdate(s))
			}
			if s.engine.journal.batchToWrite == nil { // otherwise the failed batch is written again, unchanged
				pendingDump = dumpStore(t, s)
			}
			logged := s.engine.journal.loggedChangeCount
			s.engine.journal.unchangedSinceWrite, s.engine.opts.MaxBufferedChanges = true,
				1+r.IntN(2)*opts.MaxBufferedChanges
			s.engine.committer.commit()
			if s.engine.journal.loggedChangeCount < logged {
				trims++
				if len(s.engine.journal.dirtyOrigins) > 0 {
					carriedOver++
				}
			}
			if s.engine.journal.batchToWrite == nil {
				durable = pendingDump
			}
			s.setUpdate(s.engine.file.db.Update)
			w.file = filepath.Join(t.TempDir(), "frontier.db")
			must(t, s.engine.file.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(w.file, 0o600) }))
			again := openWithoutCommitter(t, filepath.Dir(w.file), opts)
			if diff := cmp.Diff(durable, dumpStore(t, again)); diff != "" {
				t.Fatalf("round %d, failed: %t (-before the crash +after):\n%s", round,
					s.engine.status.err != nil, diff)
			}
			must(t, again.engine.file.db.Close())
			if len(s.engine.journal.originsToCheckpoint) > 0 {
				partial++
			}
		}
		if round%10 == 9 { // continue with the copy, which is a crashed store
			must(t, s.engine.file.db.Close())
			s = openWithoutCommitter(t, filepath.Dir(w.file), opts)
			w.store, w.leases = s, nil
			durable = dumpStore(t, s)
		}
	}
	must(t, s.engine.file.db.Close())
	if trims == 0 || partial == 0 || carriedOver == 0 {
		t.Errorf("%d transactions cut the log, %d of them left origins with changes, and %d were within a sweep: "+
			"the test sees too little", trims, carriedOver, partial)
	}
}

// TestCheckpointOfALargeOrigin: the fingerprints of an origin with very many URLs are checkpointed in
// several transactions, each within maxCheckpointPages. A crash between two of them loses nothing.
func TestCheckpointOfALargeOrigin(t *testing.T) {
	const pages, urls = 8, 700
	opts := Options{FlushEvery: time.Hour, MaxBufferedChanges: 2 * urls, noSync: true, maxCheckpointPages: pages,
		Now: func() time.Time { return openTime }}
	s := openWithoutCommitter(t, t.TempDir(), opts)
	for i := range urls {
		addEntries(t, s, newEntry(t, "https://h.example/%d", i), newEntry(t, "https://small.example/%d", i%3))
	}
	maxInBatch := 0
	s.setUpdate(func(write func(*bbolt.Tx) error) error {
		fingerprints := 0
		for _, f := range s.engine.journal.batchToWrite.originCheckpoints {
			fingerprints += f.seenURLFingerprints.len()
		}
		maxInBatch = max(maxInBatch, fingerprints)
		return s.engine.file.db.Update(write)
	})
	want := dumpStore(t, s)
	for n := 0; n == 0 || s.engine.journal.bufferedChangeCount > 0; n++ {
		if n == 10 { // a URL that is added meanwhile is checkpointed, too
			addEntries(t, s, newEntry(t, "https://h.example/meanwhile"))
			want = dumpStore(t, s)
		}
		s.engine.journal.unchangedSinceWrite = true
		s.engine.committer.commit()
		if diff := cmp.Diff(want, dumpStore(t, s)); diff != "" {
			t.Fatalf("transaction %d (-before +after):\n%s", n, diff)
		}
		if n%10 == 0 || s.engine.journal.bufferedChangeCount == 0 {
			file := filepath.Join(t.TempDir(), "frontier.db")
			must(t, s.engine.file.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(file, 0o600) }))
			again := openWithoutCommitter(t, filepath.Dir(file), opts)
			if diff := cmp.Diff(want, dumpStore(t, again)); diff != "" {
				t.Fatalf("transaction %d (-before a crash +after):\n%s", n, diff)
			}
			must(t, again.engine.file.db.Close())
		}
	}
	if maxInBatch > 2*pages {
		t.Errorf("%d fingerprints in one transaction, want %d at most", maxInBatch, 2*pages)
	}
	must(t, s.engine.file.db.Close())
}

// openWithoutCommitter opens a store without its goroutine: only the test writes to the file.
func openWithoutCommitter(t *testing.T, dir string, opts Options) *Store {
	t.Helper()
	s := openStore(t, dir, opts)
	close(s.engine.committer.quit)
	<-s.engine.committer.done
	return s
}

// A randomCaller makes random calls of a store.
type randomCaller struct {
	*testing.T
	rand   *rand.Rand
	store  *Store
	now    time.Time
	leases []storage.Lease
	file   string // path of the last copy of the file
}

func (w *randomCaller) callRandom() {
	w.now = w.now.Add(time.Second)
	w.store.engine.opts.MaxBufferedChanges = 1 << 30 // only the test writes, so that a call would wait forever
	stalled := w.store.engine.status.err != nil
	ctx, o := w.Context(), w.randomOrigin()
	switch n := w.rand.IntN(10); {
	case n < 4:
		e := newEntry(w.T, "%v/%d", o, w.rand.IntN(200))
		e.PriorityClass, e.PriorityRank = storage.PriorityClass(w.rand.IntN(4)), uint16(w.rand.IntN(3))
		addEntries(w.T, w.store, e, newEntry(w.T, "%v/%d", o, w.rand.IntN(200)))
	case n == 4:
		must(w.T, w.store.SetNote(ctx, o, "key", []byte(strconv.Itoa(w.rand.Int()))))
	case n == 5:
		must(w.T, w.store.Hold(ctx, o, w.now.Add(time.Minute), true))
	case n == 6:
		_, err := w.store.UnparkMatchingURLs(ctx, o, func(e storage.Entry) bool {
			return len(e.URL.PathAndQuery())%2 == 0
		})
		must(w.T, err)
		_, err = w.store.RescheduleByLastmod(ctx, w.now,
			[]storage.SitemapLastmod{{URL: newEntry(w.T, "%v/%d", o, w.rand.IntN(200)).URL, Modified: w.now}})
		must(w.T, err)
	case stalled:
	default:
		leases, _, err := w.store.Lease(ctx, w.now, time.Hour, 1+w.rand.IntN(4))
		must(w.T, err)
		w.leases = append(w.leases, leases...)
		for len(w.leases) > 3 {
			a := storage.Ack{Lease: w.leases[0], Outcome: storage.AckOutcome(w.rand.IntN(6)),
				NotBefore: w.now.Add(time.Minute)}
			a.HostState = &storage.HostState{Due: w.now, LostVisitDelay: time.Duration(w.rand.IntN(9)),
				ConsecutiveFailures: w.rand.IntN(5)}
			must(w.T, w.store.Ack(ctx, []storage.Ack{a}))
			w.leases = w.leases[1:]
		}
	}
}

// randomOrigin returns one of a few origins. Two of them share a host each.
func (w *randomCaller) randomOrigin() decorum.Origin {
	scheme := []string{"http", "https"}[w.rand.IntN(2)]
	return newEntry(w.T, "%s://h%d.example/", scheme, w.rand.IntN(5)).URL.Origin()
}

// dumpStore returns the contents of a store. Leased URLs count as queued.
func dumpStore(t *testing.T, s *Store) []string {
	t.Helper()
	c := must1(s.Counts(t.Context()))
	all := []string{fmt.Sprint("counts ", c.QueuedURLs+c.LeasedURLs+c.AwaitingRevisit, c.ParkedURLs, c.SeenURLs)}
	var origins []decorum.Origin
	must(t, s.Origins(t.Context(), func(i storage.OriginInfo) bool {
		origins = append(origins, i.Origin)
		if i.HostState.Due.Before(openTime.AddDate(50, 0, 0)) {
			i.HostState.Due = time.Time{} // the delay after a restart
		}
		all = append(all, fmt.Sprint(i.Origin, i.HostState, i.HeldUntil.Unix(), i.Suspended,
			i.QueuedURLs+i.LeasedURLs+i.AwaitingRevisit, i.ParkedURLs, i.SeenURLs))
		return true
	}))
	for _, o := range origins {
		var urls []string // sorted below: leased URLs come first, and are in their places again after a restart
		for state, name := range map[storage.EntryState]string{storage.StateQueued: "waits",
			storage.StateAwaitingRevisit: "waits", storage.StateParked: "parked"} {
			must(t, s.OriginURLsInState(t.Context(), o, state, func(e storage.Entry, _ time.Time) bool {
				urls = append(urls, fmt.Sprint(name, e.URL, e.PriorityClass, e.PriorityRank, e.FailedAttempts,
					e.VisitHistorySummary != nil))
				return true
			}))
		}
		slices.Sort(urls)
		all = append(all, urls...)
		all = append(all, string(must1(s.ReadNote(t.Context(), o, "key"))))
		known := 0
		for i := range 200 {
			if must1(s.HasSeen(t.Context(), newEntry(t, "%v/%d", o, i).URL)) {
				known += 1000 + i
			}
		}
		all = append(all, fmt.Sprint(o, " knows ", known))
	}
	return all
}
