package redis

import (
	"cmp"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

// A heldURLLease is what this process records of a lease that it holds.
type heldURLLease struct {
	*client.Partition
	seq          uint64         // order in which leases were added
	robotsFor    decorum.Origin // Entry.RobotsFor
	encodedEntry string         // the record of the entry, as the server has it
	sent         bool           // Entry.Sent
}

// heldLeases holds the leases of this process by their tokens.
type heldLeases struct {
	mu      sync.Mutex // guards byToken and lastSeq
	byToken map[uint64]heldURLLease
	lastSeq uint64 // heldURLLease.seq of the lease that was added last
}

// newHeldLeases returns an empty heldLeases.
func newHeldLeases() *heldLeases { return &heldLeases{byToken: make(map[uint64]heldURLLease)} }

// add records a lease of a partition. encodedEntry is the record on the server.
func (h *heldLeases) add(p *client.Partition, l *storage.Lease, encodedEntry string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastSeq++
	h.byToken[l.Token] = heldURLLease{p, h.lastSeq, l.RobotsFor, encodedEntry, l.Sent}
}

// get returns what was recorded of a lease.
func (h *heldLeases) get(token uint64) (l heldURLLease, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, ok = h.byToken[token]
	return l, ok
}

// update replaces what was recorded of a lease, unless the lease was removed meanwhile.
func (h *heldLeases) update(token uint64, l heldURLLease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.byToken[token]; ok {
		h.byToken[token] = l
	}
}

// remove removes a lease, and returns what was recorded of it: the zero value if nothing was.
func (h *heldLeases) remove(token uint64) heldURLLease {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.byToken[token]
	delete(h.byToken, token)
	return l
}

// tokensByPartition returns the tokens of all leases by partition, the last added first. Leases
// that are returned in this order leave their queues as they were.
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
