package redis

import (
	"maps"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// Each part of a Store works without one, on a client.

// openTestClient opens the client of a store of its own on a server of its own, whose
// time is what the client's clock is told.
func openTestClient(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Open(t.Context(), client.Config{
		Addresses: redistest.StartClusterForTest(t, 1, 0).Addrs(), Prefix: newPrefix(), Partitions: 3, Durability: client.DurabilityNone,
		CacheBytes: 1 << 20, Timeout: 5 * time.Second, OnStallChange: func(error) {}, UsesCallerTime: true,
	})
	must(t, err)
	t.Cleanup(func() { c.Close(func() error { return nil }) })
	return c
}

// Notes are read as they were set, an empty one too, and are no larger than a note may be.
func TestNoteStore(t *testing.T) {
	t.Parallel()
	n := &noteStore{openTestClient(t)}
	must(t, n.set(t.Context(), shopOrigin, "rules", []byte("allow")))
	must(t, n.set(t.Context(), shopOrigin, "empty", []byte{}))
	must(t, n.set(t.Context(), shopOrigin, "gone", []byte("soon")))
	must(t, n.set(t.Context(), shopOrigin, "gone", nil))
	if v := must1(n.read(t.Context(), shopOrigin, "gone")); v != nil {
		t.Errorf("a note that was deleted is %q", v)
	}
	got := map[string]string{}
	must(t, n.all(t.Context(), shopOrigin, func(key string, value []byte) bool {
		got[key] = string(value)
		return true
	}))
	if want := map[string]string{"rules": "allow", "empty": ""}; !maps.Equal(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if err := n.set(t.Context(), shopOrigin, "large", make([]byte, storage.MaxNoteBytes+1)); err == nil {
		t.Error("a note was set that is larger than a note may be")
	}
}
