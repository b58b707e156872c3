package redis

import (
	"cmp"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

// A heldURLLease is a lease that this process has.
type heldURLLease struct {
	*client.Partition
	seq          uint64         // grows with each lease that is added
	robotsFor    decorum.Origin // Entry.RobotsFor
	encodedEntry string         // of the entry, as it is kept
	sent         bool           // Entry.Sent
}

// heldLeases are the leases that this process has, by their tokens.
type heldLeases struct {
	mu      sync.Mutex // guards the fields below
	byToken map[uint64]heldURLLease
	lastSeq uint64
}

func newHeldLeases() *heldLeases { return &heldLeases{byToken: make(map[uint64]heldURLLease)} }

// add keeps a lease of a partition, with its entry as it is kept there.
func (h *heldLeases) add(p *client.Partition, l *storage.Lease, encodedEntry string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastSeq++
	h.byToken[l.Token] = heldURLLease{p, h.lastSeq, l.RobotsFor, encodedEntry, l.Sent}
}

// get returns what is known of a lease.
func (h *heldLeases) get(token uint64) (l heldURLLease, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok = h.byToken[token]
	return l, ok
}

// update replaces what is known of a lease, unless it was removed meanwhile.
func (h *heldLeases) update(token uint64, l heldURLLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.byToken[token]; ok {
		h.byToken[token] = l
	}
}

// remove forgets a lease, and returns what was known of it: the zero value if nothing was.
func (h *heldLeases) remove(token uint64) heldURLLease {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.byToken[token]
	delete(h.byToken, token)
	return l
}

// tokensByPartition returns the tokens of all leases, those first that were added last:
// returned in that order, their URLs are in their queues as they were.
func (h *heldLeases) tokensByPartition() map[*client.Partition][]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	tokens := make(map[*client.Partition][]uint64)
	for token, l := range h.byToken {
		tokens[l.Partition] = append(tokens[l.Partition], token)
	}
	for _, all := range tokens {
		slices.SortFunc(all, func(a, b uint64) int { return cmp.Compare(h.byToken[b].seq, h.byToken[a].seq) })
	}
	return tokens
}
