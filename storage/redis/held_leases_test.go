package redis

import (
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

// tokensByPartition returns the tokens of each partition, the last added first, without removed ones.
// A late update does not bring back a removed lease.
func TestHeldLeases(t *testing.T) {
	all := []*client.Partition{{}, {}}
	h := newHeldLeases()
	for token := range uint64(6) {
		h.add(all[token%2], &storage.Lease{Token: token, Entry: pageEntry("https://a.example/")}, "record")
	}
	removed := h.remove(2)
	if removed.Partition != all[0] || removed.encodedEntry != "record" {
		t.Errorf("removed %+v", removed)
	}
	removed.sent = true
	h.update(2, removed)
	if _, ok := h.get(2); ok {
		t.Error("an update has brought back a removed lease")
	}
	if again := h.remove(2); again.Partition != nil {
		t.Errorf("removed twice: %+v", again)
	}
	l, _ := h.get(3)
	l.sent = true
	h.update(3, l)
	if l, ok := h.get(3); !ok || !l.sent {
		t.Errorf("%+v, want the updated lease", l)
	}
	tokens := h.tokensByPartition()
	if want := []uint64{4, 0}; !slices.Equal(tokens[all[0]], want) {
		t.Errorf("tokens %v of the first partition, want %v", tokens[all[0]], want)
	}
	if want := []uint64{5, 3, 1}; !slices.Equal(tokens[all[1]], want) {
		t.Errorf("tokens %v of the second partition, want %v", tokens[all[1]], want)
	}
}
