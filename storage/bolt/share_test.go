package bolt

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// Stores that share memory divide what one alone may have, as long as they are open.
func TestShare(t *testing.T) {
	const most = 4 * leastShare
	share := &Share{}
	opts := Options{Window: most, Cached: most, Held: most, Share: share, FlushEvery: time.Hour, FlushSize: 1000, noSync: true}
	first := open(t, t.TempDir(), opts)
	defer first.Close()
	wantShare(t, first, most)

	second := open(t, t.TempDir(), opts)
	wantShare(t, first, most/2)
	wantShare(t, second, most/2)
	fillHeads(t, second, most)
	if got := second.cached; got > most/2 || got < most/4 {
		t.Errorf("%d of %d URLs are cached, the share is %d", got, most, most/2)
	}
	must(t, second.Close())
	wantShare(t, first, most)
}

// However many there are, a store can work.
func TestLeastShare(t *testing.T) {
	share := &Share{}
	for range 1000 {
		defer share.join()()
	}
	if got := share.of(1 << 17); got != leastShare {
		t.Errorf("one of 1,000 may have %d, want %d", got, leastShare)
	}
	if got := share.of(100); got != 100 {
		t.Errorf("one of 1,000 may have %d of 100, want all", got)
	}
}

func wantShare(t *testing.T, s *Store, want int) {
	t.Helper()
	if s.cachedMost() != want || s.heldMost() != want {
		t.Errorf("may cache %d URLs and hold %d changes, want %d", s.cachedMost(), s.heldMost(), want)
	}
}

// fillHeads queues n URLs of 50 hosts, and has the queues read.
func fillHeads(t *testing.T, s *Store, n int) {
	t.Helper()
	entries := make([]storage.Entry, n)
	for i := range entries {
		entries[i] = entry(t, "https://h%d.example/%d", i%50, i)
	}
	add(t, s, entries...)
	now := time.Now()
	for _, l := range leaseAll(t, s, now, 50) {
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Later, At: now.Add(time.Hour)}}))
	}
}
