package crawler

import (
	"sync"

	"github.com/decorum-crawler/decorum/storage"
)

// clocks are the newest states of hosts that get several visits at a time. A
// lease knows its host as it was when the lease was made; another visit may
// have ended since, and what it found must not be lost.
type clocks struct {
	mu    sync.Mutex
	hosts map[string]storage.Host
}

// advance replaces the state of a host, as the lease knows it, by what next
// makes of the newest one, and returns it. next must keep Due from moving back.
func (c *clocks) advance(host string, leased storage.Host, next func(storage.Host) storage.Host) storage.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.hosts[host]; ok && !known.Due.Before(leased.Due) {
		leased = known
	}
	state := next(leased)
	if leased.Slots <= 1 && state.Slots <= 1 {
		delete(c.hosts, host)
		return state
	}
	if c.hosts == nil || len(c.hosts) >= remembered {
		c.hosts = map[string]storage.Host{}
	}
	c.hosts[host] = state
	return state
}

// deliver hands the newest state of a host to the store: of two visits that
// end together, the ack that comes last must not bring the older one.
func (c *clocks) deliver(host string, ack *storage.Ack, store func() error) error {
	if ack.Host == nil {
		return store()
	}
	c.mu.Lock()
	newest, shared := c.hosts[host]
	if !shared {
		c.mu.Unlock()
		return store()
	}
	defer c.mu.Unlock()
	ack.Host = &newest
	return store()
}
