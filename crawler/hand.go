package crawler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// A hand holds the leases that workers are busy with.
type hand struct {
	mu     sync.Mutex
	leases map[uint64]storage.Lease // by token
}

func (h *hand) take(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases == nil {
		h.leases = map[uint64]storage.Lease{}
	}
	h.leases[l.Token] = l
}

func (h *hand) leave(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, l.Token)
}

func (h *hand) all() []storage.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.leases))
}

// keep renews the leases in hand until ctx is done: a handler may take its
// time.
func (h *hand) keep(ctx context.Context, f *frontier.Frontier) {
	tick := time.NewTicker(f.LeaseTTL() / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, l := range h.all() {
				// A lease that is gone is noticed by its ack.
				_ = f.Renew(ctx, l)
			}
		case <-ctx.Done():
			return
		}
	}
}
