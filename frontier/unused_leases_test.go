package frontier

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestReturnUnusedLeases: leases that were made for workers which have gone are queued
// again.
func TestReturnUnusedLeases(t *testing.T) {
	store := memory.New(memory.Config{})
	f := New(store, Config{})
	for _, s := range []string{"http://a.test/", "http://b.test/"} {
		u, err := decorum.ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Discover(t.Context(), storage.Entry{URL: u}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if f.readyLeases, _, err = store.Lease(t.Context(), time.Now(), time.Hour, 2); err != nil || len(f.readyLeases) != 2 {
		t.Fatalf("%d leases, %v", len(f.readyLeases), err)
	}
	if err := f.ReturnUnusedLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Counts(t.Context()); err != nil || n.LeasedURLs != 0 || n.QueuedURLs != 2 {
		t.Errorf("%+v, %v: want two queued", n, err)
	}
}
