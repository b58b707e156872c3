package bolt

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// TestMemoryBudget: open stores with one SharedMemoryBudget divide the limits equally.
func TestMemoryBudget(t *testing.T) {
	const total = 4 * minShare
	budget := &SharedMemoryBudget{}
	opts := Options{PrefetchCount: total, MaxCachedURLs: total, MaxBufferedChanges: total, SharedMemoryBudget: budget,
		FlushEvery: time.Hour, FlushAfterChanges: 1000, noSync: true}
	first := openStore(t, t.TempDir(), opts)
	defer first.Close()
	wantShare(t, first, total)

	second := openStore(t, t.TempDir(), opts)
	wantShare(t, first, total/2)
	wantShare(t, second, total/2)
	fillCache(t, second, total)
	if got := second.engine.heads.weight; got > total/2 || got < total/4 {
		t.Errorf("%d of %d URLs are cached, the share is %d", got, total, total/2)
	}
	must(t, second.Close())
	wantShare(t, first, total)
}

// TestMinShare: the share of a store is at least minShare, or the whole limit if that is lower.
func TestMinShare(t *testing.T) {
	budget := &SharedMemoryBudget{}
	for range 1000 {
		defer budget.addStore()()
	}
	if got := budget.storeShareOf(1 << 17); got != minShare {
		t.Errorf("one of 1,000 may have %d, want %d", got, minShare)
	}
	if got := budget.storeShareOf(100); got != 100 {
		t.Errorf("one of 1,000 may have %d of 100, want all", got)
	}
}

func wantShare(t *testing.T, s *Store, want int) {
	t.Helper()
	if s.engine.opts.cachedURLLimit() != want || s.engine.opts.bufferedChangeLimit() != want {
		t.Errorf("may cache %d URLs and keep %d changes, want %d", s.engine.opts.cachedURLLimit(),
			s.engine.opts.bufferedChangeLimit(), want)
	}
}

// fillCache queues n URLs of 50 hosts, and leases some, so that the heads of the queues are read.
func fillCache(t *testing.T, s *Store, n int) {
	t.Helper()
	entries := make([]storage.Entry, n)
	for i := range entries {
		entries[i] = newEntry(t, "https://h%d.example/%d", i%50, i)
	}
	addEntries(t, s, entries...)
	now := time.Now()
	for _, l := range mustLease(t, s, now, 50) {
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.RetryAt, NotBefore: now.Add(time.Hour)}}))
	}
}
